"""Is the node a part of a slice, and what runs on the other hosts that go with it?"""

from __future__ import annotations

import time
from dataclasses import dataclass

from app.actions.previewing.live import Alarmed, Live, with_more
from app.actions.previewing.parts import Check, counted
from app.actions.reaching import port_of
from app.actions.ways import way_of
from app.cluster.errors import ClusterError
from app.cluster.node_state import mapping
from app.cluster.ports import NodeState, PodOnNode
from app.context import Context
from app.store.proposals import Proposal
from witness.rules.slices import CHIPS, POOL, TOPOLOGY, hosts_of_slice

HOSTS = 64
SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice that a node is a host of; `others` None: its hosts could not be listed."""

    pool: str
    hosts: int
    others: tuple[str, ...] | None

    @property
    def check(self) -> Check:
        """Say it in a line."""
        words = f"It is one of {counted(self.hosts, 'host')} of a slice, node pool {self.pool}: "
        return Check("x", f"{words}a slice recovers only as a whole")


def slice_of(state: NodeState | None) -> tuple[str, int] | None:
    """Give node pool and number of hosts; None: not a host of a slice of several, or not told."""
    if state is None or POOL not in state.labels:
        return None
    chips = mapping(mapping(state.raw.get("status")).get("allocatable")).get(CHIPS)
    hosts = hosts_of_slice(state.labels.get(TOPOLOGY), chips)
    return (state.labels[POOL], hosts) if hosts and hosts > 1 else None


def with_slice(
    context: Context, proposal: Proposal, live: Live, alarmed: Alarmed | None
) -> tuple[Live, Slice | None]:
    """Find the other hosts of a slice; where an action ends them all, read their pods as well."""
    found = slice_of(live.state)
    if found is None or live.state is None:
        return live, None
    pool, hosts = found
    port = port_of(context, proposal.cluster)
    try:
        page = port.some_nodes({POOL: pool}, HOSTS)
    except ClusterError:
        whole = with_more(live, (), alarmed, unread=hosts - 1) if _ends(proposal) else live
        return whole, Slice(pool, hosts, None)
    others = tuple(one.name for one in page.nodes if one.name != live.state.name)
    if not _ends(proposal) or live.pods is None:
        return live, Slice(pool, hosts, others)
    pods: list[PodOnNode] = []
    read, deadline = 0, time.monotonic() + SECONDS
    for name in others:
        if time.monotonic() > deadline:
            break
        try:
            pods += port.pods_on(name)
        except ClusterError:
            break
        read += 1
    unread = max(len(others), hosts - 1) - read
    return with_more(live, pods, alarmed, unread=unread), Slice(pool, hosts, others)


def _ends(proposal: Proposal) -> bool:
    return proposal.action == "replace" and way_of(proposal) == "gke_host"
