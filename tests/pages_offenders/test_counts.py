"""Do the counts that the ranking reads agree with the findings that made them?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.database import connect, writing
from app.store.intake.offender_rows import Naming, advance, count_fleet, count_namings, day_of
from app.store.tables import (
    WINDOWS,
    fleet_days,
    metadata,
    offender_windows,
    subject_days,
    subject_jobs,
)

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """Give a transaction on an empty database with all tables."""
    engine = writing(connect(database_url))
    metadata.create_all(engine)
    with engine.begin() as opened:
        yield opened
    engine.dispose()


def naming(
    alarm: int,
    at: datetime,
    *,
    job: int = 1,
    gpu: int | None = 7,
    node: int | None = 3,
    kind: str = "transient",
    new: bool = True,
) -> Naming:
    """Make one finding of one alarm."""
    return Naming(alarm, job, "alpine", gpu, node, "i-0c0ffee0", "ring", kind, at, new)


def windows(connection: Connection, subject: str = "gpu") -> sa.Row[tuple[object, ...]]:
    """Read the only row of a subject."""
    table = offender_windows
    return connection.execute(sa.select(table).where(table.c.subject == subject)).one()


def test_a_repeat_of_one_incident_adds_alarms_and_no_incident(connection: Connection) -> None:
    count_namings(connection, [naming(1, NOW)], NOW)
    count_namings(connection, [naming(2, NOW, new=False), naming(3, NOW, new=False)], NOW)
    row = windows(connection)
    assert (row.incidents_7, row.alarms_7) == (1, 3)
    assert windows(connection, "instance").alarms_all == 3


def test_two_findings_of_one_alarm_on_one_device_are_one_alarm(connection: Connection) -> None:
    both = [naming(1, NOW), naming(1, NOW, kind="nonfinite")]
    count_namings(connection, both, NOW)
    row = windows(connection)
    assert (row.alarms_all, row.incidents_all) == (1, 2)
    fleet = connection.execute(sa.select(sa.func.sum(fleet_days.c.alarms))).scalar_one()
    assert int(fleet) == 1


def test_two_gpus_of_one_node_are_two_incidents_and_one_alarm_of_the_node(
    connection: Connection,
) -> None:
    count_namings(connection, [naming(1, NOW, gpu=7), naming(1, NOW, gpu=8)], NOW)
    row = windows(connection, "node")
    assert (row.alarms_all, row.incidents_all) == (1, 2)


def test_jobs_are_counted_once_however_often_they_come(connection: Connection) -> None:
    count_namings(connection, [naming(1, NOW, job=1), naming(2, NOW, job=2)], NOW)
    count_namings(connection, [naming(3, NOW, job=2, new=False)], NOW)
    table = subject_jobs
    rows = connection.execute(
        sa.select(table.c.job_id, table.c.alarms).where(table.c.subject == "gpu")
    )
    assert sorted(tuple(row) for row in rows) == [(1, 1), (2, 2)]


def test_an_old_alarm_counts_only_in_the_windows_that_hold_its_day(connection: Connection) -> None:
    count_namings(connection, [naming(1, NOW - timedelta(days=30))], NOW)
    row = windows(connection)
    assert (row.incidents_7, row.incidents_28, row.incidents_90, row.incidents_all) == (0, 0, 1, 1)


def test_a_finding_without_a_device_counts_nowhere(connection: Connection) -> None:
    nobody = Naming(1, 1, "alpine", None, None, None, "reduced gradient", "reduced", NOW, True)
    count_namings(connection, [nobody], NOW)
    for table in (offender_windows, subject_days, fleet_days):
        assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == 0


def test_the_windows_equal_a_recount_of_the_days_as_time_passes(connection: Connection) -> None:
    chance = random.Random(4)
    now = NOW
    for alarm in range(300):
        now += timedelta(hours=chance.choice((1, 3, 40)))
        at = now - timedelta(days=chance.choice((0, 0, 1, 6, 8, 27, 80, 200)))
        kind = chance.choice(("transient", "nonfinite"))
        one = naming(alarm, at, gpu=chance.randrange(5), kind=kind, new=chance.random() < 0.6)
        count_namings(connection, [one], now)
    now += timedelta(days=17)
    today = advance(connection, now)
    assert advance(connection, now) == today == day_of(now)
    for row in connection.execute(sa.select(offender_windows)):
        for days in WINDOWS:
            table = subject_days.c
            counted = connection.execute(
                sa.select(sa.func.sum(table.alarms), sa.func.sum(table.incidents)).where(
                    table.subject == row.subject,
                    table.subject_key == row.subject_key,
                    table.day > today - days,
                )
            ).one()
            kept = (getattr(row, f"alarms_{days}"), getattr(row, f"incidents_{days}"))
            assert kept == (int(counted[0] or 0), int(counted[1] or 0)), (row.subject_key, days)


def test_audited_time_adds_up_by_cluster_and_day(connection: Connection) -> None:
    day = day_of(NOW)
    count_fleet(
        connection, [("alpine", day, "", "", 0, 0, 90.0), ("boreal", day, "", "", 0, 0, 5.0)]
    )
    count_fleet(connection, [("alpine", day, "", "", 0, 0, 10.5)])
    table = fleet_days.c
    rows = connection.execute(sa.select(table.cluster, table.audited_gpu_seconds))
    assert dict(tuple(row) for row in rows) == {"alpine": 100.5, "boreal": 5.0}
