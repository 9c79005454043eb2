"""What does the cluster say of a node now, and whose pods end with it?

A cluster that does not answer is said plainly: "not known" is not "none".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from app.actions.reaching import port_of
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.pods import SYSTEM_NAMESPACES
from app.cluster.ports import NodeState, PodOnNode
from app.context import Context
from app.store.proposals import Proposal

Whose = Literal["own", "namespace", "system", "other"]


@dataclass(frozen=True, slots=True)
class Alarmed:
    """The job whose alarm is behind an action."""

    job: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Victim:
    """One pod that ends with the node; `own`: of the alarmed job, "name" where only names say so.

    "" means that it belongs to another job, or to none.
    """

    pod: PodOnNode
    own: Literal["label", "name", ""]


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of one namespace that end with the node, and whose they are.

    "own" holds the alarmed job's, "namespace" others of its namespace, "system" the cluster's own,
    "other" another team's.
    """

    namespace: str
    whose: Whose
    victims: tuple[Victim, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Give their names."""
        return tuple(one.pod.name for one in self.victims)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Give the jobs that they belong to, each once."""
        return tuple(dict.fromkeys(one.pod.job for one in self.victims if one.pod.job))

    @property
    def accelerators(self) -> int:
        """Count the GPUs that they ask for."""
        return sum(one.pod.accelerators for one in self.victims)


@dataclass(frozen=True, slots=True)
class Live:
    """What the cluster said; `error` where it said nothing of use.

    `pods` is None where they were not read. `daemons` come with every node, `ended` have ended:
    neither is lost.
    """

    read_at: datetime
    state: NodeState | None = None
    error: str | None = None
    gone: bool = False
    dry_run: bool = False
    pods: tuple[Pods, ...] | None = None
    pods_error: str | None = None
    daemons: int = 0
    ended: int = 0
    unread: int = 0  # other nodes that go with it, whose pods were not read

    @property
    def victims(self) -> int | None:
        """Count the pods that end with the node; None: not known."""
        return None if self.pods is None else sum(len(one.victims) for one in self.pods)

    def of(self, whose: Whose) -> tuple[Pods, ...]:
        """Give the groups of one sort; empty also where nothing was read."""
        return tuple(one for one in self.pods or () if one.whose == whose)


def read_live(context: Context, proposal: Proposal, alarmed: Alarmed | None) -> Live:
    """Read the node of a proposal and what runs on it; never raises an error of a cluster."""
    now, name = context.now(), proposal.node_name
    port = port_of(context, proposal.cluster)
    if not name:
        return Live(now, error="No node is known by name.")
    try:
        state = port.node(name)
    except ClusterNotConfigured as error:
        dry = port.status().kind == "dry run"
        return Live(now, error=error.message, dry_run=dry, pods_error=error.message)
    except NodeGone:
        return Live(now, error=f"The node is gone: the cluster knows no node {name}.", gone=True)
    except ClusterError as error:
        return Live(now, error=error.message, pods_error=error.message)
    try:
        found = port.pods_on(name)
    except ClusterError as error:
        return Live(now, state, pods_error=error.message)
    return with_more(Live(now, state, pods=()), found, alarmed)


def with_more(
    live: Live, found: Sequence[PodOnNode], alarmed: Alarmed | None, unread: int = 0
) -> Live:
    """Add pods to what was read; `unread` counts nodes whose pods are still not known."""
    known = [victim.pod for group in live.pods or () for victim in group.victims]
    return replace(
        live,
        pods=None if live.pods is None else grouped([*known, *found], alarmed),
        daemons=live.daemons + sum(one.daemonset for one in found),
        ended=live.ended + sum(not one.daemonset and not one.ends_with_node for one in found),
        unread=live.unread + unread,
    )


def grouped(pods: Iterable[PodOnNode], alarmed: Alarmed | None) -> tuple[Pods, ...]:
    """Group the pods that end with a node: other teams first, then the alarm’s own, then system."""
    by_namespace: dict[str, list[Victim]] = {}
    for pod in sorted(pods, key=lambda one: (one.namespace, one.name)):
        if pod.ends_with_node:
            by_namespace.setdefault(pod.namespace, []).append(Victim(pod, _own(pod, alarmed)))
    groups = [
        Pods(namespace, _whose(namespace, victims, alarmed), tuple(victims))
        for namespace, victims in by_namespace.items()
    ]
    order = {"other": 0, "own": 1, "namespace": 2, "system": 3}
    return tuple(sorted(groups, key=lambda one: (order[one.whose], one.namespace)))


def _own(pod: PodOnNode, alarmed: Alarmed | None) -> Literal["label", "name", ""]:
    """Tell whether a pod belongs to the alarmed job, and what shows it."""
    if alarmed is None or pod.namespace != alarmed.namespace:
        return ""
    if pod.job == alarmed.job:
        return "label"
    begins = f"{alarmed.job}-"
    # A controller adds to the name that the job gave itself: llama becomes llama-worker-1.
    return "name" if any((one or "").startswith(begins) for one in (pod.job, pod.name)) else ""


def _whose(namespace: str, victims: list[Victim], alarmed: Alarmed | None) -> Whose:
    if namespace in SYSTEM_NAMESPACES or all(one.pod.system for one in victims):
        return "system"
    if alarmed is not None and namespace == alarmed.namespace:
        return "own" if any(one.own for one in victims) else "namespace"
    return "other"
