"""How does a program read cases: a list in the order of the docket, or one with its grounds?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions import certainty
from app.api import case_return
from app.api import proposals as proposals_api
from app.api.paging import Listing
from app.api.reading import Reading
from app.context import context_of
from app.errors import not_found
from app.filters import bad
from app.store import blast_reading, case_reading, docket_reading, ids, proposal_listing
from app.store.case_reading import CaseFinding, CaseIncident
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.strict_json import StrictJSON
from witness.rules.score import Score

router = APIRouter(prefix="/api/v1", tags=["reading"])

STANDINGS = ("suspect", "ambiguous", "software", "unknown")
CASES = Listing(
    "cases",
    order="most urgent first: whom it waits for, urgency, newest alarm; closed ones newest first",
    filters=(
        "cluster", "namespace", "job", "node", "instance", "gpu", "check", "rule", "status",
        "from", "to", "q",
    ),
    columns=(
        "id", "status", "standing", "rule", "headline", "cluster", "namespace", "job", "rank",
        "node", "instance_id", "gpu_uuid", "alarms", "first_alarm_at", "last_alarm_at",
        "adjudication", "recurrence", "waits_for", "evidence_version",
    ),
    cursor=(int, int, int, int),
)  # fmt: skip
WAITS_FOR = {
    docket_reading.PERSON: "person",
    docket_reading.CLUSTER: "cluster",
    docket_reading.WATCHED: "nobody",
}


@router.get("/cases", summary="List cases", openapi_extra=CASES.openapi())
def cases(request: Request, by: Reading) -> Response:
    """List open cases; status is open, closed or a standing."""
    page = CASES.read(request)
    status = _status(page.filters.status)
    bound = (by.cluster, by.namespace)
    with context_of(request).store.reading() as connection:
        after = page.after
        key = (after[0], after[1], after[2], after[3]) if after else None
        if status == "closed":
            found = docket_reading.closed_cases(
                connection, page.filters, key, page.limit + 1, bound
            )
        else:
            found = docket_reading.open_cases(
                connection, status, page.filters, key, page.limit + 1, bound
            )
    return CASES.answer(page, [as_row(one) for one in found], [one.key for one in found])


def _status(given: tuple[str, ...]) -> str:
    if not given:
        return "open"
    if len(given) > 1 or given[0] not in ("open", "closed", *STANDINGS[:3]):
        known = ", ".join(("open", "closed", *STANDINGS[:3]))
        raise bad("status", f"status must be one of {known}.")
    return given[0]


@router.get("/cases/{case_id}", summary="Read one case")
def case(request: Request, by: Reading, case_id: str) -> Response:
    """Give one case with its incidents, findings, score, blast radius, proposals and notes."""
    context = context_of(request)
    with context.store.reading() as connection:
        found = docket_reading.one(connection, _read_id(case_id))
        if found is None or not by.allows(found.cluster, found.namespace):
            raise not_found("no case with this id")
        now = context.now()
        body = {
            **as_row(found),
            **_beside(connection, found, now),
            **case_return.as_json(connection, context.settings, found, now, by),
        }
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


def _read_id(text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise not_found("no case with this id") from None


def as_row(one: DocketCase) -> dict[str, Any]:
    """Give one case as a row of a list."""
    return {
        "id": ids.show(one.id),
        "url": f"/cases/{ids.show(one.id)}",
        "status": one.status,
        "standing": one.standing,
        "rule": one.rule,
        "headline": one.headline,
        "advice": one.advice,
        "recurrence": one.recurrence,
        "waits_for": WAITS_FOR[one.group] if one.status == "open" else "nobody",
        "cluster": one.cluster,
        "namespace": one.namespace,
        "job": one.job,
        "job_id": ids.show(one.job_id),
        "rank": one.rank,
        "subject": one.subject,
        "node": one.node,
        "node_id": None if one.node_id is None else ids.show(one.node_id),
        "instance_id": one.instance_id,
        "gpu_uuid": one.gpu_uuid,
        "alarms": one.alarms,
        "last_alarm": ids.show(one.last_alarm_id),
        "opened_at": one.opened_at,
        "first_alarm_at": one.first_alarm_at,
        "last_alarm_at": one.last_alarm_at,
        "closed_at": one.closed_at,
        "adjudication": one.adjudication,
        "evidence_version": one.evidence_version,
    }


def _beside(connection: Connection, one: DocketCase, now: datetime) -> dict[str, Any]:
    scored = None
    if one.gpu_id is not None:
        fleet = certainty.false_alarms(connection)
        scored = certainty.of_gpu(connection, one.gpu_id, now, fleet)
    listed = proposal_listing.of_case(connection, one.id)
    return {
        "incidents": [_incident(i) for i in case_reading.newest_incidents(connection, one.id)],
        "findings": [_finding(f) for f in case_reading.newest_findings(connection, one.id)],
        "score": None if scored is None else _score(scored.score),
        "blast_radius": proposals_api.blast(blast_reading.reached(connection, one)),
        "proposals": [proposals_api.as_json(p, None) for p in listed],
        "notes": [
            {"at": n.at, "author": n.author, "kind": n.kind, "text": n.text}
            for n in case_reading.notes_of(connection, one.id)
        ],
    }


def _incident(one: CaseIncident) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "kind": one.kind,
        "job": one.job,
        "rank": one.rank,
        "code_digest": one.code_digest,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "alarms": one.alarms,
    }


def _finding(one: CaseFinding) -> dict[str, Any]:
    return {
        "alarm": ids.show(one.alarm_id),
        "rule": one.rule,
        "kind": one.kind,
        "rank": one.rank,
        "node": one.node,
        "gpu_uuid": one.gpu_uuid,
        "ambiguous": one.ambiguous,
        "cautions": [{"code": code, "text": text} for code, text in one.cautions],
        "occurred_at": one.occurred_at,
        "check": one.check,
        "step": one.step,
        "job": one.job,
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "p": score.p,
        "p_if_f_at_upper": score.p_if_f_at_upper,
        "incidents": score.incidents,
        "clean_hours": score.clean_hours,
        "rate_per_hour": {
            "mean": score.rate_mean_per_hour,
            "low": score.rate_low,
            "high": score.rate_high,
        },
        "ladder": [
            {"text": term.text, "factor": term.factor, "odds_after": term.odds_after}
            for term in score.ladder
        ],
    }
