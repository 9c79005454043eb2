"""How many GPU nodes has a cluster, and where does each of them stand?

Read as a whole now and then, so that shares and failure domains can be counted in the transaction
that approves.  A reading that fails leaves the last one standing, with its age.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from app.actions import writing
from app.cluster.errors import ClusterError
from app.cluster.ports import NodeState
from app.cluster.provider.ports import Machine
from app.context import Context
from app.store import node_places
from app.store.node_places import Place, Source

log = logging.getLogger(__name__)

READ_EVERY = timedelta(minutes=5)
GROUP_LABELS = (
    "sagemaker.amazonaws.com/instance-group-name",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "karpenter.sh/nodepool",
)
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
# The deepest layer that is named: nodes behind one network node fail, and are slow, together.
NETWORK_LABELS = (
    "topology.k8s.aws/network-node-layer-3",
    "topology.k8s.aws/network-node-layer-2",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-block",
)
RACK_LABELS = ("topology.kubernetes.io/rack", "rack")
SYSTEM_LABELS = (
    "node-role.kubernetes.io/infra",
    "node-role.kubernetes.io/system",
    "node-role.kubernetes.io/etcd",
)
SYSTEM_TAINT = "CriticalAddonsOnly"
ACCELERATED = ("ml.p", "ml.g", "ml.trn", "p", "g", "trn")
"""How the names of instance types with accelerators begin, at the provider and at EC2."""


def read(context: Context, cluster: str) -> bool:
    """Read a cluster's nodes and keep where they stand; False when nobody could say."""
    try:
        found = _read(context, cluster)
    except ClusterError as error:
        log.warning("the nodes of %s were not read: %s", cluster, error)
        return False
    source, places = found
    now = context.now()
    writing.write(context, lambda c: node_places.keep(c, cluster, source, places, now))
    return True


def read_due(context: Context) -> int:
    """Read every cluster whose last reading is older than READ_EVERY; give how many were read."""
    names = sorted({*context.clusters, *context.providers})
    with context.store.reading() as connection:
        known = {name: node_places.fleet(connection, name) for name in names}
    due = [n for n, one in known.items() if one is None or context.now() - one.read_at > READ_EVERY]
    return sum(read(context, name) for name in due)


def make_sure(context: Context, cluster: str, lasts: timedelta) -> None:
    """Read a cluster's nodes now unless a reading that is young enough is kept."""
    with context.store.reading() as connection:
        known = node_places.fleet(connection, cluster)
    if known is None or known.source == "dry run" or context.now() - known.read_at > lasts:
        read(context, cluster)


def _read(context: Context, cluster: str) -> tuple[Source, tuple[Place, ...]]:
    port = context.clusters.get(cluster)
    if port is not None and port.status().kind != "dry run":
        return "kubernetes", tuple(place_of(cluster, one) for one in port.nodes())
    provider = context.providers.get(cluster)
    if provider is not None and provider.status().kind != "dry run":
        machines = provider.machines()
        return "provider", tuple(place_of_machine(cluster, one) for one in machines)
    return "dry run", ()


def place_of(cluster: str, state: NodeState) -> Place:
    """Say where a node stands by its labels."""
    out = None
    if state.our_cordon is not None and state.unschedulable:
        out = "ours"
    elif state.unschedulable:
        out = "other"
    elif state.ready is False:
        out = "not ready"
    return Place(
        cluster=cluster,
        name=state.name,
        instance_id=state.instance_id,
        gpu=state.is_gpu_node and not state.is_control_plane,
        protected=protected(state),
        instance_group=_first(state.labels, GROUP_LABELS),
        zone=_first(state.labels, ZONE_LABELS),
        network=_first(state.labels, NETWORK_LABELS),
        rack=_first(state.labels, RACK_LABELS),
        out=out,
    )


def protected(state: NodeState) -> str | None:
    """Say why a node is never touched from here; None: nothing says so."""
    if state.is_control_plane:
        return f"{state.name} is a control-plane node: it is never changed from here."
    label = next((one for one in SYSTEM_LABELS if one in state.labels), None)
    if label is not None:
        return f"{state.name} is a system node (label {label}): it is never changed from here."
    if any(taint.key == SYSTEM_TAINT for taint in state.taints):
        return f"{state.name} is a system node (taint {SYSTEM_TAINT}): it is never changed."
    return None


def place_of_machine(cluster: str, machine: Machine) -> Place:
    """Say where a machine stands by its provider's word, for a cluster without Kubernetes."""
    kind = machine.instance_type or ""
    return Place(
        cluster=cluster,
        name=machine.host or machine.instance_id,
        instance_id=machine.instance_id,
        gpu=kind.startswith(ACCELERATED),
        protected=None,
        instance_group=machine.group,
        zone=machine.zone,
        network=_first(machine.labels, NETWORK_LABELS),
        rack=_first(machine.labels, RACK_LABELS),
        out=None if machine.status == "Running" else "not ready",
    )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)
