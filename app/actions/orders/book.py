"""Which kind of order stands behind an action?"""

from __future__ import annotations

from collections.abc import Mapping

from app.actions.orders.auditing import Audit
from app.actions.orders.cordoning import Cordon, Uncordon
from app.actions.orders.ports import Order
from app.actions.orders.rebooting import Reboot
from app.actions.orders.repairing import ReportByLabel
from app.actions.orders.replacing import Replace
from app.actions.orders.reporting import ReportHost
from app.actions.orders.testing import DeepCheck
from app.actions.ways import way_of
from app.store.proposals import Proposal

BY_ACTION: Mapping[str, Order] = {
    "cordon": Cordon(),
    "uncordon": Uncordon(),
    "replace": Replace(),
    "reboot": Reboot(),
    "deep_health_check": DeepCheck(),
    "targeted_audit": Audit(),
}
BY_WAY: Mapping[tuple[str, str], Order] = {
    ("replace", "gke_label"): ReportByLabel(),
    ("replace", "gke_host"): ReportHost(),
}
CONNECTED = frozenset(BY_ACTION)


def order_of(proposal: Proposal) -> Order | None:
    """Find how an action is carried out; None: it is not connected."""
    found = BY_WAY.get((proposal.action, way_of(proposal)))
    return found or BY_ACTION.get(proposal.action)
