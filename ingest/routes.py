"""At which addresses do training jobs post, and what are they told?

Every route reads the raw body itself: the document is kept as it came, the standard decoder keeps
NaN and long integers, and an answer leaves only after the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from app.auth import Sender, sender
from app.context import Context, context_of
from app.errors import Problem
from app.store import ids
from ingest import schemas
from ingest.body import read_body
from ingest.documents import Post, Receipt
from ingest.json_text import decode
from ingest.lines import LineResult, read_lines
from ingest.parse import Arrival, read_post

# Above this many bytes decoding would keep the event loop from serving anybody else.
INLINE_BYTES = 256 * 1024
# The configured limit is enforced while the body is read; the framework's own must not be lower.
NO_LIMIT = 1 << 40

router = APIRouter(prefix="/api/v1", tags=["intake"])


async def _post(request: Request, kind: str) -> JSONResponse:
    # Asked for here: as a dependency it would cost every alarm as much as reading its text.
    by = await sender(request)
    context = context_of(request)
    metrics = request.app.state.metrics
    try:
        raw = await read_body(request, context.settings.body_limit_mib)
        read = run_in_threadpool if len(raw) > INLINE_BYTES else _at_once
        post = await read(_read, context, by, kind, raw)
    except Problem:
        metrics.document(kind, "refused")
        raise
    receipt = (await _written(context, [post]))[0]
    metrics.document(kind, "duplicate" if receipt.duplicate else "new")
    return JSONResponse(_said(receipt), 200 if receipt.duplicate else 201)


async def _at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def _read(context: Context, by: Sender, kind: str, raw: bytes) -> Post:
    document, text = decode(raw)
    post = read_post(kind, document, Arrival(context.now(), by.token_id, text))
    by.check(post.envelope.cluster, post.envelope.namespace)
    return post


async def _written(context: Context, posts: Sequence[Post]) -> list[Receipt]:
    """Wait for the commit; raises StoreUnavailable and QueueFull, which have their answers."""
    return await asyncio.wrap_future(context.store.writer.submit(posts))


def _said(receipt: Receipt) -> dict[str, Any]:
    noun = "alarms" if receipt.kind == "alarm" else "jobs"
    shown = ids.show(receipt.row_id)
    said: dict[str, Any] = {"id": shown, "url": f"/api/v1/{noun}/{shown}"}
    if receipt.duplicate:
        said["duplicate"] = True
        said["reports"] = receipt.reports
        if receipt.reporters is not None:
            said["reporters"] = receipt.reporters
    return said


_ANSWERS = schemas.ANSWERS


@router.post(
    "/alarms",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.AlarmDocument),
    max_body_size=NO_LIMIT,
)
async def post_alarm(request: Request) -> JSONResponse:
    """Take one alarm; every rank may post the same one."""
    return await _post(request, "alarm")


@router.post(
    "/rank-maps",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.RankMapDocument),
    max_body_size=NO_LIMIT,
)
async def post_rank_map(request: Request) -> JSONResponse:
    """Take the placement of one start of a job."""
    return await _post(request, "rank_map")


@router.post(
    "/passes",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.PassesDocument),
    max_body_size=NO_LIMIT,
)
async def post_passes(request: Request) -> JSONResponse:
    """Take the passes of one check since the last beat."""
    return await _post(request, "passes")


@router.post(
    "/checkpoints",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.CheckpointsDocument),
    max_body_size=NO_LIMIT,
)
async def post_checkpoints(request: Request) -> JSONResponse:
    """Take what a job saved."""
    return await _post(request, "checkpoints")


@router.post(
    "/replays",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.ReplayDocument),
    max_body_size=NO_LIMIT,
)
async def post_replay(request: Request) -> JSONResponse:
    """Take replays of a triggering step."""
    return await _post(request, "replay")


@router.post(
    "/elastic-events",
    status_code=201,
    responses=_ANSWERS,
    openapi_extra=schemas.body_of(schemas.ElasticDocument),
    max_body_size=NO_LIMIT,
)
async def post_elastic_event(request: Request) -> JSONResponse:
    """Take one event of an elastic job."""
    return await _post(request, "elastic_event")


@router.post(
    "/events",
    responses=schemas.LINE_ANSWERS,
    openapi_extra=schemas.LINES_BODY,
    max_body_size=NO_LIMIT,
)
async def post_events(request: Request) -> JSONResponse:
    """Take many documents, one JSON line each; every line has a result of its own."""
    by = await sender(request)
    context = context_of(request)
    raw = await read_body(request, context.settings.body_limit_mib)
    lines = await run_in_threadpool(read_lines, raw, context.now(), by)
    posts = [line.post for line in lines if line.post is not None]
    receipts = iter(await _written(context, posts) if posts else [])
    metrics = request.app.state.metrics
    results = []
    for line in lines:
        receipt = next(receipts) if line.post is not None else None
        results.append(_line_said(line, receipt))
        outcome = "refused" if receipt is None else "duplicate" if receipt.duplicate else "new"
        metrics.document(line.kind, outcome)
    refused = len(lines) - len(posts)
    return JSONResponse({"results": results, "accepted": len(posts), "refused": refused})


def _line_said(line: LineResult, receipt: Receipt | None) -> dict[str, Any]:
    if receipt is None:
        problem = line.problem
        assert problem is not None
        return {"line": line.number, "status": problem.status, **problem.as_json()}
    return {"line": line.number, "status": 200 if receipt.duplicate else 201, **_said(receipt)}
