"""May an approval of what destroys be written: is it typed, and is all as it was seen?"""

from __future__ import annotations

from app.actions.preview import preview
from app.actions.previewing.confirming import not_typed
from app.actions.previewing.seen import changes, read_seen
from app.context import Context
from app.store.proposals import Proposal

NOT_LOOKED = "Nothing was approved: the preview has to be looked at first."


def in_the_way(
    context: Context, proposal: Proposal, seen: str, node: str, words: str
) -> str | None:
    """Look once more and say why nothing is approved; None: nothing speaks against it.

    `seen` is what the form carries, `node` and `words` what was typed. Only what destroys is
    looked at again here: what can be undone is looked at by the worker that sends it.
    """
    if not proposal.destroys:
        return None
    before = read_seen(seen)
    if before is None:
        return NOT_LOOKED
    now = preview(context, proposal)
    different = changes(before, now.seen, destroys=True)
    if different:
        return f"Since you looked: {'; '.join(different)}. Nothing was approved; look at it again."
    return not_typed(now.confirmation, node, words)
