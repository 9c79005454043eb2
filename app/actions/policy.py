"""How are the limits changed: by whom, from what to what, and what does a proposal then hold by?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from app.actions import writing
from app.config import Settings
from app.context import Context
from app.errors import Problem
from app.store import audit, rail_policy
from app.store.connection import Connection
from witness.rules.rail_policy import BadLimit, RailPolicy, changes, checked


def change(
    context: Context, values: Mapping[str, object], seen: str, by: str
) -> tuple[RailPolicy, tuple[str, ...]]:
    """Put other limits in force; give them and what differs, () where nothing does.

    `seen` is the version that the person changed.  Raises Problem 409 when another one is in force
    by now, 422 for a limit that cannot be.  What is not named stays as it is.
    """
    now = context.now()

    def write(connection: Connection) -> tuple[RailPolicy, tuple[str, ...]] | Problem:
        rail_policy.lock(connection, now)
        before = rail_policy.read(connection)
        if before.name != seen:
            return changed_meanwhile(before, seen)
        try:
            after = checked({**before.values, **values}, before.version + 1)
        except BadLimit as bad:
            return Problem(422, "invalid", str(bad), field=bad.field)
        said = changes(before, after)
        if not said:
            return before, ()
        rail_policy.keep(connection, after, by=by, at=now)
        audit.append(
            connection,
            by,
            "policy.changed",
            f"{by} changed the limits to version {after.name}: {'; '.join(said)}.",
            at=now,
            details={
                "from": {"version": before.name, **before.values},
                "to": {"version": after.name, **after.values},
            },
        )
        return after, said

    done = writing.write(context, write)
    if isinstance(done, Problem):
        raise done
    return done


def changed_meanwhile(in_force: RailPolicy, seen: str) -> Problem:
    """Say that other limits hold than those that were shown."""
    return Problem(
        409,
        "policy_changed",
        f"The limits were changed since this was shown: version {seen} then, "
        f"version {in_force.name} now. Nothing was decided; look at it again.",
        more={"seen": seen, "policy": in_force.name},
    )


def four_eyes(policy: RailPolicy, settings: Settings) -> bool:
    """Tell whether requester and approver differ; by the environment until a policy is set."""
    return settings.four_eyes if policy.version == 0 else policy.four_eyes


def approve_lasts(policy: RailPolicy, settings_days: float) -> timedelta:
    """Give how long a proposal waits; by the environment until a policy is set."""
    if policy.version == 0:
        return timedelta(days=settings_days)
    return timedelta(hours=policy.approve_hours)
