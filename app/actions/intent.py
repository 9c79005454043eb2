"""What is written down before an order goes out that nothing can take back?

The row says then what the machine was, so that a look can tell later whether the order was taken,
even where the worker died before it could record the answer. And a worker that slept longer than
its claim lasts learns here that its row was given up, before it sends and not after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.actions import rails, writing
from app.cluster.ports import ActionResult, Outcome
from app.context import Context
from app.store import proposals
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.proposals import Proposal
from app.store.writer import QueueFull


def hold(context: Context, proposal: Proposal, kept: Mapping[str, Any]) -> ActionResult | None:
    """Keep what is known right before the order; None: it may go out."""
    now = context.now()

    def write(connection: Connection) -> bool | rails.Rail:
        braked = rails.brake(connection, proposal)
        if braked is not None:
            return braked
        # The claim lasts from here on anew: the order itself is still to be waited for.
        values = {"details": {**proposal.details, **kept}, "claimed_at": now}
        return proposals.move(
            connection, proposal.id, ("executing",), values, claimed_by=proposal.claimed_by
        )

    try:
        kept_it = writing.write(context, write)
    except (StoreUnavailable, QueueFull) as error:
        words = f"The database is away, so the order was not sent: {error}"
        return ActionResult(Outcome.FAILED, words, details={"retry": "offered"})
    if isinstance(kept_it, rails.Rail):
        return ActionResult(Outcome.REFUSED, f"{kept_it.message} Nothing was sent.")
    if kept_it:
        return None
    words = "Another worker had given this action up before it was sent. Nothing was sent."
    return ActionResult(Outcome.FAILED, words, details={"retry": "offered"})
