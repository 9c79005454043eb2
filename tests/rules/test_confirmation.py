"""Does each combination of answers lead to its verdict?"""

from __future__ import annotations

import pytest

from witness.rules.confirmation import confirm


@pytest.mark.parametrize(
    ("third", "again", "kind", "suspect"),
    [
        ("own", "own", "replayer computed wrong", "replayer"),
        # The target's second answer does not count against a third that agrees with its first.
        ("own", "replay", "replayer computed wrong", "replayer"),
        ("own", "other", "replayer computed wrong", "replayer"),
        ("replay", "own", "persistent", "target"),
        ("replay", "replay", "transient", "target"),
        ("replay", "other", "unclear", "target"),
        ("other", "own", "unattributable", None),
        ("other", "replay", "unattributable", None),
        ("other", "other", "unattributable", None),
    ],
)
def test_a_verdict(third: str, again: str, kind: str, suspect: str | None) -> None:
    verdict = confirm("own", "replay", third, again)
    assert (verdict.kind, verdict.suspect) == (kind, suspect)


def test_a_pair_that_agrees_is_none() -> None:
    with pytest.raises(ValueError, match="no pair to confirm"):
        confirm("same", "same", "same", "same")
