"""How does a program read alarms: one with all that follows from it, or a list?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.alarm_dossier import Dossier, read_dossier
from app.actions.telemetry import shown
from app.actions.telemetry.node_log import read_node_log
from app.api import node_log
from app.api.paging import Listing, refusals
from app.api.reading import Reading
from app.auth import Sender
from app.context import context_of
from app.errors import not_found
from app.filters import FILTERS, bad
from app.raw_document import strict_value
from app.store import ids
from app.store.alarm_listing import CASE_STATES, STANDINGS, ListedAlarm, NamedRank, list_alarms
from app.store.alarm_reading import StoredFinding, read_findings
from app.strict_json import StrictJSON
from witness.rules.decision_table import BY_ID
from witness.rules.findings import NO_RECOMMENDATION

router = APIRouter(prefix="/api/v1", tags=["reading"])

ALARMS = Listing(
    "alarms",
    order="newest first: occurred_at, then id, both descending",
    filters=FILTERS,
    columns=(
        "id",
        "occurred_at",
        "cluster",
        "namespace",
        "job",
        "attempt",
        "check",
        "step",
        "rule",
        "standing",
        "summary",
        "ranks",
        "nodes",
        "instances",
        "gpus",
        "window_first",
        "window_last",
        "map_state",
        "conflicts",
        "reports",
        "reporters",
        "received_at",
        "last_received_at",
    ),
    cursor=(int, int),
)


@router.get(
    "/alarms",
    summary="List alarms",
    openapi_extra=ALARMS.openapi(),
    responses=refusals(400, 401, 403),
)
def alarms(request: Request, by: Reading) -> Response:
    """List alarms, newest first; status is a standing or the state of a case."""
    page = ALARMS.read(request)
    for status in page.filters.status:
        if status not in (*STANDINGS, *CASE_STATES):
            known = ", ".join((*STANDINGS, *CASE_STATES))
            raise bad("status", f"status must be one of {known}, not {status[:40]!r}.")
    with context_of(request).store.reading() as connection:
        found = list_alarms(
            connection, page.filters, page.after, page.limit + 1, (by.cluster, by.namespace)
        )
    as_row = _csv_row if page.form == "csv" else _listed
    return ALARMS.answer(page, [as_row(one) for one in found], [one.key for one in found])


@router.get("/alarms/{alarm_id}", summary="Read one alarm", responses=refusals(401, 403, 404))
def alarm(request: Request, by: Reading, alarm_id: str) -> Response:
    """Give one alarm with findings, explanations, resume choices and its document."""
    context = context_of(request)
    with context.store.reading() as connection:
        dossier = read_dossier(connection, _read_id(alarm_id), context.now())
        if dossier is None or not _may_see(by, dossier):
            raise not_found("no alarm with this id")
        found = dossier.findings
        if dossier.findings_in_all > len(found):
            found = read_findings(connection, dossier.facts.id, limit=None)
        telemetry = shown.as_json(shown.read_telemetry(connection, dossier, curves=False))
        telemetry["node_log"] = node_log.as_json(read_node_log(connection, dossier.facts.id))
    body = as_json(dossier, found) | {"telemetry": telemetry}
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


def _read_id(text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise not_found("no alarm with this id") from None


def _may_see(by: Sender, dossier: Dossier) -> bool:
    """Tell whether a token may know of this alarm; one it may not see does not exist for it."""
    return by.allows(dossier.facts.cluster, dossier.facts.namespace)


def as_json(dossier: Dossier, found: tuple[StoredFinding, ...]) -> dict[str, Any]:
    """Give one alarm as programs read it, with all its findings, without its telemetry."""
    facts, resume = dossier.facts, dossier.resume
    return {
        "id": ids.show(facts.id),
        "url": f"/alarms/{ids.show(facts.id)}",
        "cluster": facts.cluster,
        "namespace": facts.namespace,
        "job": facts.job,
        "job_id": ids.show(facts.job_id),
        "attempt": facts.attempt,
        "attempt_uid": facts.attempt_uid,
        "check": facts.check,
        "family": facts.family,
        "step": facts.step,
        "occurred_at": facts.occurred_at,
        "time_note": facts.time_note,
        "received_at": facts.received_at,
        "last_received_at": facts.last_received_at,
        "reports": facts.received,
        "reporters": facts.reporters,
        "example": facts.example,
        "rule": facts.rule,
        "standing": facts.standing,
        "summary": facts.summary,
        "map_state": facts.map_state,
        "resolved_at": facts.resolved_at,
        "suspect_window": list(resume.window) if resume.window else None,
        "suspect_window_derived": resume.window_is_ours,
        "findings": [_finding(one) for one in found],
        "explanations": [_explanation(one) for one in dossier.explained],
        "resume": [_choice(one) for one in resume.choices],
        "resume_reason": resume.reason,
        "resume_missing": [{"choice": one.choice, "why": one.why} for one in resume.missing],
        "conflicts": [_conflict(one) for one in dossier.conflicts],
        "document": strict_value(facts.body),
    }


def _finding(one: StoredFinding) -> dict[str, Any]:
    row = BY_ID.get(one.rule or "")
    first_caution = one.cautions[0][1] if one.cautions else "No row of the table fits."
    return {
        "rule": one.rule,
        "meaning": row.meaning if row else first_caution,
        "action": row.action if row else NO_RECOMMENDATION,
        "kind": one.kind,
        "ambiguous": one.ambiguous,
        "rank": one.rank,
        "node": one.node,
        "node_id": None if one.node_id is None else ids.show(one.node_id),
        "instance_id": one.instance_id,
        "gpu_uuid": one.gpu_uuid,
        "gpu_id": None if one.gpu_id is None else ids.show(one.gpu_id),
        "resolved": one.node_id is not None,
        "case": ids.show(one.case_id),
        "software_first": one.software_first,
        "blocks_replacement": one.blocks_replacement,
        "cautions": [{"code": code, "text": text} for code, text in one.cautions],
    }


def _explanation(one: Any) -> dict[str, Any]:
    explanation, decisive = one.explanation, one.decisive
    return {
        "ranks": list(explanation.ranks),
        "sets": [
            {"faulty": list(held.faulty), "persistent": held.persistent}
            for held in explanation.sets
        ],
        "at_least": explanation.at_least,
        "total": explanation.total,
        "complete": explanation.complete,
        "deciding_audit": None
        if decisive is None
        else {"peer_offset": decisive.offset, "decides": decisive.decides},
    }


def _choice(one: Any) -> dict[str, Any]:
    return {
        "choice": one.choice,
        "step": one.step,
        "uri": one.uri,
        "lost_steps": one.lost_steps,
        "lost_gpu_hours": one.lost_gpu_hours,
        "why": one.why,
        "tags": one.tags,
        "caution": one.caution,
    }


def _conflict(one: Any) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "url": f"/alarms/{ids.show(one.id)}",
        "summary": one.summary,
        "rule": one.rule,
        "reports": one.received,
        "occurred_at": one.occurred_at,
    }


def _listed(one: ListedAlarm) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "url": f"/alarms/{ids.show(one.id)}",
        "cluster": one.cluster,
        "namespace": one.namespace,
        "job": one.job,
        "job_id": ids.show(one.job_id),
        "attempt": one.attempt,
        "check": one.check,
        "family": one.family,
        "step": one.step,
        "occurred_at": one.occurred_at,
        "time_note": one.time_note,
        "received_at": one.received_at,
        "last_received_at": one.last_received_at,
        "reports": one.received,
        "reporters": one.reporters,
        "example": one.example,
        "rule": one.rule,
        "standing": one.standing,
        "summary": one.summary,
        "map_state": one.map_state,
        "conflicts": one.conflicts,
        "suspect_window": None if one.window_first is None else [one.window_first, one.window_last],
        "findings": [_named(named) for named in one.named],
        "more_findings": one.more,
    }


def _named(one: NamedRank) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "kind": one.kind,
        "rank": one.rank,
        "node": one.node,
        "node_id": None if one.node_id is None else ids.show(one.node_id),
        "instance_id": one.instance_id,
        "gpu_uuid": one.gpu_uuid,
        "gpu_id": None if one.gpu_id is None else ids.show(one.gpu_id),
        "case": ids.show(one.case_id),
    }


def _csv_row(one: ListedAlarm) -> dict[str, Any]:
    row = _listed(one)
    row["window_first"], row["window_last"] = one.window_first, one.window_last
    more = ["and more"] if one.more else []
    for column, values in (
        ("ranks", [named.rank for named in one.named]),
        ("nodes", [named.node for named in one.named]),
        ("instances", [named.instance_id for named in one.named]),
        ("gpus", [named.gpu_uuid for named in one.named]),
    ):
        shown = dict.fromkeys(str(value) for value in values if value is not None)
        row[column] = " ".join([*shown, *more])
    return row
