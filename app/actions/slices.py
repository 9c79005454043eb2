"""Which other nodes go out of service with a TPU node, because they are one slice?

Hosts of a slice over several machines recover only together: work on the others ends as well, and
a cordon of one of them alone would only make the slice wait. So the cordons of the others are
proposed, to be decided together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from app.cluster.label_orders import TPU
from app.cluster.ports import NodeState
from app.store import audit, evidence, held_nodes, ids, proposals
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION

POOL = "cloud.google.com/gke-nodepool"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
CHIPS = "google.com/tpu"
SLICE = "slice"
"""Who proposes, and where a look keeps the names of the others."""
WHY = (
    "It is one slice with {node}, which is cordoned: the hosts of a slice recover only together, "
    "so no work can run on this one alone."
)


def is_of_many_hosts(state: NodeState) -> bool:
    """Tell whether the node is one host of a slice over several; False where it does not say."""
    if TPU not in state.labels or POOL not in state.labels:
        return False
    chips = (state.raw.get("status") or {}).get("allocatable") or {}
    try:
        own = int(chips.get(CHIPS, 0))
        whole = 1
        for side in state.labels.get(TOPOLOGY, "").split("x"):
            whole *= int(side)
    except ValueError:
        return False
    return 0 < own < whole


def others(state: NodeState, nodes: Iterable[NodeState]) -> list[dict[str, str | None]]:
    """Find the other hosts of a node's slice that work can still be scheduled to."""
    pool = state.labels.get(POOL)
    return [
        {"name": one.name, "uid": one.uid}
        for one in nodes
        if one.labels.get(POOL) == pool and one.name != state.name and not one.unschedulable
    ]


def propose_rest(
    connection: Connection,
    cordon: Proposal,
    rest: Sequence[Mapping[str, Any]],
    now: datetime,
    days: float,
) -> int:
    """Propose to cordon the other hosts of a slice, each once; give how many were proposed.

    Call it inside `writing.write`, once the cordon of the first is verified.
    """
    known = {
        one.node_name
        for one in proposals.of_cases(connection, [cordon.case_id]).get(cordon.case_id, ())
        if one.action == "cordon"
    }
    new = [one for one in rest if one["name"] not in known]
    for one in new:
        _propose(connection, cordon, one, now, now + timedelta(days=days))
    return len(new)


def _propose(
    connection: Connection,
    cordon: Proposal,
    node: Mapping[str, Any],
    now: datetime,
    expires_at: datetime,
) -> None:
    ordinal = proposals.next_ordinal(connection, cordon.case_id, "cordon")
    row_id = ids.derive("proposal", cordon.case_id, "cordon", ordinal)
    why = WHY.format(node=cordon.node_name)
    proposals.add(
        connection,
        {
            "id": row_id,
            "case_id": cordon.case_id,
            "action": "cordon",
            "ordinal": ordinal,
            "cluster": cordon.cluster,
            # Without it the cordon would be in no count of what is out, and on no watch.
            "node_id": held_nodes.of_name(connection, cordon.cluster, str(node["name"])),
            "node_name": node["name"],
            "node_uid": node["uid"],
            "status": "proposed",
            "evidence_version": evidence.version(connection, cordon.case_id),
            "table_version": str(TABLE_VERSION),
            "why": why,
            "recommended_by": SLICE,
            "created_at": now,
            "expires_at": expires_at,
        },
    )
    audit.append(
        connection,
        "service",
        "slice.proposed",
        f"Cordon of {node['name']} proposed: {why}",
        at=now,
        case_id=cordon.case_id,
        proposal_id=row_id,
        details={"cordon": ids.show(cordon.id)},
    )
