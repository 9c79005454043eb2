"""Which jobs are known, and what is known of one of them?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from app.actions import job_map
from app.actions.job_dossier import JobDossier, read_dossier
from app.context import context_of
from app.errors import Problem, not_found
from app.filters import bad, read_filters
from app.store import audit, ids, job_reading, notes
from app.store.connection import Connection
from app.web import job_view
from app.web.addresses import read_id
from app.web.rendering import done, render
from app.web.security import Operator, Viewer

PAGE = 50
_FOREIGN = "This cursor is none of ours; begin again without."
FILTERS = ("cluster", "namespace", "job", "status", "from", "to", "q")

router = APIRouter(include_in_schema=False)


@router.get("/jobs")
def jobs(request: Request, person: Viewer) -> Response:
    """List jobs, newest activity first; filters and place stand in the address."""
    filters = read_filters(request.query_params.multi_items(), FILTERS)
    for status in filters.status:
        if status not in job_reading.STATUSES:
            raise bad("status", f"status must be one of {', '.join(job_reading.STATUSES)}.")
    after = _place(request.query_params.get("cursor"))
    context = context_of(request)
    silent_before = context.now() - timedelta(minutes=context.settings.silent_after_minutes)
    with context.store.reading() as connection:
        found = job_reading.list_jobs(connection, filters, after, PAGE + 1, silent_before)
    older = None
    if len(found) > PAGE:
        seen, last = job_reading.key_of(found[PAGE - 1].job)
        older = _address([*filters.as_typed, ("cursor", f"{seen}.{ids.show(last)}")])
    return render(
        request,
        "jobs.html",
        listed=[
            (one, job_reading.is_silent(one.newest, one.job, silent_before)) for one in found[:PAGE]
        ],
        counted=job_reading.COUNTED,
        filters=filters,
        typed=dict(filters.as_typed),
        statuses=job_reading.STATUSES,
        newest=_address(filters.as_typed) if after else None,
        older=older,
        attempt_words=job_view.attempt_words,
    )


@router.get("/jobs/{job_id}")
def job(
    request: Request,
    person: Viewer,
    job_id: str,
    attempts: str = "",
    attempt: str = "",
    by: Annotated[Literal["nodes", "ranks"], Query(alias="map")] = "nodes",
    find: str = "",
    page: str = "",
) -> Response:
    """Show one job; the chosen attempt, the search in its map and the pages are in the address."""
    row_id = read_id(job_id, "job")
    context = context_of(request)
    now = context.now()
    silent_after = timedelta(minutes=context.settings.silent_after_minutes)
    number = _number(attempts, "attempts")
    with context.store.reading() as connection:
        dossier = read_dossier(connection, row_id, now, silent_after, number)
        if dossier is None:
            raise not_found("no job with this id")
        chosen = _chosen(dossier, attempt)
        found = None
        if chosen is not None:
            found = job_map.look_up(
                connection,
                chosen,
                dossier.job.cluster,
                by,
                find.strip()[:200],
                _number(page, "page"),
            )
    return render(
        request,
        "job.html",
        dossier=dossier,
        job=dossier.job,
        view=job_view.build(dossier, now, number),
        chosen=chosen,
        map=found,
        silent_minutes=context.settings.silent_after_minutes,
        attempt_words=job_view.attempt_words,
        ranges=job_view.ranges,
        map_link=job_view.map_link,
        unplaced=job_view.unplaced_words(found) if found else None,
        longest=notes.LONGEST,
    )


@router.post("/jobs/{job_id}/notes")
def add_note(
    request: Request,
    person: Operator,
    job_id: str,
    text: Annotated[str, Form(max_length=notes.LONGEST)] = "",
) -> Response:
    """Keep a note on the job."""
    row_id = read_id(job_id, "job")
    said = text.replace("\x00", "").strip()
    if not said:
        raise Problem(422, "invalid", "A note needs words.", field="text")
    context = context_of(request)
    now = context.now()

    def work(connection: Connection) -> bool:
        kept = notes.add_to_job(connection, row_id, person.name, said, now)
        if kept:
            sentence = f"Wrote a note of {len(said):,} letters on the job."
            audit.append(connection, person.name, "note.added", sentence, at=now, job_id=row_id)
        return kept

    if not context.store.write(work):
        raise not_found("no job with this id")
    return done(request, f"/jobs/{job_id}", f"Note added by {person.name} at {now:%H:%M} UTC.")


def _chosen(dossier: JobDossier, attempt: str) -> int | None:
    """Give the attempt whose map is shown: the one asked for, else the newest with a map."""
    if attempt:
        asked = read_id(attempt, "attempt")
        if dossier.attempt(asked) is None:
            raise not_found("no such attempt on this page of the job")
        return asked
    mapped = next((one.id for one in dossier.attempts if one.maps), None)
    return mapped or (dossier.attempts[0].id if dossier.attempts else None)


def _place(cursor: str | None) -> tuple[int, int] | None:
    """Read where the page before ended: microseconds and the id of its last job."""
    if not cursor:
        return None
    seen, _, last = cursor.partition(".")
    if not (seen.isascii() and seen.isdigit() and len(seen) < 18):
        raise bad("cursor", _FOREIGN)
    try:
        return int(seen), ids.read(last)
    except ValueError:
        raise bad("cursor", _FOREIGN) from None


def _number(text: str, name: str) -> int:
    if not text:
        return 1
    if text.isascii() and text.isdigit() and len(text) < 7 and int(text) >= 1:
        return int(text)
    raise bad(name, f"{name} must be a whole number from 1.")


def _address(pairs: Sequence[tuple[str, str]]) -> str:
    return "/jobs" + (f"?{urlencode(pairs)}" if pairs else "")
