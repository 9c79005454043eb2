"""How does a program read the ranking of repeat offenders?

The query is the page's own, word for word, so that a link to the page and a link to its JSON ask
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.offender_query import PARAMETERS, day_text, read_query
from app.actions.offender_ranking import Ranked, Ranking, rank
from app.api.paging import Listing, Page, read_limit
from app.api.reading import Reading
from app.auth import Sender
from app.context import context_of
from app.errors import forbidden
from app.filters import Filters, bad
from app.store import ids
from app.store.offender_shapes import Query
from app.strict_json import rfc3339

router = APIRouter(prefix="/api/v1", tags=["reading"])

COLUMNS = (
    "place",
    "subject",
    "id",
    "gpu_uuid",
    "node",
    "instance_id",
    "cluster",
    "incidents",
    "alarms",
    "jobs",
    "p",
    "gpus_with_incidents",
    "audited_gpu_hours",
    "rate_per_hour",
    "rate_low",
    "rate_high",
    "times_the_fleet",
    "recurrence",
    "case",
    "case_status",
    "standing",
    "rule",
    "last_at",
)
OFFENDERS = Listing(
    "offenders",
    order="by `rank`: P, the rate's lower end, or incidents, each descending",
    filters=(),
    columns=COLUMNS,
    cursor=(int,),
)
_FIXED = {
    "by": "gpu, instance or node",
    "window": "7, 28, 90, 365, all or custom (with from and to, whole days)",
    "from": "first day",
    "to": "last day",
    "check": "nonfinite, ring, weights or reduced gradient; more than once: any of them",
    "kind": "verdict kind; more than once: any of them",
    "incidents": "at least",
    "alarms": "at least",
    "jobs": "at least, in the window",
    "cluster": "only devices last named there; more than once: any of them",
    "q": "the name begins with",
    "rank": "p, rate or incidents",
}
_PAGING = ("limit", "cursor", "format")


def _described() -> dict[str, Any]:
    own = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": _FIXED[name],
            "schema": {"type": "string", "maxLength": 1_000},
        }
        for name in PARAMETERS
    ]
    return {"parameters": [*own, *OFFENDERS.openapi()["parameters"]]}


@router.get("/offenders", summary="Rank repeat offenders", openapi_extra=_described())
def offenders(request: Request, by: Reading) -> Response:
    """Rank GPUs, instances or nodes; P and rate order the weightiest devices only."""
    given = request.query_params.multi_items()
    for name, _ in given:
        if name not in (*PARAMETERS, *_PAGING):
            raise bad(name[:60], f"This list has no parameter {name[:60]!r}.")
    query = _bound(read_query(given), by)
    page = _page(request)
    offset = 0 if page.after is None else max(int(page.after[0]), 0)
    context = context_of(request)
    with context.store.reading() as connection:
        ranking = rank(
            connection,
            query,
            context.now(),
            context.settings.recurrence_days,
            offset,
            page.limit + 1,
        )
    rows = [as_json(query, row) for row in ranking.rows]
    return OFFENDERS.answer(
        page, rows, [(row.place,) for row in ranking.rows], _about(query, ranking)
    )


def as_json(query: Query, row: Ranked) -> dict[str, Any]:
    """Write one device; None where something is not known."""
    place, case = row.device.place, row.device.case
    gpu = query.subject == "gpu"
    return {
        "place": row.place,
        "subject": query.subject,
        "id": _id(row),
        "gpu_uuid": row.device.label if gpu else None,
        "node": place.node if place else None,
        "instance_id": place.instance_id if place else None,
        "cluster": row.candidate.cluster,
        "incidents": row.candidate.incidents,
        "alarms": row.candidate.alarms,
        "jobs": row.jobs,
        "p": row.score.p if row.score else None,
        "gpus_with_incidents": row.device.gpus_with_incidents,
        "audited_gpu_hours": row.hours,
        "rate_per_hour": row.rate.mean if row.rate else None,
        "rate_low": row.rate.low if row.rate else None,
        "rate_high": row.rate.high if row.rate else None,
        "times_the_fleet": row.against.ratio if row.against else None,
        "recurrence": row.recurrence.words if row.recurrence else None,
        "case": ids.show(case.id) if case else None,
        "case_status": case.status if case else None,
        "standing": case.standing if case else None,
        "rule": case.rule if case else None,
        "last_at": row.candidate.last_at,
    }


def _id(row: Ranked) -> str | None:
    if row.device.gpu_id is not None:
        return ids.show(row.device.gpu_id)
    return None if row.device.place is None else ids.show(row.device.place.node_id)


def _about(query: Query, ranking: Ranking) -> Mapping[str, Any]:
    fleet = ranking.fleet
    known = fleet.audited_gpu_hours > 0
    return {
        "window": {
            "days": query.days,
            "from": day_text(query.first_day) or (ranking.since and rfc3339(ranking.since)),
            "to": day_text(query.last_day) or None,
        },
        "devices": ranking.totals.devices,
        "incidents": ranking.totals.incidents,
        "ranked": ranking.reach,
        "fleet": {
            "incidents": fleet.incidents,
            "audited_gpu_hours": fleet.audited_gpu_hours if known else None,
            "rate_per_hour": fleet.incidents / fleet.audited_gpu_hours if known else None,
        },
    }


def _bound(query: Query, by: Sender) -> Query:
    """Keep a token to its cluster; a device's history cannot be cut to one namespace."""
    if by.namespace is not None:
        raise forbidden(
            f"The token {by.name!r} is bound to a namespace; devices are shared by all of them."
        )
    if by.cluster is None:
        return query
    if query.clusters and by.cluster not in query.clusters:
        raise forbidden(f"The token {by.name!r} is for cluster {by.cluster!r} only.")
    return replace(query, clusters=(by.cluster,))


def _page(request: Request) -> Page:
    """Read limit, cursor and form as every list does; the query's own words are read apart."""
    given = [(name, value) for name, value in request.query_params.multi_items() if value]
    for name in _PAGING:
        if sum(one == name for one, _ in given) > 1:
            raise bad(name, f"{name} was given more than once.")
    fields = dict(given)
    form = fields.get("format", "json")
    if form not in ("json", "csv"):
        raise bad("format", "format must be json or csv.")
    typed = tuple(pair for pair in given if pair[0] in PARAMETERS)
    return Page(
        filters=Filters(as_typed=typed),
        limit=read_limit(fields.get("limit")),
        after=OFFENDERS.read_cursor(fields.get("cursor")),
        form="csv" if form == "csv" else "json",
        path=request.url.path,
    )
