"""What does a case come down to now, and what is proposed for it?

Runs in the intake's transaction for every case about which something new is known: it reads the
case's findings, incidents and score, asks the rules, and keeps words and proposals up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from app.actions.scoring import gpu_history
from app.store import casework_rows as rows
from app.store import ids
from app.store.exposure_reading import (
    DeviceIncident,
    audited_stretches,
    device_incidents,
    digest_devices,
)
from witness.rules.decision_table import BY_ID, TABLE_VERSION
from witness.rules.findings import Caution, Finding
from witness.rules.proposal import (
    CaseFacts,
    ProposedAction,
    Recommendation,
    one_digest_many_devices,
    recommend,
)
from witness.rules.repeat_offenders import PastIncident, Recurrence, recurrence
from witness.rules.score import score

# Alarms of one build within a week of each other are looked at together.
DIGEST_DAYS = 7
# An alarm that names nobody on more nodes than this gets no cordon each: that would stop a fleet.
NODES_WITHOUT_NAME = 4
CONNECTED = frozenset({"cordon", "uncordon"})
NOT_CONNECTED = "not connected yet"


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that a judgement depends on, in days."""

    recurrence_days: int = 90
    proposal_days: float = 7.0


def judge_cases(
    connection: Connection, case_ids: Iterable[int], now: datetime, policy: Policy
) -> None:
    """Judge cases anew and keep their proposals up."""
    for case in rows.read_cases(connection, case_ids):
        found = rows.newest_findings(connection, case.id)
        if found:
            _judge(connection, case, found, now, policy)


def _judge(
    connection: Connection,
    case: rows.CaseRow,
    found: list[rows.KeptFinding],
    now: datetime,
    policy: Policy,
) -> None:
    history = device_incidents(connection, case.gpu_id, case.instance_id)
    again = _recurrence(case, found, history, policy)
    facts = CaseFacts(
        findings=_of_the_table(found),
        p=_p(connection, case, history),
        recurrence=again,
        node=case.node,
        instance_id=case.instance_id,
        one_digest_many_devices=_many_devices(connection, history, now),
        nan_only_one_digest=_only_nan(history),
        cordoned=case.cordon == "ours",
    )
    said = recommend(facts)
    newest = found[0]
    leading = next((one for one in found if one.rule is not None), newest)
    rows.write_judgement(
        connection,
        case.id,
        {
            "standing": said.status_class,
            "rule": leading.rule,
            "rank": leading.rank,
            "headline": said.headline,
            "advice": said.what_to_do,
            "urgency": said.urgency,
            "recurrence": again.words if again else None,
        },
    )
    if case.status == "open":
        _propose(connection, case, said, leading, now, policy)


def _of_the_table(found: Sequence[rows.KeptFinding]) -> tuple[Finding, ...]:
    """Turn stored findings back into the rules' own.

    A device that one alarm names alone is not excused by another alarm that names half the job.
    """
    alone = [one for one in found if not one.software_first] or found
    return tuple(_finding(one) for one in alone)


def _finding(kept: rows.KeptFinding) -> Finding:
    row = BY_ID[kept.rule] if kept.rule is not None else None
    cautions = tuple(Caution(code, text) for code, text in kept.cautions)
    return Finding(
        rule=kept.rule,
        meaning=row.meaning if row else (cautions[0].text if cautions else ""),
        action=row.action if row else "No recommendation: a person must look.",
        ambiguous=kept.ambiguous,
        rank=kept.rank,
        cautions=cautions,
        kind=kept.kind,
        blocks_replacement=kept.blocks_replacement,
        software_first=kept.software_first,
    )


def _recurrence(
    case: rows.CaseRow,
    found: Sequence[rows.KeptFinding],
    history: Sequence[DeviceIncident],
    policy: Policy,
) -> Recurrence | None:
    """Look for earlier incidents than the newest that this case knows."""
    mine = {one.incident_id for one in found}
    own = [one for one in history if one.id in mine]
    if not own:
        return None
    newest = max(own, key=lambda one: (one.first_at, one.id))
    previous = [
        PastIncident(
            one.first_at,
            one.job,
            one.rank,
            one.kind,
            "gpu" if case.gpu_id is not None and one.gpu_id == case.gpu_id else "instance",
        )
        for one in history
        if one.id != newest.id
    ]
    return recurrence(previous, newest.first_at, policy.recurrence_days, newest.kind)


