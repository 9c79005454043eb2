"""Which kept samples are old enough to be deleted, and which are evidence that must stay?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    cases,
    findings,
    telemetry_blocks,
    telemetry_wants,
    telemetry_windows,
)
from app.store.telemetry_queue import A_PERSON, OPEN

CONFIRMED = "hardware confirmed"


@dataclass(frozen=True, slots=True)
class Limits:
    """Samples pulled before these may go; None: never.

    `alarms` is for windows that an alarm asked for, `asked` for those that only people did.
    """

    alarms: datetime | None
    asked: datetime | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted: windows, samples, bytes."""

    windows: int = 0
    samples: int = 0
    size: int = 0

    def __add__(self, other: Deleted) -> Deleted:
        """Add up two batches."""
        return Deleted(
            self.windows + other.windows, self.samples + other.samples, self.size + other.size
        )


def count_due(connection: Connection, limits: Limits) -> int:
    """Count the windows whose samples may go."""
    if limits == Limits(None, None):
        return 0
    query = sa.select(sa.func.count()).select_from(telemetry_windows).where(_due(limits))
    return int(connection.execute(query).scalar_one())


def delete_samples(connection: Connection, limits: Limits, now: datetime, most: int) -> Deleted:
    """Delete the samples of some windows, `most` at once, those pulled first before others.

    The windows stay with what was said of them, and so do readings and what moved. A window that
    somebody else is changing right now is left to the next run.
    """
    if limits == Limits(None, None):
        return Deleted()
    table, kept = telemetry_windows, telemetry_blocks
    chosen = (
        sa.select(table.c.id)
        .where(_due(limits))
        .order_by(table.c.pulled_at, table.c.id)
        .limit(most)
    )
    if connection.dialect.name != "sqlite":
        chosen = chosen.with_for_update(skip_locked=True, of=table)
    found = sorted(connection.execute(chosen).scalars())
    if not found:
        return Deleted()
    mine = kept.c.window_id.in_(found)
    samples, size = connection.execute(
        sa.select(
            sa.func.coalesce(sa.func.sum(kept.c.count), 0),
            sa.func.coalesce(sa.func.sum(sa.func.length(kept.c.data)), 0),
        ).where(mine)
    ).one()
    connection.execute(kept.delete().where(mine))
    connection.execute(table.update().where(table.c.id.in_(found)).values(purged_at=now))
    return Deleted(len(found), int(samples), int(size))


def _due(limits: Limits) -> sa.ColumnElement[bool]:
    table = telemetry_windows
    latest = max(one for one in (limits.alarms, limits.asked) if one is not None)
    expired = []
    if limits.alarms is not None:
        old = table.c.pulled_at < limits.alarms
        expired.append(sa.and_(old, _of_an_alarm(), ~_is_evidence()))
    if limits.asked is not None:
        expired.append(sa.and_(table.c.pulled_at < limits.asked, ~_of_an_alarm()))
    return sa.and_(
        table.c.purged_at.is_(None),
        table.c.pulled_at < latest,
        table.c.samples > 0,
        table.c.state.not_in(OPEN),
        sa.or_(*expired),
    )


def _of_an_alarm() -> sa.ColumnElement[bool]:
    return (
        sa.select(telemetry_wants.c.window_id)
        .where(
            telemetry_wants.c.window_id == telemetry_windows.c.id,
            telemetry_wants.c.alarm_id != A_PERSON,
        )
        .correlate(telemetry_windows)
        .exists()
    )


def _is_evidence() -> sa.ColumnElement[bool]:
    """Tell whether an alarm of an open case asks for it, or of one that was confirmed."""
    alarms_found = findings.join(cases, cases.c.id == findings.c.case_id)
    return (
        sa.select(telemetry_wants.c.window_id)
        .select_from(
            telemetry_wants.join(alarms_found, findings.c.alarm_id == telemetry_wants.c.alarm_id)
        )
        .where(
            telemetry_wants.c.window_id == telemetry_windows.c.id,
            sa.or_(cases.c.status == "open", cases.c.adjudication == CONFIRMED),
        )
        .correlate(telemetry_windows)
        .exists()
    )
