"""How does a program read the audit chain, entry by entry, with what it needs to verify it?"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.paging import Listing
from app.api.reading import Reading
from app.context import context_of
from app.errors import forbidden
from app.filters import Filters, bad
from app.store import audit, audit_reading, ids

router = APIRouter(prefix="/api/v1", tags=["reading"])

ENTRIES = Listing(
    "audit",
    order="newest first: id descending, the reverse of the order in which they were written",
    filters=("node", "job", "from", "to", "q"),
    columns=(
        "id",
        "at",
        "actor",
        "verb",
        "summary",
        "case",
        "proposal",
        "node",
        "job",
        "details",
        "previous_hash",
        "hash",
    ),
    cursor=(int,),
)


@router.get("/audit", summary="List audit entries", openapi_extra=ENTRIES.openapi())
def entries(request: Request, by: Reading) -> Response:
    """List entries; node and job are ids, q is looked for in the summary."""
    page = ENTRIES.read(request)
    if by.cluster is not None:
        raise forbidden(f"The token {by.name} is bound to a cluster; the audit chain is of all.")
    wanted = audit_reading.Filter(
        text=page.filters.q or "",
        since=page.filters.since,
        until=page.filters.until,
        node_id=_row_id("node", page.filters),
        job_id=_row_id("job", page.filters),
    )
    before = page.after[0] if page.after else None
    with context_of(request).store.reading() as connection:
        found = audit_reading.page(connection, wanted, before=before, limit=page.limit + 1)
    rows = [audit.as_exported(one) for one in found]
    return ENTRIES.answer(page, rows, [(one.id,) for one in found])


def _row_id(name: str, filters: Filters) -> int | None:
    values: tuple[str, ...] = getattr(filters, name)
    if not values:
        return None
    if len(values) > 1:
        raise bad(name, f"{name} can be given once here.")
    try:
        return ids.read(values[0])
    except ValueError:
        raise bad(name, f"{name} must be an id of 13 letters here.") from None
