"""What follows when a GPU is found defective, and when it turns up at work again?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.actions import writing
from app.actions.decide import Decider
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import (
    audit,
    case_machines,
    condemned,
    condemned_reading,
    evidence,
    ids,
    proposals,
)
from app.store.condemned import Condemned
from app.store.condemned_reading import Sighting
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION

CONFIRMED = "hardware confirmed"
REPLACED = "replaced"
BACK = "condemned GPU"
"""Who proposes: such a proposal is not taken back when the case's evidence is judged again."""
REASON_LIMIT = 2_000  # characters


def by_adjudication(connection: Connection, case: DocketCase, after: str, now: datetime) -> None:
    """Condemn the GPU of a case that was confirmed, or take that back; for whom no GPU is, none."""
    if case.gpu_id is None or case.gpu_uuid is None:
        return
    if after != CONFIRMED:
        if condemned.lift(connection, case.id, CONFIRMED, now):
            words = f"GPU {case.gpu_uuid} is not condemned any more: the case is {after}."
            _said(connection, "gpu.not_condemned", words, now, case.id, case.node_id, {})
        return
    _condemn(
        connection,
        Condemned(
            gpu_id=case.gpu_id,
            uuid=case.gpu_uuid,
            case_id=case.id,
            cluster=case.cluster,
            node_id=case.node_id,
            instance_id=case.instance_id,
            at=now,
            why=CONFIRMED,
        ),
        case.last_alarm_at,
    )


def by_replacement(connection: Connection, proposal: Proposal, now: datetime) -> None:
    """Condemn the GPU whose machine was replaced; nothing where the case names no GPU."""
    gpu_id = case_machines.gpu_of(connection, proposal.gpu_uuid)
    if gpu_id is None or proposal.gpu_uuid is None:
        return
    _condemn(
        connection,
        Condemned(
            gpu_id=gpu_id,
            uuid=proposal.gpu_uuid,
            case_id=proposal.case_id,
            cluster=proposal.cluster,
            node_id=proposal.node_id,
            instance_id=proposal.instance_id,
            at=now,
            why=REPLACED,
            proposal_id=proposal.id,
        ),
        proposal.claimed_at or now,
    )


def _condemn(connection: Connection, one: Condemned, since: datetime) -> None:
    """Condemn a GPU, and note where it has been at work since a time."""
    if condemned.condemn(connection, one):
        for seen, cluster, job_id, attempt_id, at in condemned.at_work(connection, one, since):
            condemned.write_seen(connection, [seen], cluster, job_id, attempt_id, at)
        words = f"GPU {one.uuid} is condemned ({one.why}): wherever it works again is said."
        details = {"instance_id": one.instance_id, "why": one.why}
        _said(connection, "gpu.condemned", words, one.at, one.case_id, one.node_id, details)


def tell(context: Context, limit: int = 20) -> int:
    """Tell the cases of condemned GPUs that were seen at work again; give how many.

    Seen at the intake, told here: an audit entry needs the chain's lock before any row's.
    """
    with context.store.reading() as connection:
        waiting = condemned_reading.untold(connection, limit)
    now, days = context.now(), context.settings.proposal_days

    def write(connection: Connection, one: Sighting) -> bool:
        case_id = condemned_reading.newest_case(connection, one.gpu_id) or one.case_id
        told = {"told_at": now, "case_id": case_id}
        if not condemned_reading.change(connection, one.id, "told_at", told):
            return False  # another process told it first
        case_machines.raise_evidence(connection, [case_id])
        since = f"since {one.first_at:%Y-%m-%d %H:%M} UTC"
        details = {
            "gpu_uuid": one.uuid, "node": one.node, "instance_id": one.instance_id,
            "job": one.job, "certain": one.certain, "same_machine": one.same_machine,
        }  # fmt: skip
        words = f"{one.words}, {since}."
        _said(connection, "gpu.condemned_back", words, now, case_id, one.node_id, details)
        _propose_cordon(connection, one, case_id, now, days)
        return True

    done = 0
    for one in waiting:
        done += writing.write(context, lambda connection, one=one: write(connection, one))  # type: ignore[misc]
    return done


def _propose_cordon(
    connection: Connection, one: Sighting, case_id: int, now: datetime, days: float
) -> None:
    """Propose to cordon the machine where the GPU works, unless that waits or stands already."""
    if one.node is None:
        return
    for known in proposals.of_cases(connection, [case_id]).get(case_id, ()):
        same = known.action == "cordon" and known.node_id == one.node_id
        if same and known.status in ("proposed", *proposals.UNDER_WAY):
            return
    ordinal = proposals.next_ordinal(connection, case_id, "cordon")
    values: dict[str, Any] = {
        "id": ids.derive("proposal", case_id, "cordon", ordinal),
        "case_id": case_id,
        "action": "cordon",
        "ordinal": ordinal,
        "cluster": one.cluster,
        "node_id": one.node_id,
        "node_name": one.node,
        "instance_id": one.instance_id,
        "gpu_uuid": one.uuid,
        "status": "proposed",
        "evidence_version": evidence.version(connection, case_id),
        "table_version": str(TABLE_VERSION),
        "why": f"{one.words}. A cordon can be undone.",
        "recommended_by": BACK,
        "created_at": now,
        "expires_at": now + timedelta(days=days),
    }
    proposals.add(connection, values)


def acknowledge(context: Context, sighting_id: int, who: Decider, reason: str) -> str:
    """Take note of a condemned GPU at work, with a reason; give the sentence of what was done."""
    because = reason.strip()
    if not because:
        raise Problem(422, "empty_reason", "Taking note needs a reason.", field="reason")
    if len(because) > REASON_LIMIT:
        message = f"A reason holds at most {REASON_LIMIT} characters."
        raise Problem(422, "reason_too_long", message, field="reason")
    if not who.may("operator"):
        raise forbidden(f"Taking note needs the role operator; {who.name} has {who.role}.")
    now = context.now()

    def write(connection: Connection) -> str | Problem:
        found = condemned_reading.one(connection, sighting_id)
        if found is None:
            return not_found("no sighting with this id")
        values = {"acknowledged_by": who.name, "acknowledged_at": now, "reason": because}
        if not condemned_reading.change(connection, sighting_id, "acknowledged_at", values):
            return Problem(409, "already_noted", f"{found.acknowledged_by} took note already.")
        said = f"{who.name} took note of {found.uuid} at work in {found.job}: {because}"
        _said(
            connection, "gpu.condemned_noted", said, now, found.case_id, found.node_id, {},
            actor=who.name,
        )  # fmt: skip
        return said

    written = writing.write(context, write)
    if isinstance(written, Problem):
        raise written
    return written


def _said(
    connection: Connection,
    verb: str,
    words: str,
    now: datetime,
    case_id: int,
    node_id: int | None,
    details: dict[str, Any],
    actor: str = "service",
) -> None:
    audit.append(
        connection,
        actor,
        verb,
        words,
        at=now,
        case_id=case_id,
        node_id=node_id,
        details=details,
    )
