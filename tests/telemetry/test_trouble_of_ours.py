"""Does what goes wrong for one alarm, one source or one process leave all others whole?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.actions.alarm_dossier import read_core
from app.actions.telemetry import pulling, reading
from app.context import Context
from app.sources.ports import About, Away, Pulled, Question, Refused
from app.store import ids, telemetry_claims, telemetry_kept, telemetry_queue, telemetry_unread
from app.store.connection import Connection
from app.store.tables import telemetry_asks, telemetry_readings, telemetry_windows
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import post_job, rounds
from witness.rules.telemetry import read


class Source:
    """A source that knows nothing, or fails as it is told to."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)

    def about(self) -> About:
        return About("a double", "a double")

    def pull(self, question: Question) -> Pulled:
        if self._failures:
            raise self._failures.pop(0)
        return Pulled(queries=1)

    def close(self) -> None:
        pass


def using(service: Service, *sources: Source) -> Context:
    """Let the cluster's metrics come from these."""
    return replace(service.context, sources={"alpine": sources})


def asks(service: Service) -> dict[int, str]:
    with service.context.store.reading() as connection:
        rows = connection.execute(sa.select(telemetry_asks.c.alarm_id, telemetry_asks.c.state))
        return {int(alarm): str(state) for alarm, state in rows}


def states(service: Service) -> list[str]:
    with service.context.store.reading() as connection:
        return sorted(connection.execute(sa.select(telemetry_windows.c.state)).scalars())


def readings(service: Service) -> int:
    with service.context.store.reading() as connection:
        counted = sa.select(sa.func.count()).select_from(telemetry_readings)
        return int(connection.execute(counted).scalar_one())


def fail_for(monkeypatch: pytest.MonkeyPatch, module: Any, alarm_id: int) -> None:
    """Break the reading of one alarm."""

    def broken(connection: Connection, one: int) -> Any:
        if one == alarm_id:
            raise ZeroDivisionError
        return read_core(connection, one)

    monkeypatch.setattr(module, "read_core", broken)


@pytest.mark.parametrize("module", [pulling, reading])
def test_an_alarm_that_cannot_be_worked_out_holds_up_no_other(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    service = serve()
    broken = ids.read(post_job(service))
    sound = ids.read(post_job(service, {**d.CULPRIT, "step": 31}, clock="14:00:20"))
    assert broken != sound
    with monkeypatch.context() as patched:
        fail_for(patched, module, broken)
        assert rounds(service) >= 11
        assert asks(service) == {broken: "failed", sound: "read"}
        assert pulling.plan_wanted(service.context) == 0
    service.context.store.write(telemetry_unread.take_up_failed)
    rounds(service)
    assert asks(service) == {broken: "read", sound: "read"}


def test_an_alarm_that_a_lost_process_left_unread_is_read_later(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve()
    alarm = ids.read(post_job(service))
    with monkeypatch.context() as patched:
        patched.setattr(reading, "read_alarm", lambda context, alarm_id: 0)
        assert rounds(service) == 11
    assert (readings(service), asks(service)) == (0, {alarm: "waiting"})
    assert pulling.read_unread(service.context) == 1
    assert (readings(service), asks(service)) == (1, {alarm: "read"})
    assert pulling.read_unread(service.context) == 0


def test_what_is_asked_for_again_is_read_again_whoever_pulls_it(
    serve: Callable[..., Service],
) -> None:
    service = serve()
    alarm = ids.read(post_job(service))
    rounds(service)
    now = service.context.now()
    store = service.context.store
    assert store.write(lambda c: telemetry_queue.ask_again_in(c, ["alpine"], now)) == 11
    assert asks(service) == {alarm: "waiting"}
    assert pulling.read_unread(service.context) == 0
    assert rounds(service) == 11
    assert asks(service) == {alarm: "read"}


def test_a_map_that_comes_while_an_alarm_is_planned_is_not_lost(
    serve: Callable[..., Service],
) -> None:
    service = serve()
    alarm = ids.read(post_job(service))
    store, now = service.context.store, service.context.now()
    with store.reading() as connection:
        ((_, wanted_at),) = telemetry_queue.wanted(connection, 10)
    later = now + timedelta(seconds=1)
    store.write(lambda c: telemetry_queue.want_alarms(c, [alarm], later))
    store.write(lambda c: telemetry_queue.plan(c, alarm, (), 0, wanted_at=wanted_at, now=now))
    assert asks(service) == {alarm: "wanted"}
    assert rounds(service) == 11


def test_a_reading_of_older_samples_never_replaces_one_of_newer_ones(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve()
    alarm = ids.read(post_job(service))
    pulling.plan_wanted(service.context)

    def late(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(reading, "read", read)
        assert pulling.pull_due(service.context, "another") == 11
        return replace(read(*args, **more), headline="Of older samples.")

    monkeypatch.setattr(reading, "read", late)
    reading.read_alarm(service.context, alarm)
    with service.context.store.reading() as connection:
        (kept,) = telemetry_kept.readings_of_alarms(connection, [alarm])
    assert kept.headline != "Of older samples."
    assert asks(service) == {alarm: "read"}


@pytest.mark.parametrize("failure", [Away("It is away."), ValueError("a fault of ours")])
def test_windows_that_a_failing_source_may_know_are_asked_for_later(
    serve: Callable[..., Service], failure: Exception
) -> None:
    service = serve()
    post_job(service)
    context = using(service, Source(failure), Source())
    pulling.plan_wanted(context)
    assert pulling.pull_due(context, "a worker") == 11
    assert states(service) == ["queued"] * 11
    assert pulling.pull_due(context, "a worker") == 0


def test_what_may_pass_counts_before_a_refusal(serve: Callable[..., Service]) -> None:
    service = serve()
    post_job(service)
    context = using(service, Source(Away("It is away.")), Source(Refused("No.")))
    pulling.plan_wanted(context)
    pulling.pull_due(context, "a worker")
    assert states(service) == ["queued"] * 11


def test_a_claim_is_renewed_by_its_own_worker_only(serve: Callable[..., Service]) -> None:
    service = serve()
    post_job(service)
    pulling.plan_wanted(service.context)
    store, now = service.context.store, service.context.now()
    held = store.write(lambda c: telemetry_claims.claim(c, "one", now, pulling.LEASE, 5))
    wanted = [one.id for one in held]
    assert store.write(lambda c: telemetry_claims.renew(c, wanted, "two", now)) == set()
    assert store.write(lambda c: telemetry_claims.renew(c, wanted, "one", now)) == set(wanted)


def test_a_process_that_stops_gives_back_what_it_did_not_get_to(
    serve: Callable[..., Service],
) -> None:
    service = serve()
    post_job(service)
    pulling.plan_wanted(service.context)
    pulling.pull_due(service.context, "one", lambda: True)
    assert states(service) == ["queued"] * 11
    assert pulling.pull_due(service.context, "two") == 11


def test_an_alarm_of_many_windows_is_read_when_all_had_their_turn(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve()
    post_job(service)
    pulling.plan_wanted(service.context)
    seen: list[int] = []
    real = reading.read_alarm

    def counted(context: Context, alarm_id: int) -> int:
        seen.append(alarm_id)
        return real(context, alarm_id)

    monkeypatch.setattr(pulling, "TAKEN", 4)
    monkeypatch.setattr(reading, "read_alarm", counted)
    assert [pulling.pull_due(service.context, "w") for _ in range(4)] == [4, 4, 3, 0]
    assert len(seen) == 1
