"""When is the brake pulled, by hand or by itself, and what becomes of what was approved before?

While it is pulled nothing goes out but what undoes.  What was approved before is refused there and
then, so that no old queue runs when it is released.  A sign that a person has seen and released the
brake on does not pull it again; newer evidence of the same kind does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.actions import rails, writing
from app.context import Context
from app.errors import Problem
from app.store import audit, brake_signs, proposals, rail_policy, run_settings
from app.store.connection import Connection
from witness.rules.rail_policy import RailPolicy

KNOWN = "brake.known"
# An alarm is looked at for so long: the service may have been away when it came in.
ALARM_LASTS = timedelta(hours=1)
SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Sign:
    """Something that pulls the brake; `mark` grows with newer evidence of the same sign."""

    key: str
    mark: int
    words: str


def signs(connection: Connection, policy: RailPolicy, now: datetime) -> tuple[Sign, ...]:
    """Find every sign that stands now, also those that a person has seen before."""
    found = []
    for one in brake_signs.named_at_once(
        connection, now - ALARM_LASTS, policy.brake_half_job_nodes
    ):
        if one.of is not None and 2 * one.nodes >= one.of:
            words = (
                f"half a job or more was named at once: {one.nodes} of {one.of} nodes by one alarm "
                f"at step {one.step}, which points to software"
            )
            found.append(
                Sign(f"half_job:{one.alarm_id}", brake_signs.as_mark(one.received_at), words)
            )
    since = now - timedelta(hours=policy.brake_digest_hours)
    for digest in brake_signs.digests(connection, since, policy.brake_digest_cases):
        words = (
            f"one code digest stands behind {digest.cases} open cases "
            f"({digest.digest[:24]}), which points to software"
        )
        found.append(Sign(f"digest:{digest.digest}", brake_signs.as_mark(digest.newest_at), words))
    storm = _storm(connection, policy, now)
    return (*found, storm) if storm is not None else tuple(found)


def _storm(connection: Connection, policy: RailPolicy, now: datetime) -> Sign | None:
    since = now - timedelta(minutes=policy.brake_storm_minutes)
    released = run_settings.brake(connection).changed_at
    if released is not None:
        since = max(since, released)
    nodes, newest = brake_signs.cordoned_nodes(connection, since)
    if nodes < policy.brake_storm_nodes or newest is None:
        return None
    words = (
        f"cordons of {nodes} nodes were proposed or approved within "
        f"{policy.brake_storm_minutes:g} minutes; {policy.brake_storm_nodes} are the limit"
    )
    return Sign("storm", newest, words)


def look(context: Context) -> bool:
    """Pull the brake where a new sign asks for it; tell whether it was pulled."""
    now = context.now()
    with context.store.reading() as connection:
        if run_settings.brake(connection).pulled or not _new(connection, now):
            return False

    def write(connection: Connection) -> bool:
        new = _new(connection, now)
        if not new:
            return False
        _remember(connection, new, now)
        return pull(connection, "; ".join(one.words for one in new), by=SERVICE, now=now)

    return writing.write(context, write)


def _new(connection: Connection, now: datetime) -> tuple[Sign, ...]:
    known = run_settings.read(connection, KNOWN) or {}
    policy = rail_policy.read(connection)
    return tuple(
        one for one in signs(connection, policy, now) if one.mark > int(known.get(one.key, -1))
    )


def _remember(connection: Connection, found: tuple[Sign, ...], now: datetime) -> None:
    known = run_settings.read(connection, KNOWN) or {}
    marks = {**known, **{one.key: one.mark for one in found}}
    # One alarm is looked at for an hour; its mark is of no use after that.
    old = brake_signs.as_mark(now - 2 * ALARM_LASTS)
    kept = {k: m for k, m in marks.items() if not k.startswith("half_job:") or m > old}
    run_settings.keep(connection, KNOWN, kept, by=SERVICE, at=now)


def pull(connection: Connection, reason: str, *, by: str, now: datetime) -> bool:
    """Pull the brake and refuse what is approved and not sent; False when it was pulled before."""
    rail_policy.lock(connection, now)
    if not run_settings.set_brake(connection, True, reason, by=by, at=now):
        return False
    audit.append(
        connection,
        by,
        "brake.pulled",
        f"{by} pulled the brake: {reason}",
        at=now,
        details={"reason": reason},
    )
    _refuse_what_waits(connection, reason, by, now)
    return True


def _refuse_what_waits(connection: Connection, reason: str, by: str, now: datetime) -> None:
    for proposal_id in proposals.waiting_for_execution(connection, limit=100_000):
        proposal = proposals.get(connection, proposal_id)
        if proposal is None or rails.undoes(proposal):
            continue
        words = (
            f"The brake was pulled by {by} before it was sent: {reason}. Nothing was changed. "
            "It may be asked for again."
        )
        values = {"status": "refused", "finished_at": now, "outcome": words}
        if proposals.move(connection, proposal_id, ("approved",), values):
            audit.append(
                connection,
                SERVICE,
                "proposal.refused",
                f"{rails.title(proposal)}, approved by {proposal.decided_by}: {words}",
                at=now,
                case_id=proposal.case_id,
                proposal_id=proposal_id,
                node_id=proposal.node_id,
                details={"status": "refused", "rail": "brake"},
            )


def release(connection: Connection, reason: str, *, by: str, now: datetime) -> bool:
    """Release the brake on what is known by now; False when it was not pulled."""
    rail_policy.lock(connection, now)
    seen = signs(connection, rail_policy.read(connection), now)
    if not run_settings.set_brake(connection, False, reason, by=by, at=now):
        return False
    _remember(connection, seen, now)
    audit.append(
        connection,
        by,
        "brake.released",
        f"{by} released the brake: {reason}",
        at=now,
        details={"reason": reason, "seen": [one.words for one in seen]},
    )
    return True


def set_by_hand(context: Context, pulled: bool, reason: str, by: str) -> bool:
    """Pull or release with a reason; False when it stood so before and nothing was changed."""
    if not reason.strip():
        raise Problem(422, "invalid", "Say why; the reason is kept.", field="reason")
    now = context.now()
    move = pull if pulled else release
    return writing.write(context, lambda c: move(c, reason.strip(), by=by, now=now))
