"""Is another machine of the same kind free to take the work, as far as a short look can tell?

Bounded whatever the size of the cluster: one page of nodes, and the pods of a few of them, within
a few seconds; kept for a short while, so that looking often costs nothing.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from app.actions.previewing.live import Live
from app.actions.previewing.machine_now import MachineNow
from app.actions.previewing.parts import Check, counted
from app.actions.reaching import port_of
from app.cluster.errors import ClusterError
from app.cluster.ports import ClusterPort, NodeState
from app.context import Context
from app.store.proposals import Proposal
from witness.rules.platform_signs import HEALTH, signs

NODES = 100
LOOKED_AT = 12
"""Nodes whose pods are read; each is one request."""
SECONDS = 2.0
KEPT_S = 45.0
TYPE_LABEL = "node.kubernetes.io/instance-type"
GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
_HARMLESS_TAINTS = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu")


@dataclass(frozen=True, slots=True)
class Spare:
    """Free machines of one type among those `looked` at; `whole`: every one was looked at.

    `kind` None: the node does not tell its type. `why` is set where nothing could be told.
    """

    kind: str | None
    read_at: datetime
    free: tuple[str, ...] = ()
    looked: tuple[str, ...] = ()
    whole: bool = False
    why: str | None = None

    @property
    def looked_at(self) -> int:
        """Count the machines that were looked at."""
        return len(self.looked)

    @property
    def check(self) -> Check:
        """Say it in a line."""
        if self.why is not None:
            return Check("u", f"Spare capacity: not known. {self.why}")
        number, kind = len(self.free), self.kind or "this type"
        if self.whole:
            words = f"Spare capacity: {number} of {counted(self.looked_at, 'other node')} of type "
            return Check("t" if number else "x", f"{words}{kind} free of GPU pods")
        words = f"Spare capacity: at least {number} of {self.looked_at} nodes looked at of type "
        state = Check("t", f"{words}{kind} free of GPU pods; there are others")
        return state if number else Check("u", state.words)


_kept: WeakKeyDictionary[ClusterPort, dict[str, tuple[float, Spare]]] = WeakKeyDictionary()
_lock = threading.Lock()


def spare(context: Context, proposal: Proposal, live: Live) -> Spare:
    """Look for free machines of the node's type; never raises an error of a cluster."""
    now = context.now()
    if live.state is None:
        return Spare(None, now, why="The node could not be read, so its type is not known.")
    kind = live.state.labels.get(TYPE_LABEL)
    if not kind:
        return Spare(None, now, why="The node does not say of which type it is.")
    port = port_of(context, proposal.cluster)
    with _lock:
        at, known = _kept.get(port, {}).get(kind, (0.0, None))
    if known is None or time.monotonic() - at > KEPT_S:
        known = _look(port, kind, now)
        with _lock:
            _kept.setdefault(port, {})[kind] = (time.monotonic(), known)
    return _without(known, live.state.name)


def _without(found: Spare, name: str) -> Spare:
    """Leave the node itself out: it is no spare of its own."""
    free = tuple(one for one in found.free if one != name)
    looked = tuple(one for one in found.looked if one != name)
    return Spare(found.kind, found.read_at, free, looked, found.whole, found.why)


def _look(port: ClusterPort, kind: str, now: datetime) -> Spare:
    deadline = time.monotonic() + SECONDS
    try:
        page = port.some_nodes({TYPE_LABEL: kind}, NODES)
        open_ones = [one for one in page.nodes if takes_work(one)]
        # Nodes that take no work are looked at already: none of them is free.
        looked = [one.name for one in page.nodes if not takes_work(one)]
        closed, free = len(looked), []
        for node in open_ones[:LOOKED_AT]:
            if time.monotonic() > deadline:
                break
            looked.append(node.name)
            if not any(pod.accelerators and not pod.daemonset and pod.ends_with_node
                       for pod in port.pods_on(node.name)):  # fmt: skip
                free.append(node.name)
    except ClusterError as error:
        return Spare(kind, now, why=error.message)
    whole = not page.more and len(looked) - closed == len(open_ones)
    return Spare(kind, now, tuple(free), tuple(looked), whole)


def takes_work(node: NodeState) -> bool:
    """Tell whether a GPU node is Ready, schedulable, and not on its way out."""
    taints = [
        one.key
        for one in node.taints
        if one.effect != "PreferNoSchedule" and one.key not in _HARMLESS_TAINTS
    ]
    if taints or node.unschedulable or node.ready is not True or node.is_control_plane:
        return False
    if node.labels.get(HEALTH, "Schedulable") != "Schedulable":
        return False
    return node.is_gpu_node and not signs(node.labels, taints, None)


def of_group(now: MachineNow, live: Live) -> list[Check]:
    """Say how the instance group stands against its target."""
    group = now.group(live.state.labels.get(GROUP_LABEL) if live.state else None)
    if group is None or group.current is None or group.target is None:
        return []
    words = f"Group {group.name} has {group.current:,} of {counted(group.target, 'machine')}"
    return [Check("f" if group.current >= group.target else "x", words)]
