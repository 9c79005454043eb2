"""Which limits are in force, since when, set by whom?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import run_settings
from app.store.columns import micros
from app.store.intake.upsert import insert_new
from app.store.tables import settings
from witness.rules.rail_policy import BY_NAME, RailPolicy, checked

POLICY = "rails.policy"
_LOCK = "rails.lock"


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy; who set it and when are None while the assumed one holds."""

    policy: RailPolicy
    changed_by: str | None
    changed_at: datetime | None


def read(connection: Connection) -> RailPolicy:
    """Read the limits in force, the assumed ones where nobody has set any."""
    return in_force(connection).policy


def in_force(connection: Connection) -> InForce:
    """Read the limits in force with who set them."""
    kept = run_settings.entry(connection, POLICY)
    if kept is None:
        return InForce(RailPolicy(), None, None)
    # A limit that an earlier version kept and this one does not know is left out.
    known = {name: value for name, value in kept.value["values"].items() if name in BY_NAME}
    policy = checked(known, int(kept.value["version"]))
    return InForce(policy, kept.changed_by, kept.changed_at)


def keep(connection: Connection, policy: RailPolicy, *, by: str, at: datetime) -> None:
    """Put other limits in force."""
    value = {"version": policy.version, "values": policy.values}
    run_settings.keep(connection, POLICY, value, by=by, at=at)


def lock(connection: Connection, at: datetime) -> None:
    """Keep everybody else from counting and approving until the commit.

    Without it two processes could both find one place left and both take it.  SQLite's writer
    holds the whole database and knows no such clause.
    """
    wanted = sa.select(settings.c.name).where(settings.c.name == _LOCK).with_for_update()
    if connection.execute(wanted).first() is None:
        row = {"name": _LOCK, "value": "true", "changed_by": "service"}
        insert_new(connection, settings, [{**row, "changed_at": micros(at)}])
        connection.execute(wanted).first()
