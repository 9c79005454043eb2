"""How does a person, or a program, ask for an action that no rule proposes?

It becomes a proposal like any other: previewed, held back by the same rails, decided by somebody,
and by somebody else where it destroys. New evidence does not take it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.actions import policy, rails, writing
from app.actions.deciders import Decider
from app.cluster.provider.ports import CHECKS
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.filters import bad
from app.store import audit, casework_rows, evidence, ids, proposals, rail_policy
from app.store.casework_rows import CaseRow
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION
from witness.rules.identity import instance_id
from witness.rules.proposal import NO_INSTANCE, NO_NODE

WAYS: Mapping[str, tuple[str, ...]] = {
    "targeted_audit": (),
    "cordon": (),
    "deep_health_check": (),
    "reboot": ("api", "label"),
    "replace": ("api", "label", "gke_label", "gke_host"),
}
"""What can be asked for, and in which ways; none chosen: as the cluster needs it."""
BY_INSTANCE = frozenset({"deep_health_check", "reboot", "replace"})
BY_NODE = frozenset({"gke_label", "gke_host"})
OPEN = (*proposals.PENDING, *proposals.UNDER_WAY)


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks for; `way` None: as the cluster's kind needs it."""

    action: str
    reason: str
    way: str | None = None
    checks: tuple[str, ...] = field(default=())

    @property
    def parameters(self) -> dict[str, Any]:
        """Give what the action is carried out with."""
        given = {"way": self.way, "checks": list(self.checks)}
        return {name: value for name, value in given.items() if value}


def request(context: Context, case_id: int, asked: Asked, decider: Decider) -> Proposal:
    """Propose an action on the machine of a case; raise Problem where that makes no sense."""
    _check(asked, decider)
    now, days = context.now(), context.settings.proposal_days

    def write(connection: Connection) -> Proposal | Problem:
        found = casework_rows.read_cases(connection, [case_id])
        if not found:
            return not_found("no case with this id")
        evidence.version(connection, case_id, lock=True)
        known = proposals.of_cases(connection, [case_id]).get(case_id, ())
        same = _same(known, found[0], asked)
        if same is not None:
            words = f"{rails.title(same)} is there already: {same.status}."
            return Problem(409, "already_there", words, more={"proposal": ids.show(same.id)})
        lasts = policy.approve_lasts(rail_policy.read(connection), days)
        return _keep(connection, found[0], asked, decider, now, lasts)

    written = writing.write(context, write)
    if isinstance(written, Problem):
        raise written
    return written


def _check(asked: Asked, decider: Decider) -> None:
    ways = WAYS.get(asked.action)
    if ways is None:
        raise bad("action", f"action must be one of {', '.join(sorted(WAYS))}.")
    if not decider.may("operator"):
        raise forbidden(f"Asking for an action needs the role operator; {decider.name} has not.")
    if asked.way is not None and asked.way not in ways:
        raise bad("way", f"way must be one of {', '.join(ways) or 'none'} here.")
    wrong = [one for one in asked.checks if one not in CHECKS]
    if wrong or (asked.checks and asked.action != "deep_health_check"):
        raise bad("checks", f"checks must be some of {', '.join(CHECKS)}.")
    if not asked.reason.strip():
        raise bad("reason", "reason must say why; it stands in the audit.")


def _same(known: Sequence[Proposal], case: CaseRow, asked: Asked) -> Proposal | None:
    return next(
        (
            one
            for one in known
            if one.action == asked.action and one.node_id == case.node_id and one.status in OPEN
        ),
        None,
    )


def _blocked(case: CaseRow, asked: Asked) -> str | None:
    if case.node is None:
        return NO_NODE.rstrip(".")
    # On GKE no instance has an id of that form: the node is ordered for, by its uid.
    needed = asked.action in BY_INSTANCE and asked.way not in BY_NODE
    if needed and instance_id(None, case.instance_id, None) is None:
        return NO_INSTANCE.rstrip(".")
    return None


def _keep(
    connection: Connection,
    case: CaseRow,
    asked: Asked,
    decider: Decider,
    now: datetime,
    lasts: timedelta,
) -> Proposal:
    ordinal = proposals.next_ordinal(connection, case.id, asked.action)
    row_id = ids.derive("proposal", case.id, asked.action, ordinal)
    values = {
        "id": row_id,
        "case_id": case.id,
        "action": asked.action,
        "ordinal": ordinal,
        "cluster": case.cluster,
        "node_id": case.node_id,
        "node_name": case.node,
        "node_uid": case.node_uid,
        "instance_id": case.instance_id,
        "gpu_uuid": case.gpu_uuid,
        "status": "proposed",
        "evidence_version": case.evidence_version,
        "table_version": str(TABLE_VERSION),
        "why": asked.reason.strip(),
        "blocked": _blocked(case, asked),
        "recommended_by": decider.name,
        "created_at": now,
        "expires_at": now + lasts,
        "parameters": asked.parameters,
    }
    proposals.add(connection, values)
    written = proposals.get(connection, row_id)
    assert written is not None
    audit.append(
        connection,
        decider.name,
        "proposal.asked",
        f"{rails.title(written)} asked for by {decider.name}: {written.why}",
        at=now,
        case_id=case.id,
        proposal_id=written.id,
        node_id=case.node_id,
        details={"action": asked.action, **asked.parameters},
    )
    return written
