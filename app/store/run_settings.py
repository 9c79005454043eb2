"""What is changed while the service runs: the brake, the session key, ended sessions?"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import settings

BRAKE = "brake"
SESSION_KEY = "session.key"
ENDED = "session.ended:"
# Built once: the limits of actions read several values in every decision.
_ENTRY = sa.select(settings.c.value, settings.c.changed_at, settings.c.changed_by).where(
    settings.c.name == sa.bindparam("name")
)


@dataclass(frozen=True, slots=True)
class Brake:
    """Whether approved actions may go out; undoing is never held back."""

    pulled: bool
    reason: str
    changed_at: datetime | None  # None: never touched
    changed_by: str | None


def read(connection: Connection, name: str) -> Any | None:
    """Read one value; None when it was never set."""
    found = connection.execute(_ENTRY, {"name": name}).first()
    return None if found is None else json.loads(found.value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One value with when it was set, and by whom."""

    value: Any
    changed_at: datetime
    changed_by: str


def entry(connection: Connection, name: str) -> Entry | None:
    """Read one value with when it was set; None when it never was."""
    row = connection.execute(_ENTRY, {"name": name}).first()
    return None if row is None else Entry(json.loads(row.value), row.changed_at, row.changed_by)


def keep(connection: Connection, name: str, value: Any, *, by: str, at: datetime) -> None:
    """Set one value."""
    row = {"value": json.dumps(value), "changed_at": at, "changed_by": by}
    changed = connection.execute(settings.update().where(settings.c.name == name).values(row))
    if changed.rowcount == 0:
        connection.execute(settings.insert().values(name=name, **row))


def brake(connection: Connection) -> Brake:
    """Read the brake."""
    row = connection.execute(_ENTRY, {"name": BRAKE}).first()
    if row is None:
        return Brake(False, "", None, None)
    value = json.loads(row.value)
    return Brake(bool(value["pulled"]), str(value["reason"]), row.changed_at, row.changed_by)


def set_brake(connection: Connection, pulled: bool, reason: str, *, by: str, at: datetime) -> bool:
    """Pull or release the brake; False when it already stood so and nothing was changed."""
    if brake(connection).pulled == pulled:
        return False
    keep(connection, BRAKE, {"pulled": pulled, "reason": reason}, by=by, at=at)
    return True


def ensure_session_key(connection: Connection, at: datetime) -> str:
    """Give the key that signs sessions, made at the first use; all processes share it."""
    known = read(connection, SESSION_KEY)
    if known is None:
        known = secrets.token_urlsafe(48)
        keep(connection, SESSION_KEY, known, by="service", at=at)
    return str(known)


def end_session(
    connection: Connection, session_id: str, *, by: str, at: datetime, lasts: timedelta
) -> None:
    """Remember that one session was signed out; forget those that have run out anyway.

    `lasts` is the longest life of a session: an older one is refused by its cookie's age.
    """
    ended_long_ago = settings.c.changed_at < at - lasts
    connection.execute(
        settings.delete().where(settings.c.name.startswith(ENDED, autoescape=True), ended_long_ago)
    )
    keep(connection, ENDED + session_id, True, by=by, at=at)


def is_ended(connection: Connection, session_id: str) -> bool:
    """Tell whether a session was signed out."""
    return read(connection, ENDED + session_id) is not None
