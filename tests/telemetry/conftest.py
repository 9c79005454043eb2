"""A served application whose cluster has a real Prometheus, and a job with an alarm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.actions.telemetry import pulling
from app.config import Settings
from app.main import make_context
from tests.actions.service import ADMIN_TOKEN, Service
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus, Samples
from tests.telemetry.house import House

ALARM_AT = datetime(2026, 11, 2, 14, 0, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def prometheus(tmp_path: Path, free_port: int) -> Iterator[Prometheus]:
    """Start an empty Prometheus."""
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with Prometheus(folder, free_port) as running:
        yield running


@pytest.fixture
def serve(
    migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Service]]:
    """Give a function that serves the application; rounds of pulling are the test's to start."""
    monkeypatch.setattr("app.actions.telemetry.puller.Puller.start", lambda self: None)
    monkeypatch.setattr("app.actions.telemetry.collector.Collector.start", lambda self: None)
    opened: list[Service] = []

    def make(*entries: dict[str, Any]) -> Service:
        settings = Settings(
            database_url=migrated_url,
            data_dir=tmp_path,
            admin_token=ADMIN_TOKEN,
            sources={"alpine": list(entries)} if entries else {},
        )
        opened.append(Service(make_context(settings)))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def house(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """Give a house without anything; rounds of collecting are the test's to start."""
    monkeypatch.setattr("app.actions.telemetry.puller.Puller.start", lambda self: None)
    monkeypatch.setattr("app.actions.telemetry.collector.Collector.start", lambda self: None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    with ExitStack() as stack:
        yield House(migrated_url, tmp_path, stack)


def post_job(service: Service, said: dict[str, Any] = d.CULPRIT, **about: Any) -> str:
    """Post a job of 32 ranks that ends in an alarm; give the alarm's id."""
    ring = d.passes("ring", 0, 20, 3, clock="13:58:00")
    *_, last = service.post(
        {"kind": "rank_map", **d.rank_map()},
        {"kind": "passes", **ring},
        {"kind": "alarm", **d.alarm(said, **about)},
    )
    return str(last["id"])


def labels(field: str, rank: int, **more: Any) -> dict[str, str]:
    """Give the labels that the exporter puts on a field of a rank's GPU."""
    return {
        "__name__": field,
        "gpu": str(rank % 8),
        "UUID": d.gpu(rank),
        "pci_bus_id": f"00000000:{0x53 + rank % 8:02X}:00.0",
        "device": f"nvidia{rank % 8}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": d.node(rank),
        **{key: str(value) for key, value in more.items()},
    }


def every(value: Callable[[float], float], hours: float = 2.0, step: float = 15.0) -> Samples:
    """Sample a function of the seconds since the alarm, up to a quarter of an hour after it."""
    first = ALARM_AT - hours * 3600
    count = int((hours * 3600 + 900) / step)
    times = [first + place * step for place in range(count)]
    return [(at, value(at - ALARM_AT)) for at in times]


def rounds(service: Service) -> int:
    """Plan and pull until nothing is due; give how many windows were pulled."""
    pulling.plan_wanted(service.context)
    pulled = 0
    while done := pulling.pull_due(service.context, "a worker of the tests"):
        pulled += done
    return pulled
