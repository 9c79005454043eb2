"""Are readings made once from each window, and are they those of the alarm's plan of now?"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from app.actions.alarm_dossier import read_core, read_dossier
from app.actions.telemetry import decoding, pulling, reading
from app.actions.telemetry.decoding import Decoded
from app.actions.telemetry.planning import plan
from app.store import ids, telemetry_kept
from app.store.connection import Connection
from app.store.tables import telemetry_blocks, telemetry_readings, telemetry_wants
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.fleet import Fleet, using
from witness.rules import blocks as codec

Serve = Callable[..., Service]
TEMP = "DCGM_FI_DEV_GPU_TEMP"
SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
REDUCTION = {"check": "reduced gradient", "step": 31, "suspect_window": [31, 31]}
VALUES = {TEMP: lambda field, rank, at: 60.0 + rank % 3, SBE: lambda field, rank, at: 3.0}


def gpus_read(service: Service, alarm_id: str) -> set[int]:
    with service.context.store.reading() as connection:
        return telemetry_kept.gpus_read(connection, ids.read(alarm_id))


def post_fault(service: Service, world: int = 32) -> str:
    """Post a fault of the reduction, which names nobody."""
    layout = {"kind": "rank_map", **d.rank_map(world)}
    *_, last = service.post(layout, {"kind": "alarm", **d.alarm(REDUCTION)})
    return str(last["id"])


def count_decodes(service: Service, patched: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each block is decoded, and that no connection is held meanwhile."""
    seen: Counter[str] = Counter()
    here = threading.current_thread()
    opened = []
    read = service.context.store.reading

    @contextmanager
    def watched() -> Iterator[Connection]:
        with read() as connection:
            opened.extend([1] if threading.current_thread() is here else [])
            yield connection
        if threading.current_thread() is here:
            opened.pop()

    def counted(name: str, data: bytes, sha256: str) -> Any:
        assert opened == []
        seen[f"{sha256} {len(data)}"] += 1
        return codec.decode(name, data, sha256)

    patched.setattr(service.context.store, "reading", watched)
    patched.setattr(telemetry_kept, "decode", counted)
    return seen


def test_each_window_of_an_alarm_is_decoded_once_and_with_no_connection_held(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = using(serve(), Fleet({SBE: lambda field, rank, at: float(rank)}))
    alarm = post_fault(service)
    pulling.plan_wanted(service.context)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "read_alarm", lambda context, alarm_id: 0)
        rounds(service)
    with service.context.store.reading() as connection:
        kept = connection.execute(sa.select(sa.func.count()).select_from(telemetry_blocks))
        blocks = kept.scalar_one()
        wants = connection.execute(sa.select(sa.func.count()).select_from(telemetry_wants))
        assert (blocks, wants.scalar_one()) == (32, 32 * 11)
    seen = count_decodes(service, monkeypatch)
    assert reading.read_alarm(service.context, ids.read(alarm)) == 32
    assert (len(seen), sum(seen.values())) == (32, 32)


