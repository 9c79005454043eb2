"""How much may be done to a fleet at once, and how long does an approval hold?

Every limit is one field, with its bounds and its meaning in one table: page, API and rails read the
same.  A default is what is assumed until an administrator sets something else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Value = int | float | bool
Kind = Literal["count", "number", "share", "yes_no"]


@dataclass(frozen=True, slots=True)
class RailPolicy:
    """All limits. `version` 0: nobody has set anything, these are the assumed ones."""

    version: int = 0
    max_nodes: int = 32
    max_share: float = 0.25
    max_destroyed_share: float = 0.10
    max_per_group: int = 24
    max_per_zone: int = 24
    max_per_domain: int = 8
    max_per_hour: int = 32
    max_per_day: int = 64
    cooldown_minutes: float = 30.0
    attempts: int = 3
    attempts_hours: float = 24.0
    approve_hours: float = 168.0
    execute_minutes: float = 15.0
    four_eyes: bool = True
    fleet_hours: float = 24.0
    brake_half_job_nodes: int = 8
    brake_digest_cases: int = 12
    brake_digest_hours: float = 24.0
    brake_storm_nodes: int = 48
    brake_storm_minutes: float = 10.0

    @property
    def name(self) -> str:
        """Name the version as it stands in an approval."""
        return "assumed" if self.version == 0 else str(self.version)

    @property
    def values(self) -> dict[str, Value]:
        """Give every limit by its name, without the version."""
        return {field.name: getattr(self, field.name) for field in FIELDS}


@dataclass(frozen=True, slots=True)
class Field:
    """One limit: how it is typed, between which bounds, in which unit, and what it does."""

    name: str
    kind: Kind
    low: float
    high: float
    unit: str
    meaning: str
    group: Literal["caps", "time", "people", "brake"]


FIELDS: tuple[Field, ...] = (
    Field("max_nodes", "count", 1, 10_000, "nodes",
          "Nodes held, or being destroyed, at one time, over all clusters", "caps"),
    Field("max_share", "share", 0.001, 1, "%",
          "Share of a cluster’s GPU nodes out of service at one time, by whomever", "caps"),
    Field("max_destroyed_share", "share", 0.001, 1, "%",
          "Share of a cluster’s GPU nodes that are being destroyed at one time", "caps"),
    Field("max_per_group", "count", 1, 10_000, "nodes",
          "Nodes out of service in one instance group", "caps"),
    Field("max_per_zone", "count", 1, 10_000, "nodes",
          "Nodes out of service in one zone", "caps"),
    Field("max_per_domain", "count", 1, 10_000, "nodes",
          "Nodes out of service in one rack, or behind one network node", "caps"),
    Field("max_per_hour", "count", 1, 10_000, "nodes",
          "Nodes that actions are approved for within an hour", "caps"),
    Field("max_per_day", "count", 1, 100_000, "nodes",
          "Nodes that actions are approved for within a day", "caps"),
    Field("cooldown_minutes", "number", 0, 10_080, "minutes",
          "A node rests after something destroyed it, before the next thing may", "time"),
    Field("attempts", "count", 1, 100, "times",
          "The same action is tried on one node at most so often", "time"),
    Field("attempts_hours", "number", 0.1, 8_760, "hours",
          "The time over which attempts are counted", "time"),
    Field("approve_hours", "number", 0.1, 8_760, "hours",
          "A proposal that nobody decided by then expires", "time"),
    Field("execute_minutes", "number", 0.1, 1_440, "minutes",
          "An approval that was not sent by then is never sent", "time"),
    Field("fleet_hours", "number", 0.1, 168, "hours",
          "A reading of a cluster’s nodes older than this counts as unknown", "time"),
    Field("four_eyes", "yes_no", 0, 1, "",
          "What destroys is approved by somebody else than who asked for it", "people"),
    Field("brake_half_job_nodes", "count", 2, 10_000, "nodes",
          "The brake: half a job or more is named at once, and at least so many nodes", "brake"),
    Field("brake_digest_cases", "count", 2, 10_000, "cases",
          "The brake: so many open cases behind one code digest", "brake"),
    Field("brake_digest_hours", "number", 0.1, 8_760, "hours",
          "The time in which those cases were opened", "brake"),
    Field("brake_storm_nodes", "count", 2, 100_000, "nodes",
          "The brake: cordons proposed or approved for so many nodes", "brake"),
    Field("brake_storm_minutes", "number", 0.1, 1_440, "minutes",
          "The time in which those were proposed or approved", "brake"),
)  # fmt: skip
BY_NAME: Mapping[str, Field] = {one.name: one for one in FIELDS}


class BadLimit(ValueError):
    """A limit that cannot be; `field` is its name."""

    def __init__(self, field: str, why: str) -> None:
        """Keep which field it was."""
        super().__init__(why)
        self.field = field


def checked(values: Mapping[str, object], version: int) -> RailPolicy:
    """Make a policy of given limits, the others as assumed; raise BadLimit for one that cannot be.

    Names that are no limit raise as well: a misspelt limit must not be silently ignored.
    """
    known: dict[str, Value] = {}
    for name, value in values.items():
        if name not in BY_NAME:
            raise BadLimit(name, f"There is no limit {name}.")
        known[name] = _one(BY_NAME[name], value)
    policy = dataclasses.replace(RailPolicy(), **known, version=version)  # type: ignore[arg-type]
    if policy.max_destroyed_share > policy.max_share:
        raise BadLimit(
            "max_destroyed_share", "More may not be destroyed than may be out of service."
        )
    if policy.max_per_hour > policy.max_per_day:
        raise BadLimit("max_per_hour", "More an hour than a day makes no sense.")
    return policy


def _one(field: Field, value: object) -> Value:
    if field.kind == "yes_no":
        if isinstance(value, bool):
            return value
        raise BadLimit(field.name, f"“{field.meaning}” has to be true or false.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLimit(field.name, f"“{field.meaning}” has to be a number.")
    if field.kind == "count" and value != int(value):
        raise BadLimit(field.name, f"“{field.meaning}” has to be a whole number.")
    if not field.low <= value <= field.high:
        most = shown(field, field.high)
        least = f"{100 * field.low if field.kind == 'share' else field.low:g}"
        raise BadLimit(field.name, f"“{field.meaning}” has to lie between {least} and {most}.")
    return int(value) if field.kind == "count" else float(value)


def shown(field: Field, value: Value) -> str:
    """Write a limit with its unit."""
    if field.kind == "yes_no":
        return "yes" if value else "no"
    if field.kind == "share":
        return f"{100 * value:g} %"
    return f"{value:,g} {field.unit}"


def changes(before: RailPolicy, after: RailPolicy) -> tuple[str, ...]:
    """Say what differs between two policies, one limit a line, from → to."""
    return tuple(
        f"{field.meaning}: {shown(field, getattr(before, field.name))} → "
        f"{shown(field, getattr(after, field.name))}"
        for field in FIELDS
        if getattr(before, field.name) != getattr(after, field.name)
    )
