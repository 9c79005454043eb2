"""What may the rest of the service ask of a cluster, and in which words does a cluster answer?

Readings raise an error of `app.cluster.errors`. `cordon` and `uncordon` never raise one: whatever
happens becomes an `ActionResult`, since an approval must always end in a recorded outcome.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class Outcome(StrEnum):
    """How an approved action ended."""

    ACCEPTED = "accepted"  # an order was taken; its effect shows later, if at all
    UNDER_WAY = "under_way"  # somebody else does it already, or did: nothing was ordered
    CHANGED = "changed"  # the node is now as asked, and it was this call that made it so
    ALREADY_OURS = "already_ours"  # the node was as asked before, not by others: nothing was sent
    ALREADY_BY_OTHER = "already_by_other"  # somebody else's cordon: left as it is, not taken over
    REFUSED = "refused"  # another machine, protected, not ours, or the cluster said no: no change
    GONE = "gone"  # the cluster knows no such node: final
    FAILED = "failed"  # it was not done, and we know that nothing was changed
    UNKNOWN = "unknown"  # it was sent, and nobody knows whether it was done: a person decides
    DRY_RUN = "dry_run"  # no cluster is configured: nothing was asked, nothing was changed


class Standing(StrEnum):
    """Whether a cordon of ours still stands."""

    HOLDS = "holds"  # unschedulable, our taint and our annotation are all there
    DRIFTED = "drifted"  # parts of it are missing or were changed by somebody
    LIFTED = "lifted"  # nothing of it is left
    BY_OTHER = "by_other"  # unschedulable, but by somebody else's hand
    REPLACED = "replaced"  # another machine carries the name now
    GONE = "gone"  # the cluster knows no such node
    UNKNOWN = "unknown"  # the cluster gave no usable answer


class LabelOrder(StrEnum):
    """What a platform does with a node once a label is on it."""

    REPLACE = "replace"  # HyperPod: terminates the machine; only with automatic node recovery
    REBOOT = "reboot"  # HyperPod: restarts the machine; only with automatic node recovery
    REPORT_SDC = "report_sdc"  # GKE, GPU machines: evicts, reports the host, repairs it in days


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint of a node."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class OurCordon:
    """What our annotations on a node say; None where an annotation is missing or cannot be read."""

    case: str
    by: str | None
    at: datetime | None
    proposal: str | None
    reason: str | None = None
    evidence: str | None = None
    prev_unschedulable: bool | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node as the cluster described it at one moment."""

    name: str
    uid: str | None
    resource_version: str | None
    provider_id: str | None
    instance_id: str | None  # only in the form that the replacement API takes
    unschedulable: bool
    ready: bool | None  # None: the node reports no such condition, or "Unknown"
    taints: tuple[Taint, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_at: datetime | None
    our_cordon: OurCordon | None
    cordoned_by_other: str | None  # words; None: nobody else's cordon is seen
    health_status: str | None  # the label of HyperPod's health monitoring
    is_control_plane: bool
    is_gpu_node: bool
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def has_our_taint(self) -> bool:
        """Tell whether our taint is on the node."""
        return any(taint.key == OUR_TAINT_KEY for taint in self.taints)


@dataclass(frozen=True, slots=True)
class PodVolume:
    """One place of a pod for data, as its spec tells it.

    `kind`: "disk" (a directory that the node makes for the pod), "memory" (the same in memory),
    "path" (a path of the node, `path`), "claim" (where it lies, the pod does not say), "network".
    """

    name: str
    kind: str
    path: str | None = None  # None: the node chooses it
    claim: str | None = None


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """One pod that runs, or ran, on a node."""

    namespace: str
    name: str
    owner_kind: str | None
    owner_name: str | None
    daemonset: bool  # comes with every node: no victim of a replacement
    system: bool
    phase: str
    job: str | None  # the name of the training job, where a label or an owner tells it
    job_labels: Mapping[str, str]
    volumes: tuple[PodVolume, ...] = ()
    accelerators: int = 0  # that its containers ask for; what they use without asking is not seen
    started_at: datetime | None = None

    @property
    def ends_with_node(self) -> bool:
        """Tell whether work is lost with the node: not a daemon's, not what has ended."""
        return not self.daemonset and self.phase not in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class SomeNodes:
    """The first nodes of a selection; `more`: there are others that were not read."""

    nodes: tuple[NodeState, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class CordonRequest:
    """One approved cordon, or its undoing: all that is written on the node comes from here."""

    node: str
    expect_uid: str | None  # None: the case has never seen a uid; the name alone must do
    case: str
    proposal: str
    by: str
    reason: str
    at: datetime
    evidence_version: str


@dataclass(frozen=True, slots=True)
class ActionResult:
    """How one action ended, with the node as it was read last."""

    outcome: Outcome
    message: str
    state: NodeState | None = None
    event_written: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CordonCheck:
    """Whether a cordon still stands, in words, with the node as it was read."""

    standing: Standing
    message: str
    state: NodeState | None = None
    drift: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """One right that we use, and whether the cluster grants it; None: the cluster did not say."""

    verb: str
    resource: str
    group: str
    namespace: str | None  # None: the right is asked for the whole cluster
    needed_for: str
    allowed: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What stands behind a cluster's name, known without asking the cluster."""

    name: str
    kind: str  # "kubernetes", "dry run" or "misconfigured"
    message: str

    @property
    def can_act(self) -> bool:
        """Tell whether an approved action would be sent to a real cluster."""
        return self.kind == "kubernetes"


class ClusterPort(Protocol):
    """One cluster, real or not."""

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for this cluster."""
        ...

    def status(self) -> ClusterStatus:
        """Say what stands behind the name; asks nobody, never raises."""
        ...

    def version(self) -> str:
        """Ask the cluster for its version, such as "v1.33.1"."""
        ...

    def can(self) -> tuple[Permission, ...]:
        """Ask the cluster which of the rights that we use are ours."""
        ...

    def node(self, name: str) -> NodeState:
        """Read one node; raise `NodeGone` if the cluster knows none of this name."""
        ...

    def nodes(self) -> tuple[NodeState, ...]:
        """Read all nodes, page by page."""
        ...

    def some_nodes(self, labels: Mapping[str, str], limit: int) -> SomeNodes:
        """Read at most so many of the nodes that carry all these labels, in one request."""
        ...

    def pods_on(self, name: str) -> tuple[PodOnNode, ...]:
        """Read the pods that are bound to a node, in order of namespace and name."""
        ...

    def cordon(self, request: CordonRequest) -> ActionResult:
        """Make the node unschedulable in our name, at most once; never raises a cluster error."""
        ...

    def uncordon(self, request: CordonRequest) -> ActionResult:
        """Lift our cordon, and only ours, at most once; never raises a cluster error."""
        ...

    def order(self, request: CordonRequest, order: LabelOrder) -> ActionResult:
        """Order by a label on the node, at most once; never raises a cluster error."""
        ...

    def verify_cordon(self, request: CordonRequest) -> CordonCheck:
        """Read whether the cordon of this request still stands; never raises a cluster error."""
        ...


# One prefix for all that we write on a node, so that a person can find and remove it by hand.
OUR_PREFIX = "silent-witness.dev/"
# A taint of our own survives a foreign uncordon, which clears `unschedulable` and its taint.
OUR_TAINT_KEY = OUR_PREFIX + "sdc-suspect"
OUR_TAINT_EFFECT = "NoSchedule"
