"""Does a second answer with less in it leave what the first one gave?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.actions.telemetry import settling
from app.sources.ports import Pulled, Question
from app.store import telemetry_kept
from app.store.tables import telemetry_blocks, telemetry_windows
from tests.actions.service import Service
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.fleet import Fleet, using
from witness.rules.samples import RawSeries, Series

Serve = Callable[..., Service]
ECC, HEAT = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_GPU_TEMP"
VALUES = {ECC: lambda field, rank, at: at, HEAT: lambda field, rank, at: 40.0}


class Partial(Fleet):
    """A fleet of which a store is away that holds what is older than `since`."""

    since = 0.0

    def pull(self, question: Question) -> Pulled:
        pulled = super().pull(question)
        series = tuple(
            RawSeries(one.labels, [pair for pair in one.samples if pair[0] >= self.since])
            for one in pulled.series
        )
        return replace(pulled, series=series, partial=self.since > 0)


def windows(service: Service) -> list[Any]:
    with service.context.store.reading() as connection:
        return list(connection.execute(sa.select(telemetry_windows)))


def kept(service: Service) -> dict[int, list[Series]]:
    found = {one.id: one.gpu_uuid for one in windows(service)}
    with service.context.store.reading() as connection:
        packed = telemetry_kept.read_packed(connection, found)
    return {
        key: [telemetry_kept.unpack(one, found[key]) for one in some]
        for key, some in packed.items()
    }


@pytest.fixture
def pulled_once(serve: Serve) -> Service:
    """Windows that were pulled a minute before their end."""
    service = using(serve(), Partial(VALUES))
    post_job(service)
    rounds(service)
    end = max(one.end_at for one in windows(service))
    service.context.store.write(
        lambda c: c.execute(
            telemetry_windows.update().values(
                state="queued", next_at=end, asked_at=end, samples=0, pulled_at=None
            )
        )
    )
    service.context.store.write(lambda c: c.execute(telemetry_blocks.delete()))
    soon = end - timedelta(minutes=1)
    service.context.store.write(
        lambda c: c.execute(telemetry_windows.update().values(next_at=soon, asked_at=soon))
    )
    service.context = replace(service.context, now=lambda: soon)
    assert rounds(service) == 11
    assert {one.state for one in windows(service)} == {"queued"}
    service.context = replace(service.context, now=lambda: end + timedelta(minutes=5))
    return service


def fleet_of(service: Service) -> Partial:
    (fleet,) = service.context.sources["alpine"]
    assert isinstance(fleet, Partial)
    return fleet


def test_an_answer_with_a_hole_keeps_what_was_there(pulled_once: Service) -> None:
    before = kept(pulled_once)
    fleet = fleet_of(pulled_once)
    fleet.since = max(one.times[-1] for some in before.values() for one in some) - 600.0
    fleet.values = {ECC: VALUES[ECC]}
    assert rounds(pulled_once) == 11
    after = kept(pulled_once)
    for key, some in before.items():
        new = {one.field_id: one for one in after[key]}
        for one in some:
            longer = new[one.field_id]
            assert longer.times[: len(one.times)] == one.times
            assert longer.values[: len(one.values)] == one.values
            assert longer.left_out == 0
        assert max(len(one.times) for one in after[key]) > len(some[0].times)
    for row in windows(pulled_once):
        assert (row.state, row.partial) == ("done", True)
        assert row.samples == sum(len(one.times) for one in after[row.id])
        assert settling.LESS in row.warnings


def test_a_whole_answer_stands_as_it_came(pulled_once: Service) -> None:
    before = kept(pulled_once)
    assert rounds(pulled_once) == 11
    for key, some in kept(pulled_once).items():
        assert len(some[0].times) > len(before[key][0].times)
    assert not any(settling.LESS in (row.warnings or "") for row in windows(pulled_once))
