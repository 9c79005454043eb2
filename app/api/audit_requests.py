"""What does a job that starts learn of machines that are to be audited closely?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.paging import refusals
from app.auth import Asking, Sender
from app.context import context_of
from app.errors import Problem
from app.filters import LONGEST, bad
from app.store import ids, targeted_audits
from app.store.targeted_audits import TargetedAudit
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["reading"])
_NEEDED = ("cluster", "namespace", "job")
_NAMES = (*_NEEDED, "node", "instance")


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
    return {"name": name, "in": "query", "required": name in _NEEDED, "schema": schema}


@router.get(
    "/audit-requests",
    summary="Ask which machines this job should audit closely",
    openapi_extra={"parameters": [_parameter(name) for name in _NAMES]},
    responses=refusals(400, 401, 403),
)
def audit_requests(request: Request, by: Asking) -> Response:
    """List the targeted audits that the next attempt of a job is asked to make.

    A job compares them with its own rank map; `node` and `instance` leave only one machine.
    """
    given = _names(request, by)
    context = context_of(request)
    with context.store.reading() as connection:
        found = targeted_audits.asked_of(
            connection, given["cluster"], given["namespace"], given["job"], context.now()
        )
    names = {name: given[name] for name in _NEEDED}
    listed = [_as_json(one) for one in found if _concerns(one, given)]
    return StrictJSON({**names, "requests": listed}, headers={"Cache-Control": "no-store"})


def _concerns(one: TargetedAudit, given: dict[str, str]) -> bool:
    node, instance = given.get("node"), given.get("instance")
    if instance is not None and one.instance_id is not None:
        return one.instance_id == instance
    return node is None or one.node_name is None or one.node_name == node


def _as_json(one: TargetedAudit) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "node": one.node_name,
        "instance_id": one.instance_id,
        "gpu_uuid": one.gpu_uuid,
        "audit_every": one.audit_every,
        "passes": one.passes_wanted,
        "until": one.ends_at,
        "probation": one.probation,
    }


def _names(request: Request, by: Sender) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in _NAMES:
            raise bad(name[:60], f"audit-requests has no parameter {name[:60]!r}.")
        if name in given:
            raise bad(name, f"{name} was given more than once.")
        if not value or len(value) > LONGEST or "\x00" in value:
            raise bad(name, f"{name} must be a text of 1 to {LONGEST} characters without NUL.")
        given[name] = value
    for name in _NEEDED:
        if name not in given:
            message = f"{name} is missing; cluster, namespace and job are needed."
            raise Problem(400, "missing_parameter", message, field=name)
    by.check(given["cluster"], given["namespace"])
    return given
