"""Which limits hold for actions, and how does an administrator change them?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.actions import policy
from app.context import context_of
from app.errors import Problem
from app.store import audit_reading, rail_policy
from app.store.audit_reading import Filter
from app.web import limits_view
from app.web.rendering import done, render
from app.web.security import Admin, Viewer
from witness.rules.rail_policy import FIELDS, Field, RailPolicy, Value, shown

router = APIRouter(include_in_schema=False)

HERE = "/settings/policy"
HISTORY = 20
GROUPS = (
    ("caps", "How many nodes", "One more than these is refused, with the figures, and waits."),
    ("time", "How long and how often", "An approval is for the cluster as it stood."),
    ("people", "Who", "What destroys cannot be undone."),
    ("brake", "When the brake is pulled by itself",
     "Many at once points to software. While it is pulled nothing is sent but what undoes."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One limit of the form: as it is, and as it was typed where it could not be read."""

    field: Field
    typed: str
    shown: str
    error: str | None = None

    @property
    def unit(self) -> str:
        """Give the unit that is typed in."""
        return "%" if self.field.kind == "share" else self.field.unit


@router.get("/settings/policy")
def limits(request: Request, person: Viewer) -> Response:
    """Show every limit; the form has buttons for administrators only."""
    return _page(request, {}, None)


@router.post("/settings/policy")
async def change(request: Request, person: Admin) -> Response:
    """Put other limits in force; what cannot be is said beside its field."""
    form = await request.form()
    typed = {name: str(value) for name, value in form.items() if isinstance(value, str)}
    return await run_in_threadpool(_change, request, person.name, typed)


def _change(request: Request, by: str, typed: Mapping[str, str]) -> Response:
    context = context_of(request)
    try:
        values = {field.name: _read(field, typed) for field in FIELDS if _given(field, typed)}
        after, said = policy.change(context, values, typed.get("seen", ""), by)
    except Problem as problem:
        if problem.field is None:
            return done(
                request, HERE, problem.message.replace(" Nothing was decided; look", " Look")
            )
        return _page(request, typed, problem)
    if not said:
        return done(request, HERE, "Nothing differs from the limits in force; nothing was changed.")
    at = context.now()
    words = f"{by} put version {after.name} of the limits in force at {at:%H:%M} UTC: "
    return done(request, HERE, words + "; ".join(said[:3]) + (" …" if len(said) > 3 else "."))


def _given(field: Field, typed: Mapping[str, str]) -> bool:
    # A box that is not ticked is not sent at all.
    return field.kind == "yes_no" or field.name in typed


def _read(field: Field, typed: Mapping[str, str]) -> Value:
    if field.kind == "yes_no":
        return field.name in typed
    text = typed[field.name].strip().removesuffix("%").replace(",", ".").strip()
    try:
        number = float(text)
    except ValueError:
        words = f"“{typed[field.name][:40]}” is not a number."
        raise Problem(422, "invalid", words, field=field.name) from None
    return number / 100 if field.kind == "share" else number


def _page(request: Request, typed: Mapping[str, str], problem: Problem | None) -> Response:
    context = context_of(request)
    with context.store.reading() as connection:
        left = limits_view.read_left(connection, context.now())
        in_force = rail_policy.in_force(connection)
        changed = audit_reading.page(
            connection, Filter(verb="policy.changed"), before=None, limit=HISTORY
        )
    rows = [_row(field, in_force.policy, typed, problem) for field in FIELDS]
    return render(
        request,
        "policy.html",
        status=200 if problem is None else problem.status,
        groups=[
            (title, words, [row for row in rows if row.field.group == name])
            for name, title, words in GROUPS
        ],
        left=left,
        in_force=in_force,
        seen=typed.get("seen") or in_force.policy.name,
        problem=problem,
        changed=changed,
        nav="/settings",
    )


def _row(field: Field, now: RailPolicy, typed: Mapping[str, str], problem: Problem | None) -> Row:
    value = getattr(now, field.name)
    as_is = f"{100 * value:g}" if field.kind == "share" else f"{value:g}"
    error = problem.message if problem is not None and problem.field == field.name else None
    if field.kind == "yes_no":
        ticked = value if problem is None else field.name in typed
        return Row(field, "on" if ticked else "", shown(field, value), error)
    return Row(field, typed.get(field.name, as_is), shown(field, value), error)
