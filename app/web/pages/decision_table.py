"""What does the decision table say, and what would it say of this alarm?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions.table_reading import ABOVE, GUARDS, LONGEST, Judged, PasteError, judge
from app.web.rendering import render
from app.web.security import Viewer
from witness.rules.decision_table import ROWS, TABLE_VERSION

EXAMPLE = """{"step": 30, "check": "compute", "nonfinite": [],
 "mismatched_pairs": [[13, 5], [21, 13]], "culprits": [13], "verdicts": [],
 "suspect_window": [21, 30], "last_audit_pass": 20, "last_weight_check_pass": 20}"""

router = APIRouter(include_in_schema=False)


@router.get("/decision-table")
def decision_table(request: Request, person: Viewer) -> Response:
    """Show the whole table."""
    return _page(request, pasted="")


@router.post("/decision-table")
def try_alarm(request: Request, person: Viewer, document: Annotated[str, Form()] = "") -> Response:
    """Say what the table says of a pasted alarm; nothing is stored, so the page answers itself."""
    try:
        return _page(request, pasted=document, judged=judge(document))
    except PasteError as error:
        status = 413 if len(document) > LONGEST else 422
        return _page(request, pasted=document[:LONGEST], error=error, status=status)


def _page(
    request: Request,
    *,
    pasted: str,
    judged: Judged | None = None,
    error: PasteError | None = None,
    status: int = 200,
) -> Response:
    return render(
        request,
        "decision_table.html",
        status=status,
        rows=ROWS,
        version=TABLE_VERSION,
        above=ABOVE,
        guards=GUARDS,
        pasted=pasted,
        example=EXAMPLE,
        longest=LONGEST,
        judged=judged,
        error=error,
    )
