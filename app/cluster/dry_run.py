"""What does a cluster answer that nobody has configured? That nothing was asked or changed."""

from collections.abc import Mapping
from typing import Never

from app.cluster.errors import ClusterNotConfigured
from app.cluster.ports import (
    ActionResult,
    ClusterStatus,
    CordonCheck,
    CordonRequest,
    LabelOrder,
    NodeState,
    Outcome,
    Permission,
    PodOnNode,
    SomeNodes,
    Standing,
)


class DryRunCluster:
    """A cluster that is only a name: every action is recorded as a dry run."""

    def __init__(self, name: str) -> None:
        """Keep the name."""
        self._name = name

    @property
    def name(self) -> str:
        """Give the name that alarms and proposals use for this cluster."""
        return self._name

    @property
    def _words(self) -> str:
        return f"dry run: no cluster is configured for {self._name or 'this name'}"

    def _nothing(self) -> Never:
        raise ClusterNotConfigured(self._words)

    def status(self) -> ClusterStatus:
        """Say that there is nothing behind the name."""
        return ClusterStatus(self._name, "dry run", self._words)

    def version(self) -> str:
        """Raise: there is nobody to ask."""
        self._nothing()

    def can(self) -> tuple[Permission, ...]:
        """Raise: there is nobody to ask."""
        self._nothing()

    def node(self, name: str) -> NodeState:
        """Raise: whether there is such a node is not known, which is not the same as gone."""
        self._nothing()

    def nodes(self) -> tuple[NodeState, ...]:
        """Raise: an empty list would say that there are none."""
        self._nothing()

    def some_nodes(self, labels: Mapping[str, str], limit: int) -> SomeNodes:
        """Raise: none would say that there are none."""
        self._nothing()

    def pods_on(self, name: str) -> tuple[PodOnNode, ...]:
        """Raise: an empty list would say that nothing runs there."""
        self._nothing()

    def cordon(self, request: CordonRequest) -> ActionResult:
        """Change nothing and say so."""
        return self._not_done(f"{request.node} would have been cordoned")

    def uncordon(self, request: CordonRequest) -> ActionResult:
        """Change nothing and say so."""
        return self._not_done(f"{request.node} would have been uncordoned")

    def order(self, request: CordonRequest, order: LabelOrder) -> ActionResult:
        """Change nothing and say so."""
        return self._not_done(f"{request.node} would have been labelled to {order}")

    def _not_done(self, what: str) -> ActionResult:
        return ActionResult(Outcome.DRY_RUN, f"{self._words}. {what}; nothing was changed.")

    def verify_cordon(self, request: CordonRequest) -> CordonCheck:
        """Say that nobody can tell."""
        return CordonCheck(Standing.UNKNOWN, self._words)
