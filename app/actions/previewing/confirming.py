"""What has to be typed before something is destroyed, and is it typed as it is?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.previewing.live import Live
from app.store.proposals import Proposal

NAMED = 3


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person types; None where nothing has to be typed.

    `words` are asked for beside the node's name where other teams' pods end, or where nobody knows
    what runs there; `because` says which.
    """

    node: str | None = None
    words: str | None = None
    because: str = ""


def confirmation(proposal: Proposal, live: Live) -> Confirmation:
    """Work out what has to be typed for an action on what was read."""
    if not proposal.destroys or not proposal.node_name:
        return Confirmation()
    if live.gone or live.dry_run:
        return Confirmation(proposal.node_name)
    if live.pods is None or live.unread:
        because = "What runs there could not all be read: other teams’ pods may end."
        return Confirmation(proposal.node_name, "pods not known", because)
    others = live.of("other")
    if not others:
        return Confirmation(proposal.node_name)
    names = [one.namespace for one in others]
    if len(names) > NAMED:
        words = f"end pods of {len(names)} namespaces"
    else:
        words = f"end pods of {', '.join(names)}"
    number = sum(len(one.victims) for one in others)
    pods = "pod" if number == 1 else "pods"
    belong = "belongs" if number == 1 else "belong"
    because = f"{number:,} {pods} that {belong} to other teams would end with the node."
    return Confirmation(proposal.node_name, words, because)


def not_typed(wanted: Confirmation, node: str, words: str) -> str | None:
    """Say what was not typed as it is; None: all of it was."""
    if wanted.node is not None and node.strip() != wanted.node:
        return "The node’s name was not typed as it is. Nothing was approved."
    if wanted.words is not None and " ".join(words.split()).casefold() != wanted.words.casefold():
        return f"“{wanted.words}” was not typed. {wanted.because} Nothing was approved."
    return None
