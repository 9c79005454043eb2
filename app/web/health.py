"""Does it run, can it reach its database, what does it count?"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.context import context_of
from app.store import health
from app.store.database import StoreUnavailable
from app.web import metrics

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def alive() -> Response:
    """Say that the process serves; asks nobody."""
    return JSONResponse({"status": "serving"})


@router.get("/readyz")
def ready(request: Request) -> Response:
    """Say whether documents can be taken; 503 with the reason while they cannot."""
    store = context_of(request).store
    try:
        health.answers(store)
    except StoreUnavailable as error:
        body = {"status": "not ready", "reason": f"the database cannot be used: {error}"}
        return JSONResponse(body, 503, {"Retry-After": "5"})
    return JSONResponse({"status": "ready"})


@router.get("/metrics")
def counters(request: Request) -> Response:
    """Give the counters; those from the database are left out while it is away."""
    store = context_of(request).store
    try:
        with store.reading() as connection:
            proposals = health.proposals_by_status(connection)
    except StoreUnavailable:
        proposals = {}
    text = request.app.state.metrics.text(store, proposals)
    return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})
