"""Which proposals does a judgement ask for, and which of those that wait does it take back?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.store import casework_rows as rows
from app.store import ids, proposals
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.decision_table import BY_ID, TABLE_VERSION
from witness.rules.proposal import ProposedAction, Recommendation

# An alarm that names nobody on more nodes than this gets no cordon each: that would stop a fleet.
NODES_WITHOUT_NAME = 4
# These propose on grounds of their own, which a new judgement of the alarms says nothing about.
OWN_GROUND = frozenset({"screening", "condemned GPU", "return to service", "slice"})
NO_ROW = "no row"
# Whatever else stands as who recommended it is a person's name, or a token's.
RULES = frozenset({*BY_ID, NO_ROW})

TESTS = frozenset({"deep_health_check", "targeted_audit"})
UNDER_WAY_OR_DONE = frozenset(
    {"approved", "executing", "accepted", "waiting", "verified", "unknown"}
)


@dataclass(frozen=True, slots=True)
class _Target:
    node_id: int | None
    name: str | None
    uid: str | None
    instance_id: str | None


def _targets(
    connection: Connection, case: rows.CaseRow, newest: rows.KeptFinding, action: str
) -> tuple[list[_Target], str | None]:
    """Find the nodes that an action is for, and what stands in its way when none is."""
    if case.node_id is not None:
        return [_Target(case.node_id, case.node, case.node_uid, case.instance_id)], None
    if case.subject != "job" or action != "cordon":
        return [_Target(None, None, None, None)], None
    nodes = rows.involved_nodes(connection, newest.alarm_id, NODES_WITHOUT_NAME)
    if not nodes:
        return [_Target(None, None, None, None)], "no rank map says which nodes are involved"
    if len(nodes) > NODES_WITHOUT_NAME:
        words = "nobody is named, and cordoning every node of the job would stop too much"
        return [_Target(None, None, None, None)], words
    return [_Target(one.id, one.name, one.uid, one.instance_id) for one in nodes], None


def keep_proposals(
    connection: Connection,
    case: rows.CaseRow,
    said: Recommendation,
    newest: rows.KeptFinding,
    now: datetime,
    expires_at: datetime,
    parameters: Mapping[str, Mapping[str, Any]],
) -> None:
    """Propose what the rules ask for, renew what waits, take back what nothing asks for now.

    `parameters` say by action how it is carried out; what is left out needs nothing.
    """
    known = rows.open_proposals(connection, case.id)
    wanted: set[int] = set()
    own = {one.id for one in known if one.recommended_by in OWN_GROUND}
    asked = {one.id for one in known if one.recommended_by not in RULES} - own
    new: list[dict[str, Any]] = []
    replaced = _replaced_since(case, known)
    for action in said.actions:
        if action.action == "none":
            continue
        targets, in_the_way = _targets(connection, case, newest, action.action)
        for target in targets:
            if target.node_id in replaced:
                continue
            blocked = _blocked(action, newest, in_the_way, target)
            values = _values(case, action, newest, blocked, expires_at)
            mine = [
                one for one in known if (one.action, one.node_id) == (action.action, target.node_id)
            ]
            waiting = next(
                (one for one in mine if one.status == "proposed" and one.id not in own), None
            )
            if waiting is not None:
                wanted.add(waiting.id)
                kept = _renewed(values) if waiting.id in asked else values
                rows.renew_proposal(connection, waiting.id, kept)
            elif not _settled(mine, known, target, case.last_alarm_at):
                ordinal = 1 + sum(one.action == action.action for one in known)
                ordinal += sum(one["action"] == action.action for one in new)
                how = parameters.get(action.action)
                values["parameters"] = None if how is None else json.dumps(how)
                new.append(_new(case, action.action, ordinal, target, values, now))
    rows.add_proposals(connection, new)
    for one in known:
        # What the newest evidence no longer asks for must not wait to be approved.
        if one.status == "proposed" and one.id not in wanted | own | asked:
            outcome = "superseded: what is known now asks for something else"
            values = {"status": "superseded", "finished_at": now, "outcome": outcome}
            rows.renew_proposal(connection, one.id, values)


def _replaced_since(case: rows.CaseRow, known: Sequence[Any]) -> set[int]:
    """Find machines that were replaced after the newest alarm: nothing more is to be done to them.

    Where a repaired machine comes back under its name, its next alarm asks for something again.
    """
    return {
        one.node_id
        for one in known
        if one.action == "replace"
        and one.status == "verified"
        and one.node_id is not None
        and one.finished_at is not None
        and one.finished_at > case.last_alarm_at
    }


def end_after_replacement(connection: Connection, replacement: Proposal, now: datetime) -> int:
    """Take back what waits for a machine that is not there any more; give how many that were."""
    members = proposals.of_cases(connection, [replacement.case_id]).get(replacement.case_id, ())
    values = {
        "status": "superseded",
        "finished_at": now,
        "outcome": "superseded: the machine was replaced",
    }
    return sum(
        proposals.move(connection, one.id, ("proposed",), values)
        for one in members
        if one.status == "proposed"
        and one.node_id is not None
        and (one.node_id, one.instance_id) == (replacement.node_id, replacement.instance_id)
    )


def _renewed(values: dict[str, Any]) -> dict[str, Any]:
    """Bind what a person asked for to what is known now; why, and by whom, stay the person's."""
    return {name: values[name] for name in ("evidence_version", "table_version", "blocked")}