def test_what_is_held_decoded_is_bounded(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    service = using(serve(), Fleet({SBE: lambda field, rank, at: float(rank)}))
    alarm = ids.read(post_fault(service))
    rounds(service)
    with service.context.store.reading() as connection:
        before = telemetry_kept.readings_of_alarms(connection, [alarm])
    held = []
    take = Decoded.take

    def watched(self: Decoded, window_ids: Any) -> Any:
        given = take(self, window_ids)
        held.append(sum(len(one.times) for one in given[0]))
        assert self.samples_held <= max(1_000, held[-1])
        return given

    monkeypatch.setattr(Decoded, "take", watched)
    monkeypatch.setattr(decoding, "MOST_SAMPLES", 1_000)
    assert reading.read_alarm(service.context, alarm) == 32
    assert len(held) == 32
    with service.context.store.reading() as connection:
        after = telemetry_kept.readings_of_alarms(connection, [alarm])
    assert [one.reading for one in after] == [one.reading for one in before]


def test_planning_reads_a_part_of_what_a_page_reads(serve: Serve) -> None:
    service = serve()
    alarm = ids.read(post_job(service))
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        asked.append(statement)

    event.listen(service.context.store.engine, "before_cursor_execute", note)
    now = service.context.now()
    with service.context.store.reading() as connection:
        whole = read_dossier(connection, alarm, now)
        of_a_page = len(asked)
        core = read_core(connection, alarm)
    event.remove(service.context.store.engine, "before_cursor_execute", note)
    assert whole is not None
    assert core is not None
    assert plan(core) == plan(whole)
    assert (len(asked) - of_a_page) * 2 < of_a_page


def test_damage_to_a_compared_gpu_leaves_the_suspect_readable(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES))
    alarm = ids.read(post_job(service))
    rounds(service)

    def damage(rank: int) -> Any:
        window = service.context.store.write(lambda c: _damage(c, d.gpu(rank)))
        reading.read_alarm(service.context, alarm)
        with service.context.store.reading() as connection:
            (one,) = telemetry_kept.readings_of_alarms(connection, [alarm])
        assert window
        return one.status, " ".join(one.reading["notes"]), one.headline

    status, notes, _ = damage(9)
    assert status == "nothing_found"
    assert f"What was kept of {d.gpu(9)} cannot be read" in notes
    status, notes, headline = damage(13)
    assert status == "refused"
    assert f"What was kept of {d.gpu(13)} cannot be read" in headline


def _damage(connection: Connection, uuid: str) -> bool:
    done = connection.execute(
        sa.text(
            "UPDATE telemetry_blocks SET sha256 = 'another' WHERE window_id = "
            "(SELECT id FROM telemetry_windows WHERE gpu_uuid = :uuid)"
        ),
        {"uuid": uuid},
    )
    return done.rowcount > 0


def test_a_map_that_comes_late_leaves_no_reading_of_a_former_suspect(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES))
    first = d.rank_map()
    *_, last = service.post({"kind": "rank_map", **first}, {"kind": "alarm", **d.alarm(REDUCTION)})
    alarm = str(last["id"])
    rounds(service)
    assert len(gpus_read(service, alarm)) == 32
    # A second map of the same attempt says otherwise, so no layout is known any more.
    service.post({"kind": "rank_map", **d.rank_map(shift=40)})
    rounds(service)
    assert gpus_read(service, alarm) == set()
    with service.context.store.reading() as connection:
        assert list(connection.execute(sa.select(telemetry_wants))) == []
    assert service.read(f"/alarms/{alarm}")["telemetry"]["readings"] == []


def test_readings_of_another_plan_go_with_the_new_ones(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES))
    alarm = post_job(service)
    rounds(service)
    former = ids.derive("gpu", d.gpu(2))

    def plant(connection: Connection) -> None:
        row = connection.execute(sa.select(telemetry_readings)).one()._asdict()
        connection.execute(telemetry_readings.insert().values(row | {"gpu_id": former}))

    service.context.store.write(plant)
    assert len(gpus_read(service, alarm)) == 2
    assert reading.read_alarm(service.context, ids.read(alarm)) == 1
    assert gpus_read(service, alarm) == {ids.derive("gpu", d.gpu(13))}


def test_a_page_loads_whole_readings_of_the_suspects_that_it_shows(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = using(serve(), Fleet(VALUES))
    alarm = post_fault(service)
    rounds(service)
    loaded: list[int] = []
    read = telemetry_kept.readings_of_alarms

    def watched(*given: Any, **more: Any) -> Any:
        found = read(*given, **more)
        loaded.append(sum(bool(one.reading) for one in found))
        return found

    monkeypatch.setattr(telemetry_kept, "readings_of_alarms", watched)
    page = service.person().get(f"/alarms/{alarm}")
    assert loaded == [4, 0]
    assert "And 28 more GPUs" in page
    told = service.read(f"/alarms/{alarm}")["telemetry"]["readings"]
    assert loaded == [4, 0, 32]
    assert all(one["looked_at"] for one in told)
    assert {one["state"] for one in told} == {"nothing_found"}
