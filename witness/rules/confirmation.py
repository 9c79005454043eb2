"""What do the answers of target, replayer and third rank say about an ambiguous pair?"""

from dataclasses import dataclass
from typing import Literal

from witness.rules.alarm import PERSISTENT, REPLAYER, TRANSIENT, UNATTRIBUTABLE, UNCLEAR

Role = Literal["target", "replayer"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A verdict kind and the role it suspects; None where nobody is suspected."""

    kind: str
    suspect: Role | None


def confirm(original: object, replayed: object, third: object, again: object) -> Confirmation:
    """Judge one pair by four digests of the same micro-batch.

    `original` is the target's own result, `replayed` the replayer's, `third` that of a rank on a
    third node, `again` the target's second computation. The target's second answer alone decides
    nothing: a persistent defect reproduces its own wrong answer. Raises ValueError where the
    first two agree, since then there was no mismatch.
    """
    if original == replayed:
        raise ValueError("the target and its replayer agree, so there is no pair to confirm")
    if third == original:
        return Confirmation(REPLAYER, "replayer")
    if third != replayed:
        return Confirmation(UNATTRIBUTABLE, None)
    if again == original:
        return Confirmation(PERSISTENT, "target")
    return Confirmation(TRANSIENT if again == third else UNCLEAR, "target")
