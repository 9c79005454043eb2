"""Does one row, or one cluster that hangs, keep the others from being looked for?"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.actions import looking
from app.cluster.provider import registry
from app.store import proposals
from tests.doubles.sagemaker import Fault
from tests.orders.conftest import MakeYard
from tests.orders.yard import CLUSTER, LIMITS, Yard, instance

REPLACE = "BatchReplaceClusterNodes"
SILENT = "birch"


@pytest.fixture
def silence() -> Iterator[str]:
    """Listen, and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _ordered(yard: Yard, number: int, due_s: float, action: str = "replace", **more: Any) -> int:
    """Write an order down as accepted, due so many seconds ago."""
    row_id = yard.approve(action, number).id
    now = yard.context.now()
    values = {
        "status": "accepted", "claimed_at": now, "finished_at": now,
        "next_look_at": now - timedelta(seconds=due_s), **more,
    }  # fmt: skip
    yard.context.store.write(lambda c: proposals.move(c, row_id, ("approved",), values))
    return row_id


def test_a_cluster_that_hangs_costs_the_others_one_look(
    make_yard: MakeYard, silence: str, tmp_path: Path
) -> None:
    yard = make_yard()
    silent = yard.sagemaker.entry(endpoint_url=silence, connect_timeout_s=1, read_timeout_s=0.6)
    both = registry.providers(
        {CLUSTER: yard.sagemaker.entry(**LIMITS), SILENT: silent}, folder=tmp_path
    )
    settings = yard.context.settings.model_copy(update={"cluster_timeout_s": 1.0})
    yard = replace(yard, context=replace(yard.context, providers=both, settings=settings))
    hung = [_ordered(yard, number, 60 - number, cluster=SILENT) for number in (1, 2)]
    other = _ordered(yard, 3, 1)
    resting: dict[str, float] = {}
    assert looking.look_due(yard.context, resting=resting) == 2
    assert [yard.row(one).looks for one in (*hung, other)] == [1, 0, 1]
    assert looking.look_due(yard.context, resting=resting) == 0
    resting[SILENT] = 0.0
    assert looking.look_due(yard.context, resting=resting) == 1
    assert yard.row(hung[1]).looks == 1
    both.close()


def test_a_row_that_cannot_be_read_keeps_no_other_from_its_look(
    make_yard: MakeYard, caplog: pytest.LogCaptureFixture
) -> None:
    yard = make_yard()
    broken = {"failed_at": "no time at all", "seen_testing": True}
    bad = _ordered(yard, 1, 60, "deep_health_check", details=broken)
    good = _ordered(yard, 2, 1)
    assert looking.look_due(yard.context) == 1
    assert yard.row(good).details["standing"]
    assert yard.row(bad).status == "accepted"
    assert "a look at an order met a fault of ours" in caplog.text


def test_what_a_late_look_proves_is_not_given_up_at_once(make_yard: MakeYard) -> None:
    yard = make_yard()
    yard.sagemaker.set_fault(Fault(REPLACE, reset=True, times=1))
    sent = yard.run(yard.approve("replace", 1))
    assert sent.status == "unknown"
    yard.sagemaker.advance(hours=25)
    yard.sagemaker.platform_replaces(instance(1))
    after = looking.look_again(yard.context, sent.id, "alice")
    assert after is not None
    assert after.status == "waiting"
    assert after.next_look_at is not None
    yard.pass_time(90)
    assert yard.row(sent.id).status == "verified"
