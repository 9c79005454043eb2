"""How does a real Kubernetes cluster answer the questions and orders of `ports`?"""

from collections.abc import Callable, Mapping
from typing import Any

from app.cluster import cordon as cordoning
from app.cluster import uncordon as uncordoning
from app.cluster.api import KubernetesApi, Limits
from app.cluster.drift import check_cordon
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.label_orders import order_by_label
from app.cluster.node_access import NODES, get_node, node_path
from app.cluster.node_state import read_node
from app.cluster.permissions import ask_permissions
from app.cluster.pods import read_pod
from app.cluster.ports import (
    ActionResult,
    ClusterStatus,
    CordonCheck,
    CordonRequest,
    LabelOrder,
    NodeState,
    Permission,
    PodOnNode,
    SomeNodes,
    Standing,
)


class KubernetesCluster:
    """One Kubernetes cluster behind the port; safe to share between threads."""

    def __init__(
        self, name: str, load: Callable[[], Any], through: str, limits: Limits | None = None
    ) -> None:
        """Keep the way in: `load` makes the client, `through` names it in words."""
        self._name = name
        self._through = through
        self._api = KubernetesApi(load, limits or Limits())

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for this cluster."""
        return self._name

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._api.close()

    def status(self) -> ClusterStatus:
        """Say whether the access can be loaded; asks no server, never raises."""
        try:
            self._api.client()
        except ClusterNotConfigured as error:
            return ClusterStatus(self._name, "misconfigured", error.message)
        return ClusterStatus(self._name, "kubernetes", f"Kubernetes through {self._through}")

    def version(self) -> str:
        """Ask the cluster for its version."""
        return str(self._api.get("/version").get("gitVersion") or "unknown")

    def can(self) -> tuple[Permission, ...]:
        """Ask the cluster which of the rights that we use are ours."""
        return ask_permissions(self._api)

    def node(self, name: str) -> NodeState:
        """Read one node; raise `NodeGone` if the cluster knows none of this name."""
        return get_node(self._api, name)

    def nodes(self) -> tuple[NodeState, ...]:
        """Read all nodes, page by page."""
        return tuple(read_node(raw) for raw in self._api.pages(NODES, {}))

    def some_nodes(self, labels: Mapping[str, str], limit: int) -> SomeNodes:
        """Read at most so many of the nodes that carry all these labels, in one request."""
        selector = ",".join(f"{key}={text}" for key, text in sorted(labels.items()))
        raw, more = self._api.first_page(NODES, {"labelSelector": selector}, limit)
        return SomeNodes(tuple(read_node(one) for one in raw), more)

    def pods_on(self, name: str) -> tuple[PodOnNode, ...]:
        """Read the pods bound to a node, in order of namespace and name."""
        node_path(name)  # A selector, too, must be made of a real node name only.
        raw = self._api.pages("/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"})
        pods = (read_pod(one) for one in raw)
        return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name)))

    def cordon(self, request: CordonRequest) -> ActionResult:
        """Make the node unschedulable in our name, at most once."""
        return cordoning.cordon(self._api, request)

    def uncordon(self, request: CordonRequest) -> ActionResult:
        """Lift our cordon, and only ours, at most once."""
        return uncordoning.uncordon(self._api, request)

    def order(self, request: CordonRequest, order: LabelOrder) -> ActionResult:
        """Order by a label on the node, at most once."""
        return order_by_label(self._api, request, order)

    def verify_cordon(self, request: CordonRequest) -> CordonCheck:
        """Read whether the cordon of this request still stands."""
        try:
            return check_cordon(self.node(request.node), request)
        except NodeGone:
            words = f"The node is gone: the cluster knows no node {request.node}."
            return CordonCheck(Standing.GONE, words)
        except ClusterError as error:
            return CordonCheck(Standing.UNKNOWN, error.message)
