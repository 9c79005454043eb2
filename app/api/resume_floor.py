"""How does a restarting job ask up to which step it may resume?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.resume_floor import Considered, Floor, floor_of
from app.api.paging import refusals
from app.auth import Asking, Sender
from app.context import context_of
from app.errors import Problem
from app.filters import LONGEST, bad
from app.store import ids
from app.store.intake.job_rows import job_id
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["reading"])
_NAMES = ("cluster", "namespace", "job")


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
    return {"name": name, "in": "query", "required": True, "schema": schema}


@router.get(
    "/resume-floor",
    summary="Ask for the highest step to resume from",
    openapi_extra={"parameters": [_parameter(name) for name in _NAMES]},
    responses=refusals(400, 401, 403),
)
def resume_floor(request: Request, by: Asking) -> Response:
    """Give the highest step before every open suspect window of the job; null: nothing limits it.

    A job that is not known here gets null too, and is told so.
    """
    cluster, namespace, job = _names(request, by)
    wanted = job_id(cluster, namespace, job)
    with context_of(request).store.reading() as connection:
        floor = floor_of(connection, wanted)
    body = {
        "cluster": cluster,
        "namespace": namespace,
        "job": job,
        "job_id": ids.show(wanted),
        **_as_json(floor),
    }
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


def _names(request: Request, by: Sender) -> tuple[str, str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in _NAMES:
            raise bad(name[:60], f"resume-floor has no parameter {name[:60]!r}.")
        if name in given:
            raise bad(name, f"{name} was given more than once.")
        if not value or len(value) > LONGEST or "\x00" in value:
            raise bad(name, f"{name} must be a text of 1 to {LONGEST} characters without NUL.")
        given[name] = value
    for name in _NAMES:
        if name not in given:
            message = f"{name} is missing; cluster, namespace and job are needed."
            raise Problem(400, "missing_parameter", message, field=name)
    by.check(given["cluster"], given["namespace"])
    return given["cluster"], given["namespace"], given["job"]


def _as_json(floor: Floor) -> dict[str, Any]:
    limit, best = floor.limited_by, floor.checkpoint
    return {
        "highest_step": floor.highest_step,
        "why": floor.why,
        "alarm": None
        if limit is None
        else {
            "id": ids.show(limit.alarm_id),
            "url": f"/alarms/{ids.show(limit.alarm_id)}",
            "occurred_at": limit.occurred_at,
            "summary": limit.summary,
        },
        "window": None if limit is None else [limit.first, limit.last],
        "checkpoint": None if best is None else {"step": best.step, "uri": best.uri},
        "windows_left_behind": floor.left_behind,
        "checkpoints": [_considered(one) for one in floor.considered],
    }


def _considered(one: Considered) -> dict[str, Any]:
    saved = one.checkpoint
    return {
        "step": saved.step,
        "uri": saved.uri,
        "saved_at": saved.saved_at,
        "committed": saved.committed,
        "tags": {
            "last_audit_pass": saved.last_audit_pass,
            "last_weight_check_pass": saved.last_weight_check_pass,
        }
        if saved.tagged
        else None,
        "against": one.against,
    }
