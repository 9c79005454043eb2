"""A job shows a symptom but no alarm: is it worth suspecting the hardware?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.errors import Problem, not_found
from app.filters import bad
from app.store import audit, ids, notes, search
from app.store.connection import Connection
from app.store.job_reading import JobRow, read_job
from app.web.addresses import read_id
from app.web.rendering import done, render
from app.web.security import Operator, Viewer
from witness.rules.triage import QUESTIONS, Answer, Reading, reading

ANSWERS: tuple[Answer, ...] = get_args(Answer)
JOBS_SHOWN = 20

router = APIRouter(include_in_schema=False)


@router.get("/triage")
def triage(request: Request, person: Viewer, job: str = "", q: str = "") -> Response:
    """Ask the seven questions; answers, job and search stand in the address."""
    given = answers_of(request.query_params)
    hits: tuple[search.JobHit, ...] = ()
    with context_of(request).store.reading() as connection:
        chosen = _job(connection, job)
        if q.strip() and chosen is None:
            hits = search.jobs_like(connection, q.strip()[:400], JOBS_SHOWN)
    kept = [(name, value) for name, value in given.items() if value != "unknown"]
    return render(
        request,
        "triage.html",
        questions=QUESTIONS,
        choices=ANSWERS,
        given=given,
        reading=reading(given) if kept else None,
        answers=urlencode(kept),
        job=chosen,
        q=q,
        hits=[(hit, "/triage?" + urlencode([*kept, ("job", ids.show(hit.id))])) for hit in hits],
        other_job="/triage" + (f"?{urlencode(kept)}" if kept else ""),
        longest=notes.LONGEST,
    )


@router.post("/triage")
def keep_triage(
    request: Request,
    person: Operator,
    job: Annotated[str, Form()] = "",
    answers: Annotated[str, Form(max_length=1_000)] = "",
    text: Annotated[str, Form(max_length=notes.LONGEST)] = "",
) -> Response:
    """Keep the answers and their reading as a note on the job."""
    given = answers_of(dict(parse_qsl(answers, max_num_fields=50)))
    if all(value == "unknown" for value in given.values()):
        raise Problem(422, "invalid", "Answer at least one question before keeping a triage.")
    if not job:
        raise Problem(422, "invalid", "Choose the job that the triage is about.", field="job")
    job_id = read_id(job, "job")
    context = context_of(request)
    now = context.now()
    said = reading(given)
    note = f"{said.summary} {text.strip()}".strip().replace("\x00", "")

    def work(connection: Connection) -> bool:
        kept = notes.add_to_job(connection, job_id, person.name, note, now, details(given, said))
        if kept:
            sentence = f"Kept a triage on the job: {said.summary}"
            audit.append(connection, person.name, "triage.kept", sentence, at=now, job_id=job_id)
        return kept

    if not context.store.write(work):
        raise not_found("no job with this id")
    return done(
        request,
        f"/jobs/{ids.show(job_id)}",
        f"Triage kept by {person.name} at {now:%H:%M} UTC: {said.summary}",
    )


def answers_of(fields: Mapping[str, str]) -> dict[str, Answer]:
    """Read one answer a question; a missing one is unknown."""
    given: dict[str, Answer] = {}
    for question in QUESTIONS:
        value = fields.get(question.id, "unknown")
        known = next((one for one in ANSWERS if one == value), None)
        if known is None:
            raise bad(question.id, f"{question.id} must be yes, no or unknown.")
        given[question.id] = known
    return given


def details(given: Mapping[str, Answer], said: Reading) -> dict[str, object]:
    """Write what is kept beside the note: the answers and what followed from them."""
    return {
        "answers": dict(given),
        "leaning": said.leaning,
        "reasons": list(said.reasons),
        "next_step": said.next_step,
    }


def _job(connection: Connection, text: str) -> JobRow | None:
    if not text:
        return None
    found = read_job(connection, read_id(text, "job"))
    if found is None:
        raise not_found("no job with this id")
    return found
