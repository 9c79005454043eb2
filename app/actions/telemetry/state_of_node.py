"""What does the cluster say of a node now, and is it still the machine that is meant?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.actions.telemetry.node_answer import Answer, NoWay
from app.cluster.errors import ClusterFailed, NodeGone
from app.cluster.ports import NodeState
from app.context import Context
from app.store import node_records
from app.store.node_evidence import Evidence
from app.store.node_records import Raw
from witness.rules.moments import at

LEFT_OUT = ("images", "volumesAttached", "volumesInUse")
"""Parts of a node's status that say nothing of faults and are most of its size."""
LARGEST = 1 << 20
"""Characters; all labels and annotations of a node together may be a quarter of it."""


def read(context: Context, one: Evidence, now: datetime) -> Answer:
    """Read a node once, as it stands now; raises `NoWay` or `ClusterError`.

    A machine of which only the instance id is known is looked for under HyperPod's name for it.
    """
    port = context.clusters.get(one.cluster)
    if port is None:
        raise NoWay("No cluster of this name is configured, so its nodes are not read.")
    name = one.node or f"hyperpod-{one.instance_id}"
    try:
        state = port.node(name)
    except NodeGone:
        return Answer(said=f"The cluster knew no node {name} at {_at(now)}.", gone=True)
    text = json.dumps(_without_images(state.raw), separators=(",", ":"), sort_keys=True)
    if len(text) > LARGEST:
        raise ClusterFailed(f"What the cluster says of {name} is too large to be kept.")
    other = _another(one, state, _uid_before(context, one))
    return Answer((Raw(text, now, other=other),), said=other)


def _without_images(raw: Mapping[str, Any]) -> dict[str, Any]:
    status = raw.get("status")
    if not isinstance(status, Mapping):
        return dict(raw)
    return {**raw, "status": {key: status[key] for key in status if key not in LEFT_OUT}}


def _uid_before(context: Context, one: Evidence) -> str | None:
    """Find the uid under which the node was read for this question before."""
    with context.store.reading() as connection:
        (kept, *_) = node_records.of_evidence(connection, [one], 1) or (None,)
    if kept is None or kept.record.other is not None:
        return None
    uid = json.loads(kept.record.text).get("metadata", {}).get("uid")
    return uid if isinstance(uid, str) else None


def _another(one: Evidence, state: NodeState, uid: str | None) -> str | None:
    """Say why the node is another machine than the alarm's; None where nothing speaks for that.

    The instance id decides where both are known. Else a node that was made after the time that is
    asked about, or between two readings of it, is another.
    """
    if one.instance_id is not None and state.instance_id is not None:
        if one.instance_id == state.instance_id:
            return None
        return (
            f"The name {state.name} belongs to another machine now, {state.instance_id}: what "
            f"stands on it is no evidence about {one.instance_id}."
        )
    is_newer = state.created_at is not None and state.created_at > one.end
    if is_newer or (uid is not None and state.uid is not None and uid != state.uid):
        made = f", made at {_at(state.created_at)}" if state.created_at else ""
        return (
            f"Another node carries the name {state.name} now{made}: what stands on it is no "
            "evidence about the machine of that time."
        )
    return None


def _at(moment: datetime) -> str:
    return at(moment.timestamp())
