"""How is each kind of finding put into words, and what does it call for besides a cordon?"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Action = Literal["cordon", "replace", "deep_health_check", "targeted_audit", "none"]


@dataclass(frozen=True, slots=True)
class Stance:
    """One kind: why it is suspected, what to do, further actions, urgency.

    `accuses` is True where the kind names one GPU as wrong, so that a cordon is proposed at the
    first incident. `recurs` is True where a second incident is reason enough for replacement.
    """

    because: str
    do: str
    besides: tuple[Action, ...]
    urgency: int
    accuses: bool = False
    recurs: bool = False


_REVIEW = "replace after review"
_TEST: tuple[Action, ...] = ("deep_health_check",)
_AUDIT_OR_TEST: tuple[Action, ...] = ("targeted_audit", "deep_health_check")

STANCES: Mapping[str, Stance] = MappingProxyType(
    {
        "persistent": Stance(
            "wrong again on the same work", _REVIEW, (), 90, accuses=True, recurs=True
        ),
        "culprit": Stance(
            "wrong on its own work and on a peer’s", _REVIEW, (), 90, accuses=True, recurs=True
        ),
        "weights": Stance(
            "its weights differ from the strict majority",
            _REVIEW,
            (),
            90,
            accuses=True,
            recurs=True,
        ),
        "replayer": Stance(
            "wrong when it replayed a peer",
            "confirm again",
            ("targeted_audit",),
            65,
            accuses=True,
            recurs=True,
        ),
        "transient": Stance(
            "right when it repeated",
            "audit or test it",
            _AUDIT_OR_TEST,
            60,
            accuses=True,
            recurs=True,
        ),
        "reduced": Stance(
            "NaN or Inf after the all-reduce", "Keep the job stopped, test every node", _TEST, 80
        ),
        "no_majority": Stance(
            "replicas disagree, no majority says which is wrong",
            "Keep the nodes cordoned, test them",
            ("cordon", "deep_health_check"),
            75,
        ),
        "unclear": Stance(
            "it gave a third answer when it repeated", "Test the nodes involved", _TEST, 50
        ),
        "ambiguous": Stance(
            "the comparison does not say which GPU is wrong", "Test the nodes involved", _TEST, 50
        ),
        "nonfinite": Stance(
            "its own gradient was not finite", "Audit or test this GPU", _AUDIT_OR_TEST, 40
        ),
    }
)
"""By kind of finding, the most telling kind first."""

RANKING: Mapping[str, int] = MappingProxyType({kind: place for place, kind in enumerate(STANCES)})
