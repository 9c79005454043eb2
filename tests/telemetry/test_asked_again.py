"""Does what came to nothing heal by itself, and does nobody write where nothing is due?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.actions.telemetry import on_demand, pulling, settling
from app.actions.telemetry.on_demand import Range
from app.sources.ports import Away, Refused
from app.store import ids, telemetry_kept
from app.store.tables import telemetry_asks, telemetry_blocks, telemetry_windows
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.telemetry.conftest import ALARM_AT, post_job, rounds
from tests.telemetry.fleet import Fleet, using

Serve = Callable[..., Service]
VALUES = {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": lambda field, rank, at: 3.0}
TOKEN = "The token file cannot be read."
WORKER = "a worker"


def windows(service: Service) -> list[Any]:
    with service.context.store.reading() as connection:
        return list(connection.execute(sa.select(telemetry_windows)))


def states(service: Service) -> set[str]:
    return {one.state for one in windows(service)}


def asks(service: Service) -> list[str]:
    with service.context.store.reading() as connection:
        return list(connection.execute(sa.select(telemetry_asks.c.state)).scalars())


def at(service: Service, later: timedelta) -> Service:
    """Set the clock of the rounds ahead."""
    now = datetime.now().astimezone() + later
    service.context = replace(service.context, now=lambda: now)
    return service


def status(service: Service, alarm_id: str) -> list[str]:
    with service.context.store.reading() as connection:
        found = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm_id)])
    return [one.status for one in found]


def test_a_refusal_is_shown_at_once_and_heals_by_itself(serve: Serve) -> None:
    fleet = Fleet(VALUES, failures=(Refused(TOKEN), Refused(TOKEN)))
    service = using(serve(), fleet)
    alarm = post_job(service)
    assert rounds(service) == 11
    assert (states(service), status(service, alarm), asks(service)) == (
        {"refused"}, ["refused"], ["read"],
    )  # fmt: skip
    told = service.read(f"/alarms/{alarm}")["telemetry"]["readings"][0]
    assert (told["state"], TOKEN in told["why"]) == ("refused", True)
    assert rounds(service) == 0  # not before its time
    assert rounds(at(service, timedelta(seconds=31))) == 11
    assert (states(service), fleet.asked) == ({"refused"}, 2)
    assert rounds(at(service, timedelta(seconds=95))) == 11
    assert (states(service), status(service, alarm)) == ({"done"}, ["nothing_found"])
    assert {one.said for one in windows(service)} == {None}


def test_a_refusal_that_lasts_a_day_stays(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES, failures=(Refused(TOKEN),) * 99))
    alarm = post_job(service)
    rounds(service)
    tries, hours = 1, 0.0
    while hours < 60:
        hours += 3.0
        tries += rounds(at(service, timedelta(hours=hours))) // 11
    assert 8 <= tries <= 10
    assert (states(service), status(service, alarm)) == ({"refused"}, ["refused"])
    assert {one.next_at for one in windows(service)} == {settling.NEVER}
    assert {one.said for one in windows(service)} == {TOKEN}


def test_what_is_away_is_still_not_called_refused(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES, failures=(Away("It is away."),) * 3))
    alarm = post_job(service)
    rounds(service)
    assert (states(service), status(service, alarm)) == ({"queued"}, ["not_collected"])
    rounds(at(service, timedelta(days=2)))
    assert (states(service), status(service, alarm)) == ({"given_up"}, ["refused"])
    assert rounds(at(service, timedelta(days=9))) == 0


def test_a_process_lost_between_claim_and_answer_leaves_the_refusal_readable(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = using(serve(), Fleet(VALUES, failures=(Refused(TOKEN),)))
    alarm = post_job(service)
    rounds(service)
    with monkeypatch.context() as patched:
        patched.setattr(pulling, "_pull_held", lambda *given: None)
        pulling.pull_due(at(service, timedelta(minutes=1)).context, "lost")
    assert (states(service), asks(service)) == ({"claimed"}, ["waiting"])
    assert rounds(service) == 0
    assert rounds(at(service, timedelta(minutes=17))) == 11
    assert (states(service), status(service, alarm)) == ({"done"}, ["nothing_found"])
    assert asks(service) == ["read"]


@pytest.mark.parametrize("ended", ["refused", "given_up"])
def test_a_new_alarm_lets_what_came_to_nothing_begin_anew(serve: Serve, ended: str) -> None:
    failures = (Refused(TOKEN),) * 2 if ended == "refused" else (Away("It is away."),) * 2
    service = using(serve(), Fleet(VALUES, failures=failures))
    first = post_job(service)
    rounds(service)
    rounds(at(service, timedelta(days=2)))
    assert states(service) == {ended}
    # The same documents once more are no new alarm.
    assert post_job(service) == first
    assert rounds(service) == 0
    second = post_job(service, {**d.CULPRIT, "step": 31}, clock="14:00:20")
    assert second != first
    assert rounds(service) == 11
    assert states(service) == {"done"}
    assert status(service, first) == status(service, second) == ["nothing_found"]
    assert asks(service) == ["read", "read"]


def test_a_new_alarm_asks_anew_only_where_there_is_a_source_by_now(serve: Serve) -> None:
    service = serve()
    post_job(service)
    rounds(service)
    assert states(service) == {"no_source"}
    post_job(service, {**d.CULPRIT, "step": 31}, clock="14:00:20")
    assert rounds(service) == 0
    using(service, Fleet(VALUES))
    third = post_job(service, {**d.CULPRIT, "step": 32}, clock="14:00:25")
    assert rounds(service) == 11
    assert (states(service), status(service, third)) == ({"done"}, ["nothing_found"])


def test_a_refused_source_is_heard_before_another_ones_ignorance_counts(serve: Serve) -> None:
    service = serve()
    post_job(service)
    refusing, ignorant = Fleet(VALUES, failures=(Refused(TOKEN),)), Fleet({})
    service.context = replace(service.context, sources={"alpine": (refusing, ignorant)})
    rounds(service)
    assert states(service) == {"refused"}
    rounds(at(service, timedelta(minutes=1)))
    assert states(service) == {"done"}
    assert all(one.samples for one in windows(service))


def test_an_idle_puller_writes_nothing(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES))
    post_job(service)
    rounds(service)
    before = service.context.store.writer.commits
    for _ in range(5):
        assert pulling.plan_wanted(service.context) == 0
        assert pulling.pull_due(service.context, WORKER) == 0
        assert pulling.read_unread(service.context) == 0
    assert service.context.store.writer.commits == before


def test_a_window_that_has_not_begun_is_not_called_pulled(serve: Serve) -> None:
    fleet = Fleet(VALUES)
    service = using(serve(), fleet)
    alarm = post_job(service)
    then = datetime.fromtimestamp(ALARM_AT, tz=datetime.now().astimezone().tzinfo)
    early = then - timedelta(days=2)
    service.context = replace(service.context, now=lambda: early)
    service.context.store.write(
        lambda c: c.execute(telemetry_windows.update().values(next_at=early, asked_at=early))
    )
    pulling.plan_wanted(service.context)
    assert pulling.pull_due(service.context, WORKER) == 11
    assert (states(service), fleet.asked) == ({"queued"}, 0)
    assert {one.pulled_at for one in windows(service)} == {None}
    assert status(service, alarm) == ["not_collected"]
    assert pulling.pull_due(service.context, WORKER) == 0
    rounds(at(service, timedelta()))
    assert (states(service), status(service, alarm)) == ({"done"}, ["nothing_found"])


def test_a_source_that_has_forgotten_takes_nothing_away(serve: Serve) -> None:
    fleet = Fleet(VALUES)
    service = using(serve(), fleet)
    alarm = post_job(service)
    pulling.plan_wanted(service.context)
    soon = max(one.end_at for one in windows(service)) - timedelta(minutes=1)
    service.context.store.write(
        lambda c: c.execute(telemetry_windows.update().values(next_at=soon, asked_at=soon))
    )
    service.context = replace(service.context, now=lambda: soon)
    rounds(service)
    assert states(service) == {"queued"}
    fleet.values = {}
    rounds(at(service, timedelta()))
    assert states(service) == {"done"}
    assert all(one.samples and settling.LOST in one.warnings for one in windows(service))
    with service.context.store.reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(telemetry_blocks)).scalar()
    assert status(service, alarm) == ["nothing_found"]


def test_a_person_who_asks_for_the_first_time_lets_a_refusal_begin_anew(serve: Serve) -> None:
    service = using(serve(), Fleet(VALUES, failures=(Refused(TOKEN),)))
    post_job(service)
    rounds(service)
    one = next(one for one in windows(service) if one.gpu_uuid == d.gpu(13))
    span = Range(one.start_at, one.end_at)
    assert on_demand.ask(service.context, one.gpu_id, span, "somebody").fresh == 8
    assert rounds(service) == 8
    assert sorted(one.state for one in windows(service)) == ["done"] * 8 + ["refused"] * 3
