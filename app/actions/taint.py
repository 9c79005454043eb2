"""Which saved states does a suspect window taint?"""

from __future__ import annotations

from collections.abc import Sequence

from app.store.checkpoint_reading import OpenWindow, SavedState
from witness.rules import resume
from witness.rules.resume import Checkpoint


def tainted_by(
    window: OpenWindow, saved: Sequence[SavedState]
) -> frozenset[tuple[int, str | None]]:
    """Give the checkpoints that a window taints: saved in it by its own attempt, and their heirs.

    A later attempt that went back before the window saves other states under the same steps.
    """
    held = (window.first, window.last)
    inside = [one for one in saved if _same_run(one, window)]
    direct = {key_of(one) for one in resume.tainted([one.checkpoint for one in inside], held)}
    uris = {uri for _, uri in direct if uri is not None}
    heirs = [one.checkpoint for one in saved if one.checkpoint.parent in uris]
    grown = True
    while grown:
        direct |= {key_of(one) for one in heirs}
        uris |= {one.uri for one in heirs if one.uri is not None}
        heirs = [
            one.checkpoint
            for one in saved
            if one.checkpoint.parent in uris and key_of(one.checkpoint) not in direct
        ]
        grown = bool(heirs)
    return frozenset(direct)


def _same_run(one: SavedState, window: OpenWindow) -> bool:
    """Tell whether a state can come from the run of a window; where nobody says, it can."""
    if None not in (one.attempt_id, window.attempt_id):
        return one.attempt_id == window.attempt_id
    saved_at = one.checkpoint.saved_at
    return saved_at is None or saved_at <= window.occurred_at


def key_of(checkpoint: Checkpoint) -> tuple[int, str | None]:
    """Give what tells a checkpoint of one job from the others: step and address."""
    return checkpoint.step, checkpoint.uri
