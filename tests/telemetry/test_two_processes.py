"""Do two processes that change the same asks and windows at once ever wait for each other?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from app.store import telemetry_claims, telemetry_queue, telemetry_unread
from app.store.columns import micros
from app.store.database import connect
from app.store.tables import telemetry_asks, telemetry_windows
from app.store.telemetry_queue import Want
from app.store.telemetry_retention import Limits, delete_samples
from tests.pages_alarm import documents as d

NOW = datetime(2026, 11, 2, 15, tzinfo=UTC)
ALARMS = range(1, 41)
ROUNDS = 15
LEASE = timedelta(minutes=15)
WANTS = [
    Want("alpine", d.gpu(rank), NOW - timedelta(hours=3), NOW, "suspect", d.gpu(rank))
    for rank in range(24)
]


@pytest.fixture
def engine(migrated_postgres_url: str) -> Iterator[Engine]:
    """Keep forty alarms that were read and ask for the same refused windows.

    The rows of the asks lie in the opposite order of their ids, as an update finds them.
    """
    engine = connect(migrated_postgres_url)
    with engine.begin() as connection:
        for alarm in reversed(ALARMS):
            row = {"alarm_id": alarm, "state": "read", "wanted_at": NOW, "left_out": 0}
            connection.execute(telemetry_asks.insert().values(row))
        for alarm in ALARMS:
            telemetry_queue.queue(connection, alarm, WANTS, NOW)
        connection.execute(telemetry_windows.update().values(state="refused"))
    yield engine
    engine.dispose()


def at_once(engine: Engine, *works: Callable[[Connection, int], object]) -> list[str]:
    """Run works in transactions of their own, again and again at the same moment; give failures."""
    together = threading.Barrier(len(works))
    failures: list[str] = []

    def run(work: Callable[[Connection, int], object]) -> None:
        for number in range(ROUNDS):
            together.wait(30)
            if failures:
                return
            together.wait(30)
            try:
                with engine.begin() as connection:
                    work(connection, number)
            except sa.exc.DBAPIError as error:
                failures.append(str(error.orig))

    threads = [threading.Thread(target=run, args=(one,)) for one in works]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    return failures


def want_all(connection: Connection, number: int) -> None:
    telemetry_queue.want_alarms(connection, [*ALARMS], NOW + timedelta(seconds=number))


def plan_a_new_one(connection: Connection, number: int) -> None:
    """Plan an alarm that lets all windows begin anew, so that all others wait once more."""
    alarm, at = 1_000 + number, NOW
    connection.execute(telemetry_windows.update().values(state="refused"))
    telemetry_queue.want_alarms(connection, [alarm], at)
    telemetry_queue.plan(connection, alarm, WANTS, 0, wanted_at=at, now=at)


def test_asking_and_planning_never_wait_for_each_other(engine: Engine) -> None:
    assert at_once(engine, want_all, plan_a_new_one) == []


def test_claims_and_questions_by_hand_never_wait_for_each_other(engine: Engine) -> None:
    found = sorted(one.window_id for one in WANTS)

    def claim(connection: Connection, number: int) -> None:
        taken = telemetry_claims.claim(connection, f"worker {number}", NOW, LEASE, 100)
        for one in taken:
            values = {"state": "refused", "next_at": NOW, "said": "No."}
            assert telemetry_claims.settle(connection, one.id, f"worker {number}", values)

    def ask(connection: Connection, number: int) -> None:
        telemetry_queue.ask_again(connection, found[:: 1 if number % 2 else -1], NOW)

    assert at_once(engine, want_all, claim, ask, ask) == []
    with engine.begin() as connection:
        states = set(connection.execute(sa.select(telemetry_windows.c.state)).scalars())
    assert states <= {"queued", "refused"}


def test_the_order_of_the_locks_is_what_prevents_it(engine: Engine) -> None:
    """Without the order the same works do meet; else this file would prove nothing."""

    def unordered(connection: Connection, number: int) -> None:
        for alarm in reversed(ALARMS):
            mine = telemetry_asks.c.alarm_id == alarm
            connection.execute(telemetry_asks.update().where(mine).values(state="waiting"))

    failures = at_once(engine, want_all, unordered)
    assert all("deadlock" in one for one in failures)
    assert failures


def test_a_plan_that_is_overtaken_writes_nothing(engine: Engine) -> None:
    """A later want is committed between the first look of a plan and its end."""
    with engine.begin() as first:
        telemetry_queue.want_alarms(first, [7], NOW)
    real = telemetry_unread.hold

    def overtaken(connection: Connection, window_ids: list[int], *alarms: int) -> list[int]:
        with engine.begin() as other:
            telemetry_queue.want_alarms(other, [7], NOW + timedelta(seconds=1))
        return real(connection, window_ids, *alarms)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(telemetry_unread, "hold", overtaken)
        with pytest.raises(telemetry_queue.StalePlanError), engine.begin() as connection:
            telemetry_queue.plan(connection, 7, WANTS[:1], 0, wanted_at=NOW, now=NOW)
    with engine.begin() as connection:
        asked = telemetry_queue.of_alarm(connection, 7)
        row = connection.execute(sa.select(telemetry_asks).where(telemetry_asks.c.alarm_id == 7))
        found = row.one()
    assert len(asked) == len(WANTS)
    assert (found.state, micros(found.wanted_at)) == ("wanted", micros(NOW) + 1_000_000)


def test_two_that_delete_old_samples_delete_each_once(engine: Engine) -> None:
    late = NOW + timedelta(days=500)
    limits, deleted = Limits(NOW + timedelta(days=1), None), []
    with engine.begin() as connection:
        values = {"state": "done", "pulled_at": NOW, "samples": 3}
        connection.execute(telemetry_windows.update().values(values))

    def delete(connection: Connection, number: int) -> None:
        deleted.append(delete_samples(connection, limits, late, 5).windows)

    assert at_once(engine, delete, delete) == []
    assert sum(deleted) == len(WANTS)