def _settled(mine: Sequence[Any], known: Sequence[Any], target: _Target, alarm: datetime) -> bool:
    """Tell whether this action on this node was decided: asking again is noise.

    Decided before the newest alarm, a test says nothing of it, and a release did not know of it. A
    rejected one is proposed again only by new evidence, which is why this runs at all: a rejection
    therefore settles it for the evidence version that it was made on.
    """
    if not mine or mine[-1].status not in UNDER_WAY_OR_DONE:
        return False
    newest = mine[-1]
    undone = [
        one.decided_at
        for one in known
        if one.action == "uncordon"
        and one.node_id == target.node_id
        and one.status == "verified"
        and one.decided_at
        and newest.decided_at
        and one.decided_at > newest.decided_at
    ]
    if undone:
        return bool(max(undone) > alarm)
    before = newest.decided_at is not None and newest.decided_at < alarm
    return not (before and newest.action in TESTS and newest.status == "verified")


def _blocked(
    action: ProposedAction, newest: rows.KeptFinding, in_the_way: str | None, target: _Target
) -> str | None:
    reasons = [reason.rstrip(".") for reason in action.blocked_by]
    if in_the_way is not None:
        reasons = [in_the_way]
    elif target.name is not None:
        # The rules judge the case's own node; an involved node of a job is known here.
        reasons = [one for one in reasons if one != "the node is not known"]
    if newest.map_state == "none":
        reasons.append("no rank map of this attempt has come yet")
    elif newest.map_state == "contradictory":
        reasons.append("two rank maps of this attempt disagree")
    return "; ".join(dict.fromkeys(reasons)) or None


def _values(
    case: rows.CaseRow,
    action: ProposedAction,
    newest: rows.KeptFinding,
    blocked: str | None,
    expires_at: datetime,
) -> dict[str, Any]:
    return {
        "evidence_version": case.evidence_version,
        "table_version": str(TABLE_VERSION),
        "why": action.why,
        "blocked": blocked,
        "recommended_by": newest.rule or NO_ROW,
        "expires_at": expires_at,
    }


def _new(
    case: rows.CaseRow,
    action: str,
    ordinal: int,
    target: _Target,
    values: dict[str, Any],
    now: datetime,
) -> dict[str, Any]:
    return {
        **values,
        "id": ids.derive("proposal", case.id, action, ordinal),
        "case_id": case.id,
        "action": action,
        "ordinal": ordinal,
        "cluster": case.cluster,
        "node_id": target.node_id,
        "node_name": target.name,
        "node_uid": target.uid,
        "instance_id": target.instance_id,
        "gpu_uuid": case.gpu_uuid,
        "status": "proposed",
        "created_at": now,
    }
