"""Which GPUs, instances and nodes alarm again and again?"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions.offender_query import read_query, write_query
from app.actions.offender_ranking import rank
from app.context import context_of
from app.errors import Problem, forbidden, not_found
from app.store import audit, offender_reading, saved_queries
from app.store.connection import Connection
from app.store.moved_counts import moved_counts
from app.store.offender_shapes import Query
from app.web import offenders_view
from app.web.offenders_view import PAGE
from app.web.rendering import done, render
from app.web.security import Viewer

NAME_LIMIT = 80
_LAST_PAGE = 100_000

router = APIRouter(include_in_schema=False)


@router.get("/offenders")
def offenders(request: Request, person: Viewer) -> Response:
    """Show the ranking of a query that stands in the address."""
    given = request.query_params.multi_items()
    query = read_query(given)
    page = _page(request.query_params.get("page"))
    context = context_of(request)
    now = context.now()
    recurs = context.settings.recurrence_days
    with context.store.reading() as connection:
        ranking = rank(connection, query, now, recurs, (page - 1) * PAGE, PAGE)
        by_gpu = [int(row.candidate.key) for row in ranking.rows] if query.subject == "gpu" else []
        moved = moved_counts(connection, by_gpu, ranking.since, ranking.until)
        saved = saved_queries.every(connection)
        clusters = offender_reading.clusters(connection)
    view = offenders_view.build(query, ranking, now, page)
    return render(
        request,
        "offenders.html",
        view=view,
        moved={row.place: moved.get(int(row.candidate.key)) for row in ranking.rows if by_gpu},
        choices=offenders_view.choices(),
        clusters=clusters,
        saved=[(one, "/offenders?" + one.query) for one in saved],
        query_text=_text(query),
        recurs=recurs,
    )


@router.post("/offenders/queries")
def save_query(
    request: Request,
    person: Viewer,
    name: Annotated[str, Form(max_length=NAME_LIMIT)] = "",
    query: Annotated[str, Form(max_length=4_000)] = "",
) -> Response:
    """Keep a query under a name."""
    context = context_of(request)
    name, now = name.strip(), context.now()
    if not name or "\x00" in name:
        raise Problem(422, "invalid", "A saved query needs a name.", field="name")
    text = _text(read_query(parse_qsl(query, keep_blank_values=True, max_num_fields=200)))

    def work(connection: Connection) -> bool:
        new = saved_queries.save(connection, name, person.name, text, now)
        said = f"Saved the query of repeat offenders {name!r}: {text or 'the default'}."
        audit.append(connection, person.name, "query.saved", said, at=now)
        return new

    try:
        new = context.store.write(work)
    except saved_queries.TooMany:
        message = f"{person.name} has {saved_queries.MOST_EACH} saved queries already; remove one."
        raise Problem(409, "too_many_queries", message) from None
    verb = "saved" if new else "saved over the older one"
    return done(
        request, f"/offenders?{text}", f"Query “{name}” {verb} by {person.name} at {now:%H:%M} UTC."
    )


@router.post("/offenders/queries/{query_id}/remove")
def remove_query(request: Request, person: Viewer, query_id: int) -> Response:
    """Forget a saved query; one's own, or anybody's as an administrator."""
    context = context_of(request)
    now = context.now()
    if not 0 < query_id < 2**63:
        raise not_found("no saved query with this number")
    with context.store.reading() as connection:
        found = saved_queries.find(connection, query_id)
    if found is None:
        raise not_found("no saved query with this number")
    if found.author != person.name and not person.may("admin"):
        raise forbidden(f"“{found.name}” was saved by {found.author}; only an admin may remove it.")

    def work(connection: Connection) -> bool:
        gone = saved_queries.remove(connection, query_id)
        if gone:
            said = f"Removed the saved query {found.name!r} of {found.author}."
            audit.append(connection, person.name, "query.removed", said, at=now)
        return gone

    gone = context.store.write(work)
    said = f"Query “{found.name}” removed by {person.name} at {now:%H:%M} UTC."
    return done(request, "/offenders", said if gone else f"Query “{found.name}” was gone already.")


def _text(query: Query) -> str:
    return offenders_view.link(write_query(query)).partition("?")[2]


def _page(text: str | None) -> int:
    if not text:
        return 1
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _LAST_PAGE:
        return int(text[:9])
    raise Problem(400, "bad_parameter", "page must be a whole number from 1.", field="page")
