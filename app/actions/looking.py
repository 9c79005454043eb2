"""What became of what was ordered: seen by reading, again and again, until the row has ended?

Everything here only reads the outside world. Any worker of any process may look; the row is taken
for one look by moving its next look on, so two of them rarely do it at once, and harmlessly.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, MutableMapping
from datetime import datetime, timedelta
from typing import Any

from app.actions import after_look, rails, writing
from app.actions.orders.book import order_of
from app.actions.orders.ports import Order, Sight
from app.actions.reaching import cordon_of, describe, may_be_its
from app.context import Context
from app.store import audit, held_nodes, machine_links, proposals
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.proposals import Proposal
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

LOOKED_FOR = ("accepted", "waiting", "unknown")
DUE = 50  # rows looked for in one round
LEASE = timedelta(minutes=2)  # longer than one look
REST_S = 60.0  # a cluster that hung for one look leaves the next ones to the others
SLOWEST = timedelta(minutes=10)  # between two looks at what takes hours or days
# What is not seen by then is left to a person: reading for ever would hide that nobody knows.
GIVE_UP = {"unknown": timedelta(hours=24), "accepted": timedelta(days=14)}
GIVE_UP["waiting"] = GIVE_UP["accepted"]
ENDS = ("verified", "failed", "refused", "gone")


def look_due(
    context: Context,
    is_stopping: Callable[[], bool] = lambda: False,
    resting: MutableMapping[str, float] | None = None,
) -> int:
    """Look for the effect of orders whose next look is due; give how many were looked for.

    `resting` remembers between rounds which clusters hung, and until when (monotonic seconds) they
    are left alone: one that does not answer must not hold up the looks at all others.
    """
    resting = {} if resting is None else resting
    with context.store.reading() as connection:
        away = [name for name, until in resting.items() if until > time.monotonic()]
        due = proposals.due_for_a_look(connection, context.now(), DUE, away)
    done = 0
    for proposal_id, cluster in due:
        if is_stopping():
            break
        began = time.monotonic()
        if resting.get(cluster, 0.0) > began:
            continue
        done += _look_in_turn(context, proposal_id)
        if time.monotonic() - began > context.settings.cluster_timeout_s / 2:
            resting[cluster] = time.monotonic() + REST_S
    return done


def _look_in_turn(context: Context, proposal_id: int) -> bool:
    """Look at one of many: a fault of ours at one row must not keep the others from their look."""
    try:
        return look_again(context, proposal_id) is not None
    except (StoreUnavailable, QueueFull):
        raise
    except Exception:
        log.exception("a look at an order met a fault of ours; it is looked for again later")
        return False


def look_again(context: Context, proposal_id: int, by: str | None = None) -> Proposal | None:
    """Look once; give the row as it stands then, None where there is nothing to look for.

    `by` names a person who asked for it: that is audited whatever was seen.
    """
    taken = _take(context, proposal_id)
    order = order_of(taken) if taken else None
    if taken is None or order is None:
        return None
    sight = order.look(context, taken)
    return _keep(context, taken, order, sight, by)


def _take(context: Context, proposal_id: int) -> Proposal | None:
    now = context.now()

    def write(connection: Connection) -> Proposal | None:
        before = proposals.get(connection, proposal_id)
        if before is None or before.status not in LOOKED_FOR:
            return None
        values = {"next_look_at": now + LEASE, "looks": before.looks + 1}
        moved = proposals.move(
            connection, proposal_id, (before.status,), values, looks=before.looks
        )
        return proposals.get(connection, proposal_id) if moved else None

    return context.store.write(write)


def _keep(
    context: Context, taken: Proposal, order: Order, sight: Sight, by: str | None
) -> Proposal | None:
    now = context.now()

    def write(connection: Connection) -> Proposal | None:
        before = proposals.get(connection, taken.id)
        if before is None or before.status != taken.status:
            return before  # the one who called has recorded the truth meanwhile
        values, said = _judged(before, order, sight, now)
        proposals.move(connection, taken.id, (before.status,), values)
        _note_node(connection, before, sight, now)
        if sight.link is not None:
            machine_links.keep(connection, before.cluster, sight.link, now, before.id)
        after = proposals.get(connection, taken.id)
        assert after is not None
        after_look.follow(connection, context.settings, after, sight, now)
        if said is not None or by is not None:
            _audit(connection, after, said or ("read_again", sight.words), by, now, sight.details)
        return after

    return writing.write(context, write)


def _judged(
    before: Proposal, order: Order, sight: Sight, now: datetime
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Work out what a look makes of the row, and what is to be said of it; None: nothing new."""
    details = {**before.details, **sight.details, "standing": sight.words}
    details["seen_at"] = now.isoformat()
    if sight.state is not None:
        details["node"] = describe(sight.state)
    values: dict[str, Any] = {"details": details}
    status = _legal(before.status, sight.status)
    if status in ENDS:
        values |= {"status": status, "finished_at": now, "next_look_at": None}
        values["outcome"] = _outcome(before, sight, status)
        return values, (status, sight.words)
    age = now - (before.claimed_at or before.decided_at or before.created_at)
    values["next_look_at"] = now + _pause(order, before, age)
    said = None
    if status is not None and status != before.status:
        values |= {"status": status, "outcome": sight.words}
        said = (status, sight.words)
    elif sight.words != before.details.get("standing"):
        # Of an order that was answered, the answer stays in the row, and the look beside it.
        said = ("seen", sight.words)
    # What a late look proves of an unknown one is not given up at once.
    if age > GIVE_UP[str(values.get("status", before.status))]:
        words = f"Not seen to have come about in {_long(age)}; it is not looked for any more."
        details["given_up_at"] = now.isoformat()
        values |= {"status": "unknown", "next_look_at": None, "outcome": f"{words} {sight.words}"}
        return values, ("unknown", words)
    if age > order.stuck_after and "stuck_since" not in details and before.status != "unknown":
        details["stuck_since"] = now.isoformat()
        said = ("stuck", f"Stuck: not seen to have come about in {_long(age)}. {sight.words}")
    return values, said


