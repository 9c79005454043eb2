"""Where is this node, GPU or job?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.store import search as queries
from app.web.rendering import render
from app.web.security import Viewer

LIMIT = 50

router = APIRouter(include_in_schema=False)


@router.get("/search")
def search(
    request: Request, person: Viewer, q: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """List nodes, GPUs and jobs whose names begin like the text."""
    text = q.strip()
    if not text:
        return render(request, "search.html", text="", found=None)
    with context_of(request).store.reading() as connection:
        found = {
            "nodes": queries.nodes_like(connection, text, LIMIT),
            "gpus": queries.gpus_like(connection, text, LIMIT),
            "jobs": queries.jobs_like(connection, text, LIMIT),
            "direct": queries.by_id(connection, text),
        }
    return render(request, "search.html", text=text, found=found, limit=LIMIT)
