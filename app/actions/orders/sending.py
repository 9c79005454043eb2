"""How does an order for a machine go out: after a look, written down, once, by API or by label?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.actions import intent
from app.actions.orders.looking_at import Found, answered, label_does_nothing, look_before
from app.actions.reaching import port_of, provider_of, request_of
from app.cluster.ports import ActionResult, LabelOrder
from app.cluster.provider.ports import Answer, MachineAnswer, ProviderPort
from app.context import Context
from app.store.proposals import Proposal

LABEL = "label"
AUTOMATIC = "Automatic"
WRONG_STATUS = "InvalidInstanceStatus"


@dataclass(frozen=True, slots=True)
class MachineOrder:
    """What differs between orders for a machine.

    `platform_does` says what the platform does already, as an outcome without anything sent; None:
    nothing that stands in the way.
    """

    what: str
    label: LabelOrder
    order: Callable[[ProviderPort, Sequence[str]], tuple[MachineAnswer, ...]]
    platform_does: Callable[[Found], ActionResult | None]


def send(context: Context, proposal: Proposal, kind: MachineOrder) -> ActionResult:
    """Look at node, machine and cluster once more, write that down, then order it, once."""
    found = look_before(context, proposal)
    if isinstance(found, ActionResult):
        return found
    platform = kind.platform_does(found)
    if platform is not None:
        return platform
    by_label = proposal.parameters.get("way") == LABEL
    if by_label and found.fleet.node_recovery != AUTOMATIC:
        return label_does_nothing(found)
    held = intent.hold(context, proposal, found.kept)
    if held is not None:
        return held
    if by_label:
        result = port_of(context, proposal.cluster).order(request_of(proposal), kind.label)
        return replace(result, details={**result.details, **found.kept})
    provider = provider_of(context, proposal.cluster)
    (answer,) = kind.order(provider, [found.machine.instance_id])
    if answer.answer is Answer.REFUSED and answer.code == WRONG_STATUS:
        # Between our look and the order the platform may have begun by itself.
        again = look_before(context, proposal)
        platform = kind.platform_does(again) if isinstance(again, Found) else None
        if platform is not None:
            return platform
    return answered(answer, found, kind.what)
