"""How are old samples deleted, in small steps, and what stays of them?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.context import Context
from app.store import audit
from app.store.connection import Connection
from app.store.telemetry_retention import Deleted, Limits, count_due, delete_samples
from app.strict_json import rfc3339

AT_ONCE = 100
"""Windows of one transaction: a few thousand rows, so that what comes in does not have to wait."""
BY_ITSELF = "retention"


@dataclass(frozen=True, slots=True)
class Ages:
    """After how many days samples may go; 0: never."""

    alarms: float
    asked: float

    def limits(self, now: datetime) -> Limits:
        """Give the moments before which samples may go, counted from when they were pulled."""
        alarms = now - timedelta(days=self.alarms) if self.alarms else None
        return Limits(alarms, now - timedelta(days=self.asked) if self.asked else None)


def ages(context: Context) -> Ages:
    """Give the ages of the settings."""
    settings = context.settings
    return Ages(settings.telemetry_days, settings.telemetry_asked_days)


def purge(
    context: Context,
    allowed: Ages,
    actor: str = BY_ITSELF,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Deleted:
    """Delete samples older than allowed; give what was deleted.

    What belongs to an alarm of an open case, or of one confirmed as hardware, is never deleted. The
    first step of a run that deletes anything writes the audit entry in its own transaction, so that
    a run which is cut off has its entry; what it left is the next one's.
    """
    now = context.now()
    limits = allowed.limits(now)
    with context.store.reading() as connection:
        due = count_due(connection, limits)
    if not due:
        return Deleted()
    done = Deleted()
    while not is_stopping():
        is_first = not done.windows

        def step(connection: Connection, is_first: bool = is_first) -> Deleted:
            found = delete_samples(connection, limits, now, AT_ONCE)
            if found.windows and is_first:
                _note(connection, actor, limits, due, now)
            return found

        found = context.store.write(step)
        done += found
        if found.windows < AT_ONCE:
            break
    return done


def _note(connection: Connection, actor: str, limits: Limits, due: int, now: datetime) -> None:
    told = [
        f"{whose} pulled before {rfc3339(limit)}"
        for whose, limit in (("for alarms,", limits.alarms), ("for people,", limits.asked))
        if limit is not None
    ]
    words = f"Began to delete the samples of {due} telemetry windows: {' and '.join(told)}."
    about = {"windows": due, "alarms_before": limits.alarms, "asked_before": limits.asked}
    audit.append(connection, actor, "telemetry_purged", words, at=now, details=about)


def deleted_words(at: datetime) -> str:
    """Say that samples are gone, and that what was read of them is not."""
    return f"The samples were deleted on {at:%Y-%m-%d} by retention; what was read of them is kept."
