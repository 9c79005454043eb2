"""Which actions wait for somebody, which are under way, and what came of the others?"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.filters import Filters, bad, read_filters
from app.store import proposal_listing, run_settings
from app.store.people import ROLES, Person
from app.store.proposal_listing import Key, ListedProposal
from app.web import limits_view
from app.web.next_step import status_word
from app.web.proposal_view import TITLES
from app.web.rendering import render
from app.web.security import Viewer

router = APIRouter(include_in_schema=False)

PAGE = 50
FILTERS = ("cluster", "namespace", "job", "node", "instance", "gpu", "rule", "from", "to", "q")
# Title, statuses, and whether only what is blocked, or only what is not, is meant; None: both.
SHOWN: dict[str, tuple[str, tuple[str, ...], bool | None]] = {
    "pending": ("Waiting", ("proposed",), False),
    "blocked": ("Cannot be approved yet", ("proposed",), True),
    "under_way": ("Under way", ("approved", "executing", "accepted", "waiting", "unknown"), None),
    "done": ("Done", ("verified",), None),
    "not_done": ("Not done", ("refused", "failed", "gone"), None),
    "rejected": ("Rejected", ("rejected",), None),
    "expired": ("Expired or superseded", ("expired", "superseded"), None),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One proposal of the list."""

    listed: ListedProposal
    title: str
    word: str


@dataclass(frozen=True, slots=True)
class Pill:
    """One part of the list with its count."""

    label: str
    count: int
    address: str
    current: bool


@router.get("/approvals")
def approvals(request: Request, person: Viewer) -> Response:
    """Show the proposals by how they stand."""
    show = request.query_params.get("show") or "pending"
    if show not in SHOWN:
        raise bad("show", f"show must be one of {', '.join(SHOWN)}.")
    filters = read_filters(request.query_params.multi_items(), FILTERS)
    after = _read_cursor(request.query_params.get("cursor"))
    title, statuses, blocked = SHOWN[show]
    with context_of(request).store.reading() as connection:
        found = proposal_listing.page(
            connection,
            filters,
            after,
            PAGE + 1,
            statuses=statuses,
            blocked=blocked,
            oldest_first="proposed" in statuses,
        )
        counts = proposal_listing.counts(connection)
        brake = run_settings.brake(connection)
        left = limits_view.read_left(connection, context_of(request).now())
    shown = found[:PAGE]
    older = _address(show, filters, shown[-1].key) if len(found) > PAGE else None
    return render(
        request,
        "approvals.html",
        show=show,
        title=title,
        lines=[_line(one) for one in shown],
        pills=[
            Pill(SHOWN[name][0], _count(counts, name), _address(name, filters), name == show)
            for name in SHOWN
        ],
        filters=filters,
        newer=_address(show, filters) if after else None,
        older=older,
        brake=brake,
        left=left,
        choosing=show == "pending" and len(shown) > 1 and _may_choose(person),
    )


def _may_choose(person: Person) -> bool:
    return ROLES.index(person.role) >= ROLES.index("operator")


def _count(counts: dict[tuple[str, bool], int], name: str) -> int:
    _, statuses, blocked = SHOWN[name]
    return sum(
        number
        for (status, held), number in counts.items()
        if status in statuses and blocked in (None, held)
    )


def _line(one: ListedProposal) -> Line:
    action = one.proposal.action
    return Line(one, TITLES.get(action, action), status_word(one.proposal))


def _address(show: str, filters: Filters, after: Key | None = None) -> str:
    pairs = [*filters.as_typed, ("show", show)]
    if after is not None:
        text = base64.urlsafe_b64encode(json.dumps(after).encode()).decode()
        pairs.append(("cursor", text.rstrip("=")))
    return f"/approvals?{urlencode(pairs)}"


def _read_cursor(text: str | None) -> Key | None:
    if not text:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        at, row_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        fits = all(type(one) is int and abs(one) < 2**63 for one in (at, row_id))
    except (ValueError, TypeError, RecursionError):
        fits, at, row_id = False, 0, 0
    if not fits:
        raise bad("cursor", "This cursor is none of ours; begin again without.")
    return at, row_id
