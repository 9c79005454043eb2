"""How does a program read what an action would do to the cluster as it stands now?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.preview import Preview, preview
from app.actions.previewing.live import Pods
from app.actions.previewing.losses import Checkpoints
from app.actions.previewing.parts import Check
from app.actions.previewing.resuming import Choice, Going
from app.actions.previewing.spare import Spare
from app.api.reading import Reading
from app.context import context_of
from app.errors import Problem, not_found
from app.store import ids, proposal_listing
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["deciding"])


@router.get("/proposals/{proposal_id}/preview", summary="Preview an action, read live")
def read_preview(request: Request, by: Reading, proposal_id: str) -> Response:
    """Read node, pods, machine and spare capacity now; 409 once the proposal is decided."""
    context = context_of(request)
    try:
        row_id = ids.read(proposal_id)
    except ValueError:
        raise not_found("no proposal with this id") from None
    with context.store.reading() as connection:
        found = proposal_listing.one(connection, row_id)
    if found is None or not by.allows(found.proposal.cluster, found.namespace):
        raise not_found("no proposal with this id")
    if found.proposal.status != "proposed":
        words = f"It is decided already: {found.proposal.status}. There is nothing to preview."
        raise Problem(409, "not_open", words, more={"status": found.proposal.status})
    shown = preview(context, found.proposal)
    return StrictJSON(as_json(shown), headers={"Cache-Control": "no-store"})


def as_json(shown: Preview) -> dict[str, Any]:
    """Give a preview as programs read it; None and "known": false mean that nobody could say."""
    live, machine = shown.live, shown.machine
    return {
        "proposal": ids.show(shown.proposal.id),
        "action": shown.proposal.action,
        "read_at": live.read_at,
        "node_known": live.state is not None,
        "node_gone": live.gone,
        "error": live.error,
        "pods_known": live.pods is not None,
        "pods": [_pods(one) for one in live.pods or ()],
        "pods_of_daemons": live.daemons,
        "pods_ended": live.ended,
        "nodes_not_read": live.unread,
        "happens": list(shown.happens),
        "lost": [{"what": one.words, "certain": one.certain} for one in shown.losses],
        "local_checkpoints": [_checkpoints(one) for one in shown.local],
        "platform": {
            "node_recovery": machine.fleet.node_recovery if machine.fleet else None,
            "autoscaler": machine.fleet.autoscaler if machine.fleet else None,
            "karpenter": shown.platform.karpenter,
            "machine_status": machine.status,
            "machine_gone": machine.gone,
            "already": [{"doing": one.doing, "mark": one.mark} for one in shown.platform.already],
        },
        "checks": [_check(one) for one in (*shown.checks, *shown.platform.checks, *shown.room)],
        "spare": None if shown.spare is None else _spare(shown.spare),
        "resume": None if shown.going is None else _going(shown.going),
        "confirmation": {"node": shown.confirmation.node, "words": shown.confirmation.words},
        "refusal": shown.refusal,
        "policy": shown.policy,
        "node_uid": shown.node_uid or None,
        "seen": {
            "uid": shown.seen.uid,
            "instance": shown.seen.instance,
            "cordon": shown.seen.cordon,
            "machine": shown.seen.machine,
        },
    }


def _pods(group: Pods) -> dict[str, Any]:
    return {
        "namespace": group.namespace,
        "whose": group.whose,
        "accelerators": group.accelerators,
        "pods": [
            {
                "name": one.pod.name,
                "job": one.pod.job,
                "alarmed_job": bool(one.own),
                "system": one.pod.system,
                "accelerators": one.pod.accelerators,
                "data": [
                    {"kind": volume.kind, "path": volume.path, "claim": volume.claim}
                    for volume in one.pod.volumes
                ],
            }
            for one in group.victims
        ],
    }


def _checkpoints(one: Checkpoints) -> dict[str, Any]:
    return {
        "job": one.job,
        "namespace": one.namespace,
        "certain": one.certain,
        "in_memory": one.in_memory,
        "count": one.count,
        "newest_step": one.newest.step,
        "newest_uri": one.newest.uri,
        "newest_shared_step": one.newest_shared,
    }


def _check(check: Check) -> dict[str, str]:
    states = {"t": "true", "x": "against", "u": "unknown", "f": "fact"}
    return {"state": states[check.state], "what": check.words}


def _spare(spare: Spare) -> dict[str, Any]:
    return {
        "instance_type": spare.kind,
        "free": None if spare.why else len(spare.free),
        "looked_at": spare.looked_at,
        "all_looked_at": spare.whole,
        "why_unknown": spare.why,
        "read_at": spare.read_at,
    }


def _going(going: Going) -> dict[str, Any]:
    hour = going.hour
    return {
        "alarm": ids.show(going.alarm_id),
        "choices": [_choice(one) for one in going.choices],
        "newest_on_shared_storage": None if going.shared is None else _choice(going.shared),
        "reason": going.reason,
        "hour_of_waiting": {
            "kind": hour.kind,
            "gpu_hours": hour.gpu_hours,
            "steps": hour.steps,
            "formula": hour.formula,
        },
    }


def _choice(one: Choice) -> dict[str, Any]:
    return {
        "choice": one.choice.choice,
        "step": one.choice.step,
        "uri": one.choice.uri,
        "saved_at": one.saved_at,
        "lies_on": one.place,
        "lost_steps": one.choice.lost_steps,
        "lost_gpu_hours": one.choice.lost_gpu_hours,
        "why": one.choice.why,
    }
