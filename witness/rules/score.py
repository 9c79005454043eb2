"""How likely is one GPU defective, and which terms made that number?

The model: a device is defective or not; a defective one fires again at a rate that differs from
device to device (Gamma), a sound one is accused falsely at a rate that depends on the kind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from witness.rules.gamma import gamma_quantile

CORDON_AT = 0.5
"""From here on a cordon is proposed: it can be undone in seconds."""
REPLACE_AT = 0.9
"""From here on a replacement is proposed; a person approves it all the same."""

ODDS_LIMIT = 1e300
"""Keeps the product of a long history finite; P is 1 long before."""

SCORED_AS: Mapping[str, str] = MappingProxyType({"replayer": "transient", "unclear": "ambiguous"})
"""Kinds without parameters of their own, by the kind whose parameters they borrow (assumed)."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A new incident of one GPU, of a finding's kind."""

    kind: str


@dataclass(frozen=True, slots=True)
class CleanHours:
    """Hours of audited work without an incident."""

    hours: float


@dataclass(frozen=True, slots=True)
class TestPassed:
    """A passed test of one kind, which finds a share `recall` of defective GPUs."""

    __test__ = False  # Keeps test collectors from taking the class for a test.
    test: str
    recall: float


Event = Incident | CleanHours | TestPassed


def _starting_f() -> Mapping[str, float]:
    return MappingProxyType(
        {
            "persistent": 3e-8,
            "culprit": 3e-8,
            "weights": 3e-8,
            "transient": 9e-8,
            "ambiguous": 3e-7,
            "nonfinite": 1e-6,
        }
    )


def _starting_q() -> Mapping[str, float]:
    return MappingProxyType(
        {
            "persistent": 0.35,
            "culprit": 0.35,
            "weights": 0.04,
            "transient": 0.15,
            "nonfinite": 0.02,
            "ambiguous": 0.04,
        }
    )


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the score assumes until adjudications teach better.

    `h` new defects an audited GPU-hour (published); `f` false accusations a GPU-hour by kind;
    `q` share of true incidents that show as a kind; re-trigger rate ~ Gamma(a, b_hours).
    """

    h: float = 4e-7
    f: Mapping[str, float] = field(default_factory=_starting_f)
    q: Mapping[str, float] = field(default_factory=_starting_q)
    a: float = 0.5
    b_hours: float = 24.0


STARTING = Parameters()


@dataclass(frozen=True, slots=True)
class Term:
    """One rung: what it is, the factor on the odds, and the odds after it."""

    text: str
    factor: float
    odds_after: float


@dataclass(frozen=True, slots=True)
class Score:
    """The probability that a GPU is defective, with the terms that made it.

    Rates are re-triggers an audited hour, if it is defective: mean and 5–95 %.
    `p_if_f_at_upper` is None where no upper bounds were given.
    """

    p: float
    odds: float
    ladder: tuple[Term, ...]
    rate_mean_per_hour: float
    rate_low: float
    rate_high: float
    incidents: int
    clean_hours: float
    p_if_f_at_upper: float | None = None


@dataclass(frozen=True, slots=True)
class NodeScore:
    """A node's worst GPU; `several` marks a node on which two or more GPUs have incidents."""

    worst: Score
    gpus_with_incidents: int
    several: bool


@dataclass(slots=True)
class _Ladder:
    """Walks a history; `odds` means nothing before the first scored incident."""

    by: Parameters
    f: Mapping[str, float]
    odds: float = 1.0
    incidents: int = 0
    clean_hours: float = 0.0
    tests: set[str] = field(default_factory=set)
    terms: list[Term] = field(default_factory=list)

    def take(self, event: Event) -> None:
        if isinstance(event, Incident):
            self._incident(SCORED_AS.get(event.kind, event.kind))
        elif not self.incidents:
            return  # Clean hours and tests before the first incident prove nothing.
        elif isinstance(event, CleanHours):
            self._clean(event.hours)
        elif event.test not in self.tests:
            self.tests.add(event.test)
            self._times(1 - event.recall, f"Test passed: {event.test}, recall {event.recall:.2g}")

    def _incident(self, kind: str) -> None:
        if kind not in self.f or kind not in self.by.q:
            return  # A kind that names no GPU, or that is not known here, is not scored.
        f, q = self.f[kind], self.by.q[kind]
        if self.incidents == 0:
            self._times(self.by.h / f, f"New defects for each false accusation ({kind})")
        else:
            expected = (self.by.a + self.incidents - 1) / (self.by.b_hours + self.clean_hours)
            hours = f"{self.clean_hours:,.4g} clean hours"
            text = f"Again after {hours}, against false accusations ({kind})"
            self._times(expected / f, text)
        self._times(q, f"Share of true faults that show as {kind}")
        self.incidents += 1

    def _clean(self, hours: float) -> None:
        before = self.by.b_hours + self.clean_hours
        self.clean_hours += max(hours, 0.0)
        shape = self.by.a + self.incidents - 1
        factor = (before / (self.by.b_hours + self.clean_hours)) ** shape
        self._times(factor, f"{max(hours, 0.0):,.4g} clean audited hours")

    def _times(self, factor: float, text: str) -> None:
        self.odds = min(self.odds * factor, ODDS_LIMIT)
        self.terms.append(Term(text, factor, self.odds))


def score(
    history: Iterable[Event],
    parameters: Parameters = STARTING,
    f_upper: Mapping[str, float] | None = None,
) -> Score | None:
    """Score one GPU from its history in the order of time; None before its first incident.

    `f_upper` holds upper bounds of the false-accusation rates, for kinds that have one.
    """
    events = tuple(history)
    ladder = _walk(events, parameters, parameters.f)
    if ladder.incidents == 0:
        return None
    shape = parameters.a + ladder.incidents - 1
    exposure = parameters.b_hours + ladder.clean_hours
    worst = None
    if f_upper is not None:
        worst = _p(_walk(events, parameters, {**parameters.f, **f_upper}).odds)
    return Score(
        p=_p(ladder.odds),
        odds=ladder.odds,
        ladder=tuple(ladder.terms),
        rate_mean_per_hour=shape / exposure,
        rate_low=gamma_quantile(0.05, shape, exposure),
        rate_high=gamma_quantile(0.95, shape, exposure),
        incidents=ladder.incidents,
        clean_hours=ladder.clean_hours,
        p_if_f_at_upper=worst,
    )


def node_score(gpus: Iterable[Score | None]) -> NodeScore | None:
    """Score a node by its worst GPU; None where none of its GPUs has an incident."""
    known = [one for one in gpus if one is not None]
    if not known:
        return None
    return NodeScore(max(known, key=lambda one: one.odds), len(known), len(known) > 1)


def _walk(events: tuple[Event, ...], parameters: Parameters, f: Mapping[str, float]) -> _Ladder:
    ladder = _Ladder(parameters, f)
    for event in events:
        ladder.take(event)
    return ladder


def _p(odds: float) -> float:
    return odds / (1 + odds)
