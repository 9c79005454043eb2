"""What is proposed for the machine that came in place of a replaced one?

Nothing is done by itself: a new machine is no proof of a sound one, and its test can destroy.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.actions import condemned, rails
from app.actions.orders.ports import Link
from app.store import audit, evidence, ids, proposals
from app.store.connection import Connection
from app.store.intake.rank_map_rows import node_id
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION

SCREENING = "screening"
"""Who proposes: such a proposal is not taken back when the case's evidence is judged again."""
CHECKS = ("MultiNodeTrainingValidation",)
WHY = (
    "A new machine took the place of {old}. A short distributed training job on it, before it "
    "takes work, finds what the hardware reports; a passed one clears nothing. It can reboot or "
    "replace the machine by itself."
)


def after_replacement(
    connection: Connection,
    proposal: Proposal,
    link: Link | None,
    now: datetime,
    days: float = 7.0,
) -> Proposal | None:
    """Condemn the GPU that was replaced and propose to test the new machine, once.

    Call it inside `writing.write`, once the replacement is verified. Gives the new proposal; None
    where the new machine is not known, or where one was proposed before. `days` until it expires.
    """
    condemned.by_replacement(connection, proposal, now)
    if link is None or link.new_instance_id == link.old_instance_id:
        return None
    before = proposals.of_cases(connection, [proposal.case_id]).get(proposal.case_id, ())
    if any(
        one.recommended_by == SCREENING and one.instance_id == link.new_instance_id
        for one in before
    ):
        return None
    ordinal = proposals.next_ordinal(connection, proposal.case_id, "deep_health_check")
    values = _values(connection, proposal, link, ordinal)
    values |= {"created_at": now, "expires_at": now + timedelta(days=days)}
    proposals.add(connection, values)
    audit.append(
        connection,
        "service",
        "screening.proposed",
        f"{rails.action_word('deep_health_check')} of the new machine {link.new_instance_id} "
        f"proposed: it took the place of {link.old_instance_id}.",
        at=now,
        case_id=proposal.case_id,
        proposal_id=values["id"],
        node_id=values["node_id"],
        details={"replacement": ids.show(proposal.id), "how": link.how, "checks": list(CHECKS)},
    )
    return proposals.get(connection, values["id"])


def _values(connection: Connection, proposal: Proposal, link: Link, ordinal: int) -> dict[str, Any]:
    return {
        "id": ids.derive("proposal", proposal.case_id, "deep_health_check", ordinal),
        "case_id": proposal.case_id,
        "action": "deep_health_check",
        "ordinal": ordinal,
        "cluster": proposal.cluster,
        "node_id": node_id(proposal.cluster, link.new_node, link.new_instance_id),
        "node_name": link.new_node,
        "instance_id": link.new_instance_id,
        "gpu_uuid": None,
        "status": "proposed",
        "evidence_version": evidence.version(connection, proposal.case_id),
        "table_version": str(TABLE_VERSION),
        "why": WHY.format(old=link.old_instance_id),
        "recommended_by": SCREENING,
        "parameters": {"way": "api", "checks": list(CHECKS)},
    }