def _p(
    connection: Connection, case: rows.CaseRow, history: Sequence[DeviceIncident]
) -> float | None:
    if case.gpu_id is None:
        return None
    own = [one for one in history if one.gpu_id == case.gpu_id]
    if not own:
        return None
    stretches = audited_stretches(connection, case.gpu_id) if len(own) > 1 else []
    found = score(gpu_history(own, stretches, case.last_alarm_at))
    return None if found is None else found.p


def _many_devices(
    connection: Connection, history: Sequence[DeviceIncident], now: datetime
) -> bool:
    digests = sorted({one.code_digest for one in history if one.code_digest is not None})
    if not digests:
        return False
    newest = max(one.last_at for one in history)
    since = min(newest, now) - timedelta(days=DIGEST_DAYS)
    return one_digest_many_devices(digest_devices(connection, digests, since))


def _only_nan(history: Sequence[DeviceIncident]) -> bool:
    """Tell whether nothing but NaN, repeatedly, in one job of one build, was ever held against it."""
    digests = {one.code_digest for one in history}
    jobs = {one.job_id for one in history}
    nan = all(one.kind == "nonfinite" for one in history)
    repeated = sum(one.alarms for one in history) > 1
    return nan and repeated and len(jobs) == 1 and len(digests) == 1 and None not in digests


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


def _propose(
    connection: Connection,
    case: rows.CaseRow,
    said: Recommendation,
    newest: rows.KeptFinding,
    now: datetime,
    policy: Policy,
) -> None:
    known = rows.open_proposals(connection, case.id)
    wanted: set[int] = set()
    new: list[dict[str, Any]] = []
    for action in said.actions:
        if action.action == "none":
            continue
        targets, in_the_way = _targets(connection, case, newest, action.action)
        for target in targets:
            blocked = _blocked(action, newest, in_the_way, target)
            values = _values(case, action, newest, blocked, now, policy)
            mine = [one for one in known if (one.action, one.node_id) == (action.action, target.node_id)]
            waiting = next((one for one in mine if one.status == "proposed"), None)
            if waiting is not None:
                wanted.add(waiting.id)
                rows.renew_proposal(connection, waiting.id, values)
            elif not _settled(mine, known, target):
                ordinal = 1 + sum(one.action == action.action for one in known)
                ordinal += sum(one["action"] == action.action for one in new)
                new.append(_new(case, action.action, ordinal, target, values, now))
    rows.add_proposals(connection, new)
    for one in known:
        # What the newest evidence no longer asks for must not wait to be approved.
        if one.status == "proposed" and one.id not in wanted:
            outcome = "superseded: what is known now asks for something else"
            values = {"status": "superseded", "finished_at": now, "outcome": outcome}
            rows.renew_proposal(connection, one.id, values)


def _settled(mine: Sequence[Any], known: Sequence[Any], target: _Target) -> bool:
    """Tell whether this action on this node was decided and not undone: asking again is noise.

    A rejected one is proposed again only by new evidence, which is why this runs at all: a
    rejection therefore settles it for the evidence version that it was made on.
    """
    under_way = {"approved", "executing", "accepted", "verified", "unknown"}
    if not mine:
        return False
    newest = mine[-1]
    if newest.status not in under_way:
        return False
    undone = [
        one
        for one in known
        if one.action == "uncordon" and one.node_id == target.node_id and one.status == "verified"
    ]
    return not any(
        one.decided_at and newest.decided_at and one.decided_at > newest.decided_at
        for one in undone
    )


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
    if action.action not in CONNECTED:
        reasons.insert(0, NOT_CONNECTED)
    return "; ".join(dict.fromkeys(reasons)) or None


def _values(
    case: rows.CaseRow,
    action: ProposedAction,
    newest: rows.KeptFinding,
    blocked: str | None,
    now: datetime,
    policy: Policy,
) -> dict[str, Any]:
    return {
        "evidence_version": case.evidence_version,
        "table_version": str(TABLE_VERSION),
        "why": action.why,
        "blocked": blocked,
        "recommended_by": newest.rule or "no row",
        "expires_at": now + timedelta(days=policy.proposal_days),
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
