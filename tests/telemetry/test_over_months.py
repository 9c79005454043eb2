"""Does what moved on a GPU stay known over months, beside how often anybody looked?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from app.actions.telemetry import moved
from app.context import Context
from app.store import ids
from app.store.connection import Connection
from app.store.tables.telemetry import telemetry_moved
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import ALARM_AT, post_job, rounds
from tests.telemetry.fleet import Fleet, using

Serve = Callable[..., Service]
REMAPPED = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
TEMP = "DCGM_FI_DEV_GPU_TEMP"


def alarm_on(service: Service, day: datetime, step: int = 31) -> str:
    """Post the job's alarm as it would have come on another day."""
    said = {**d.CULPRIT, "step": step}
    document = d.alarm(said) | {"time": day.isoformat()}
    *_, last = service.post({"kind": "rank_map", **d.rank_map()}, {"kind": "alarm", **document})
    return str(last["id"])


def over_months(context: Context, rank: int, cluster: str | None = None) -> moved.OverMonths | None:
    uuid = d.gpu(rank)
    with context.store.reading() as connection:
        return moved.read_moved(connection, ids.derive("gpu", uuid), uuid, cluster=cluster)


def rows(service: Service) -> int:
    with service.context.store.reading() as connection:
        counted = sa.select(sa.func.count()).select_from(telemetry_moved)
        return int(connection.execute(counted).scalar_one())


def remapping(field: str, rank: int, at: float) -> float:
    """Let the suspect remap two rows in December and one more before February."""
    if field == TEMP:
        return 60.0 + (rank + int(at / 30)) % 3
    if rank != 13 or at < datetime(2026, 6, 2, 11, 59, tzinfo=UTC).timestamp():
        return 0.0
    return 2.0 if at < datetime(2026, 7, 1, tzinfo=UTC).timestamp() else 3.0


MONTHS = tuple(datetime(2026, month, 2, 12, tzinfo=UTC) for month in (5, 6, 8))


def test_what_moved_is_summed_up_over_months(serve: Serve) -> None:
    fleet = Fleet({REMAPPED: remapping, TEMP: remapping})
    service = using(serve(), fleet)
    for place, day in enumerate(MONTHS):
        alarm_on(service, day, 31 + place)
    rounds(service)
    found = over_months(service.context, 13)
    assert found is not None
    assert found.windows == 3
    (field,) = found.fields
    assert field.title == "Rows remapped after uncorrectable errors"
    assert (field.windows, field.moved, field.share) == (3, 1, 1 / 3)
    assert (field.amount, field.between, field.hardware) == (2.0, 1.0, True)
    assert field.first_at == field.last_at
    assert field.first_at is not None
    assert abs(field.first_at - datetime(2026, 6, 2, 12, tzinfo=UTC)) < timedelta(minutes=2)
    told = service.read(f"/gpus/{d.gpu(13)}")["telemetry_moved"]
    assert [told["windows"], told["fields"][0]["share"]] == [3, 1 / 3]
    assert told["fields"][0]["last_at"] == "2026-06-02T11:59:00Z"


def test_gpus_that_were_only_compared_are_counted_as_well(serve: Serve) -> None:
    service = using(serve(), Fleet({REPLAYS: lambda field, rank, at: float(rank == 9) * at // 900}))
    post_job(service)
    rounds(service)
    beside = over_months(service.context, 9)
    assert beside is not None
    assert [one.moved for one in beside.fields] == [1]
    quiet = over_months(service.context, 13)
    assert quiet is not None
    assert (quiet.windows, quiet.fields) == (1, ())
    assert rows(service) == 11


def test_a_gpu_that_fell_silent_beside_its_node_is_remembered(serve: Serve) -> None:
    end = ALARM_AT - 600
    service = using(serve(), Fleet({TEMP: remapping}, {13: end}))
    post_job(service)
    rounds(service)
    found = over_months(service.context, 13)
    assert found is not None
    assert [(one.field, one.title, one.moved) for one in found.fields] == [(None, "Silence", 1)]


def test_a_second_pull_of_a_window_replaces_what_moved(serve: Serve) -> None:
    service = using(serve(), Fleet({REMAPPED: remapping}))
    alarm_on(service, MONTHS[1])
    rounds(service)
    before = over_months(service.context, 13)

    def again(connection: Connection) -> None:
        connection.execute(sa.text("UPDATE telemetry_windows SET state = 'queued', next_at = 0"))

    service.context.store.write(again)
    assert rounds(service) == 11
    assert over_months(service.context, 13) == before
    assert rows(service) == 11


def test_windows_of_an_older_version_are_looked_at_once(serve: Serve) -> None:
    service = using(serve(), Fleet({REMAPPED: remapping}))
    alarm_on(service, MONTHS[1])
    rounds(service)
    before = over_months(service.context, 13)
    service.context.store.write(lambda c: c.execute(telemetry_moved.delete()))
    assert over_months(service.context, 13) is None
    assert service.read(f"/gpus/{d.gpu(13)}")["telemetry_moved"] is None
    last = moved.catch_up(service.context)
    assert last is not None
    assert moved.catch_up(service.context, last) is None
    assert over_months(service.context, 13) == before
    assert rows(service) == 11
    assert moved.catch_up(service.context) is None


def test_a_reader_of_another_cluster_learns_nothing(serve: Serve) -> None:
    service = using(serve(), Fleet({REMAPPED: remapping}))
    post_job(service)
    rounds(service)
    assert over_months(service.context, 13, "alpine") is not None
    assert over_months(service.context, 13, "elsewhere") is None
