"""Who owns a cluster's machines, can it be asked, and what does it do by itself?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from app.cluster.errors import ClusterError
from app.cluster.provider.ports import Fleet
from app.context import context_of
from app.errors import not_found
from app.web.rendering import render
from app.web.security import Viewer

router = APIRouter(include_in_schema=False)


@router.get("/settings/provider")
def provider(
    request: Request, person: Viewer, name: Annotated[str, Query(max_length=400)]
) -> Response:
    """Ask the owner of one cluster's machines what it says of the cluster, now."""
    port = context_of(request).providers.get(name)
    if port is None:
        raise not_found("no cluster of this name in WITNESS_PROVIDERS")
    fleet: Fleet | None = None
    error: str | None = None
    try:
        fleet = port.fleet()
    except ClusterError as failed:
        error = failed.message
    return render(
        request,
        "provider.html",
        provider=port.status(),
        fleet=fleet,
        error=error,
        nav="/settings",
    )
