"""What would many actions take with them, read live and side by side?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from app.actions.reaching import port_of
from app.cluster.errors import ClusterError, NodeGone
from app.context import Context
from app.store.proposals import Proposal

READERS = 8


@dataclass(frozen=True, slots=True)
class Ends:
    """The pods that end with a node, counted by namespace; `error`: nobody knows."""

    pods: Mapping[str, int]
    error: str | None = None

    @property
    def number(self) -> int:
        """Count all of them."""
        return sum(self.pods.values())


def read_ends(context: Context, proposals: Iterable[Proposal]) -> dict[int, Ends]:
    """Read the pods on the nodes of everything that destroys; a cordon ends none."""
    wanted = [one for one in proposals if one.destroys and one.node_name]
    if not wanted:
        return {}
    with ThreadPoolExecutor(READERS) as pool:
        found = pool.map(lambda one: _read(context, one), wanted)
        return {one.id: ends for one, ends in zip(wanted, found, strict=True)}


def _read(context: Context, proposal: Proposal) -> Ends:
    try:
        pods = port_of(context, proposal.cluster).pods_on(proposal.node_name or "")
    except NodeGone:
        return Ends({})
    except ClusterError as error:
        return Ends({}, error.message)
    counted: dict[str, int] = {}
    for pod in pods:
        if pod.ends_with_node:
            counted[pod.namespace] = counted.get(pod.namespace, 0) + 1
    return Ends(dict(sorted(counted.items())))
