"""What can a reading of telemetry say, in which words and with which standing?"""

from dataclasses import dataclass
from typing import Literal

from witness.rules.dcgm_rows import Evidence
from witness.rules.samples import Part

Status = Literal["risen", "nothing_found", "not_collected", "refused"]
"""`risen`: something moved that can point at the hardware. `nothing_found`: fields that can were
looked at and did not. `not_collected`: there were none to look at. `refused`: the source said no.
No status says that a GPU is good, and none takes weight from an alarm."""

When = Literal["before", "window", "after", "standing", "unknown"]
"""Against the suspect window: before it began; in it; after the alarm; already there in the first
sample, so that its time is not known; not told by the samples."""

SAMPLE_AGE_S = 60.0
"""A stored sample can be this old: the exporter collects every 30 s and is scraped every 30 s."""

FALSE_ALARMS = 0.05
"""Share of readings in which chance alone may call a level shifted. The one level that is chosen,
not derived: one reading in twenty, for evidence that is never used to lower anything."""


@dataclass(frozen=True, slots=True)
class Window:
    """The times of one reading, in seconds since 1970.

    Samples were asked for from `start` to `end`; the suspect window began at `suspect_from`, and
    the alarm came at `alarm`.
    """

    start: float
    suspect_from: float
    alarm: float
    end: float
    sample_age_s: float = SAMPLE_AGE_S

    @property
    def until(self) -> float:
        """Give the time until which a sample can show what happened before the alarm."""
        return self.alarm + self.sample_age_s

    def when(self, before: float, at: float) -> When:
        """Place what happened after the sample at `before` and by the one at `at`."""
        if at <= self.suspect_from:
            return "before"
        return "after" if before >= self.until else "window"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The source did not answer for these fields, or for any where `field_ids` is None."""

    why: str
    field_ids: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of where the samples came from.

    `level` is what the add-on is set to collect, None where that is not known. `warnings` are the
    source's own, word for word; partial results are such.
    """

    level: Literal["basic", "advanced", "disabled"] | None = None
    interval_s: float | None = None
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    def refusal(self, field_id: int) -> Refusal | None:
        """Find why this field was not answered for."""
        for one in self.refusals:
            if one.field_ids is None or field_id in one.field_ids:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that the samples of a GPU show.

    `risen` says whether it makes the reading risen. `first` is the last sample without it, `last`
    the first sample that shows it; None where the samples do not tell. `chance` is how often chance
    alone would show as much, None where that was not worked out. `xid` is the number of the Xid
    that it is about.
    """

    code: str
    field_id: int | None
    evidence: Evidence
    risen: bool
    when: When
    text: str
    part: Part = ()
    first: float | None = None
    last: float | None = None
    amount: float | None = None
    chance: float | None = None
    xid: int | None = None


MissingWhy = Literal["refused", "disabled", "basic_level", "not_in_add_on", "absent", "no_value"]
"""`no_value`: there are samples, and all say “no value”."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A field that could have shown something and was not there."""

    field_id: int
    why: MissingWhy
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What the telemetry of one GPU says around one alarm.

    Observations stand with those that count first. `looked_at` are the numbers of fields with at
    least one reading in the window or after it; `missing` names those that could have shown
    something. `notes` are sentences about the data; `dropped` counts samples that were no readings.
    """

    gpu_uuid: str
    status: Status
    headline: str
    observations: tuple[Observation, ...]
    looked_at: tuple[int, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    dropped: int

    @property
    def risen(self) -> tuple[Observation, ...]:
        """List the observations that count."""
        return tuple(one for one in self.observations if one.risen)
