"""May an approval of what destroys be written: is it typed, and is all as it was seen?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.lineage import Lineage, lineage_of
from app.actions.preview import preview
from app.actions.previewing.confirming import not_typed
from app.actions.previewing.seen import changes, read_seen
from app.context import Context
from app.store.proposals import Proposal

NOT_LOOKED = "Nothing was approved: the preview has to be looked at first."


@dataclass(frozen=True, slots=True)
class Looked:
    """What a second look gave: why nothing may be approved, else the machine that was seen."""

    refused: str | None = None
    lineage: Lineage | None = None  # None: what can be undone is not looked at here


def look_again(context: Context, proposal: Proposal, seen: str, node: str, words: str) -> Looked:
    """Look once more before an approval is written.

    `seen` is what the form carries, `node` and `words` what was typed. Only what destroys is
    looked at again here: what can be undone is looked at by the worker that sends it.
    """
    if not proposal.destroys:
        return Looked()
    before = read_seen(seen)
    if before is None:
        return Looked(NOT_LOOKED)
    now = preview(context, proposal)
    different = changes(before, now.seen, destroys=True)
    if different:
        words = f"Since you looked: {'; '.join(different)}."
        return Looked(f"{words} Nothing was approved; look at it again.")
    missing = not_typed(now.confirmation, node, words)
    return Looked(missing, lineage_of(proposal, now.live.state, now.machine.machine))
