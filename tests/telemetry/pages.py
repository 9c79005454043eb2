"""What do the tests of the telemetry pages store, and how do they read a page?"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial

from app.store import ids
from app.web.words import ident
from tests.actions.service import Person, Service
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus
from tests.telemetry.conftest import ALARM_AT, every, labels

GPU = "/gpus/" + ident(ids.derive("gpu", d.gpu(13)))
SBE, TEMP, XID = (
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"
)  # fmt: skip
GREEN = re.compile(r"\b(healthy|clean|innocent|cleared|good)\b", re.I)
GRAFANA = "https://g-1.grafana-workspace.us-west-2.amazonaws.com/?var-cluster_id=4k2xq9mlunp0"


def fill(prometheus: Prometheus) -> None:
    """Store two hours of the culprit and its node: errors that rise, and two Xids."""
    prometheus.write(
        [
            (labels(field, rank), every(partial(_value, field, rank), step=30.0))
            for rank in (*range(8, 16), 5, 21, 29)
            for field in (TEMP, SBE, XID)
        ]
    )


def _value(field: str, rank: int, since: float) -> float:
    if field == TEMP:
        return 60.0 + (rank + int(since // 15)) % 3
    if field == SBE:
        return 12.0 if rank == 13 and since > -20 else 3.0
    return {13: 79.0 if since > -45 else 63.0, 10: 31.0 if since > -600 else 0.0}.get(rank, 0.0)


def section(page: str, key: str) -> str:
    """Give one section of a page."""
    return page.split(f'aria-labelledby="{key}"')[1].split("</section>", maxsplit=1)[0]


def case_of(service: Service) -> str:
    """Find the page of the only case."""
    (case,) = service.read("/cases")["items"]
    return f"/cases/{case['id']}"


def node_of(person: Person, rank: int) -> str:
    """Find the page of a rank's node."""
    page = person.get("/gpus/" + ident(ids.derive("gpu", d.gpu(rank))))
    return re.findall(r'href="(/nodes/\w+)"', page)[0]


def at(seconds: float) -> str:
    """Write a time for an address."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


AROUND = f"{GPU}?from={at(ALARM_AT - 3600)}&to={at(ALARM_AT + 600)}"