def _legal(before: str, seen: str | None) -> str | None:
    """Say what a row may become: one that waits never goes back to merely accepted."""
    if seen is None or (before == "waiting" and seen in ("accepted", "unknown")):
        return None
    if before == "accepted" and seen == "unknown":
        return None
    return seen


def _outcome(before: Proposal, sight: Sight, status: str) -> str:
    if before.status == "unknown":
        return f"{before.outcome} Read again: {sight.words}"
    if status != "verified":
        return f"Read again: {sight.words}"
    if before.action in ("cordon", "uncordon"):
        return f"{before.outcome} Read again: it stands."
    return sight.words


def _pause(order: Order, before: Proposal, age: timedelta) -> timedelta:
    """Look often at first, then more and more seldom."""
    return max(order.look_every, min(age / 10, SLOWEST))


def _long(age: timedelta) -> str:
    minutes = int(age.total_seconds() // 60)
    return f"{minutes} minutes" if minutes < 180 else f"{minutes // 60} hours"


def _note_node(connection: Connection, proposal: Proposal, sight: Sight, now: datetime) -> None:
    if proposal.node_id is None:
        return
    left = proposal.action == "replace" and sight.status == "verified" and sight.link is not None
    if sight.status == "gone" or left:
        held_nodes.note(connection, proposal.node_id, None, None, now)
    elif (
        sight.state is not None
        and sight.state.name == proposal.node_name
        and may_be_its(sight.state, proposal)
    ):
        held_nodes.note(connection, proposal.node_id, sight.state.uid, cordon_of(sight.state), now)


def _audit(
    connection: Connection,
    proposal: Proposal,
    said: tuple[str, str],
    by: str | None,
    now: datetime,
    details: Mapping[str, Any],
) -> None:
    verb, words = said
    title = rails.title(proposal)
    asked = f"{by} had the cluster read again for {title[:1].lower()}{title[1:]}: {words}"
    audit.append(
        connection,
        by or "service",
        f"proposal.{verb}",
        asked if by else f"{title}, approved by {proposal.decided_by}: {words}",
        at=now,
        case_id=proposal.case_id,
        proposal_id=proposal.id,
        node_id=proposal.node_id,
        details={"status": proposal.status, "looks": proposal.looks, **details},
    )
