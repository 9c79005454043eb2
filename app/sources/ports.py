"""What is asked of a source of metrics, and what can come of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from witness.rules.samples import RawSeries

Level = Literal["basic", "advanced", "disabled"]


@dataclass(frozen=True, slots=True)
class Question:
    """All stored samples of these GPUs from `start` to `end`, seconds since 1970, both included."""

    uuids: tuple[str, ...]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a source gave.

    `warnings` are its own, word for word; `partial` says that it called its answer incomplete.
    `queries`, `samples` and `received` (bytes) are what it cost.
    """

    series: tuple[RawSeries, ...] = ()
    warnings: tuple[str, ...] = ()
    partial: bool = False
    queries: int = 0
    samples: int = 0
    received: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a source before it is asked; None where it is not known.

    `grafana` is the address of the add-on's dashboards, `through` says in words where samples come
    from.
    """

    name: str
    through: str
    level: Level | None = None
    interval_s: float | None = None
    grafana: str | None = None


class SourceError(Exception):
    """A source gave no samples; the message is a sentence for people."""


class Refused(SourceError):
    """The source said no, or something that asking again cannot mend."""


class Away(SourceError):
    """The source did not answer, or asked to come later: `after_s` seconds where it said when."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class MetricSource(Protocol):
    """One place that holds DCGM samples of a cluster."""

    def about(self) -> About:
        """Say what is known of it; may look it up now and then, and never raises."""

    def pull(self, question: Question) -> Pulled:
        """Give the stored samples with their own times; raises `SourceError`."""

    def close(self) -> None:
        """Close connections."""


Sources = Mapping[str, Sequence[MetricSource]]
"""The sources of each cluster by its name; none for a cluster that is not in it."""
