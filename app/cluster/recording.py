"""What would have been done to a cluster? Reads a real one, and writes its orders down unsent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.cluster.errors import ClusterError
from app.cluster.marks import cordon_patch, stamp, uncordon_patch
from app.cluster.order_file import OrderFile
from app.cluster.ports import (
    ActionResult,
    ClusterPort,
    ClusterStatus,
    CordonCheck,
    CordonRequest,
    LabelOrder,
    NodeState,
    Outcome,
    Permission,
    PodOnNode,
    SomeNodes,
)


class RecordingCluster:
    """A cluster whose questions are real and whose orders end in a file."""

    def __init__(self, real: ClusterPort, file: OrderFile) -> None:
        """Take the cluster that is read, and the file."""
        self._real, self._file = real, file

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for this cluster."""
        return self._real.name

    def status(self) -> ClusterStatus:
        """Say that orders are only recorded; a broken entry is told as such."""
        real = self._real.status()
        if not real.can_act:
            return real
        words = f"{real.message}; orders are only written to {self._file.path}"
        return ClusterStatus(real.name, "recording", words)

    def version(self) -> str:
        """Ask the cluster for its version."""
        return self._real.version()

    def can(self) -> tuple[Permission, ...]:
        """Ask the cluster which of the rights that we would use are ours."""
        return self._real.can()

    def node(self, name: str) -> NodeState:
        """Read one node."""
        return self._real.node(name)

    def nodes(self) -> tuple[NodeState, ...]:
        """Read all nodes."""
        return self._real.nodes()

    def some_nodes(self, labels: Mapping[str, str], limit: int) -> SomeNodes:
        """Read the first nodes of a selection."""
        return self._real.some_nodes(labels, limit)

    def pods_on(self, name: str) -> tuple[PodOnNode, ...]:
        """Read the pods that are bound to a node."""
        return self._real.pods_on(name)

    def verify_cordon(self, request: CordonRequest) -> CordonCheck:
        """Read whether a cordon stands, such as one from before orders were only recorded."""
        return self._real.verify_cordon(request)

    def cordon(self, request: CordonRequest) -> ActionResult:
        """Write down that the node would have been cordoned."""
        return self._keep("cordon", request, {}, lambda raw: cordon_patch(raw, request))

    def uncordon(self, request: CordonRequest) -> ActionResult:
        """Write down that the node would have been uncordoned."""
        return self._keep(
            "uncordon", request, {}, lambda raw: uncordon_patch(raw, keep_unschedulable=False)
        )

    def order(self, request: CordonRequest, order: LabelOrder) -> ActionResult:
        """Write down that the label would have been set."""
        return self._keep("label", request, {"label": str(order)}, None)

    def _keep(
        self,
        order: str,
        request: CordonRequest,
        more: Mapping[str, Any],
        patch: Callable[[Mapping[str, Any]], dict[str, Any]] | None,
    ) -> ActionResult:
        state: NodeState | None = None
        asked: dict[str, Any] = {
            "node": request.node,
            "expect_uid": request.expect_uid,
            "case": request.case,
            "proposal": request.proposal,
            "by": request.by,
            "reason": request.reason,
            "at": stamp(request.at),
            "evidence_version": request.evidence_version,
            **more,
        }
        try:
            state = self._real.node(request.node)
        except ClusterError as error:
            asked["node_not_read"] = error.message
        else:
            asked["node_read"] = {"uid": state.uid, "resource_version": state.resource_version}
            if patch is not None:
                asked["patch"] = patch(state.raw)
        wrong = self._file.keep(self.name, order, asked)
        if wrong is not None:
            words = f"Orders are only recorded here, and {wrong}. Nothing was changed."
            return ActionResult(Outcome.FAILED, words, state)
        words = f"Orders are only recorded here: {order} was written down, nothing was changed."
        return ActionResult(Outcome.DRY_RUN, words, state)
