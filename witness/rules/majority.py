"""Which replica differs from a strict majority?"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Majority:
    """Suspects by majority: `()` where all agree, None where no strict majority exists.

    `undecided` counts tensors that differ without a strict majority.
    """

    suspects: tuple[int, ...] | None
    undecided: int = 0


def suspects_by_majority(digests: Mapping[int, Hashable]) -> Majority:
    """Compare one digest a rank."""
    return suspects_by_tensor({rank: {"": digest} for rank, digest in digests.items()})


def suspects_by_tensor(digests: Mapping[int, Mapping[str, Hashable]]) -> Majority:
    """Compare a digest a tensor and rank; a tensor that a rank lacks counts as different.

    A rank is named when its copy of some tensor differs from more than half of all copies.
    """
    named: set[int] = set()
    undecided = 0
    tensors = sorted({tensor for copies in digests.values() for tensor in copies})
    for tensor in tensors:
        copies = {rank: (tensor in held, held.get(tensor)) for rank, held in digests.items()}
        digest, count = Counter(copies.values()).most_common(1)[0]
        if count == len(copies):
            continue
        if 2 * count > len(copies):
            named.update(rank for rank, copy in copies.items() if copy != digest)
        else:
            undecided += 1
    if not named and undecided:
        return Majority(None, undecided)
    return Majority(tuple(sorted(named)), undecided)
