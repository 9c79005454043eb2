"""Which DCGM field does a metric name mean, and what can its value say?

A field is known by its number: names change between DCGM versions and exporters, numbers do not.
The rows stand in `dcgm_table.py`, their form in `dcgm_rows.py`;
what a rise means and cannot mean, in `dcgm_meanings.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from witness.rules.dcgm_meanings import MEANINGS, Meaning
from witness.rules.dcgm_rows import Evidence, Group, Kind, Level, Resets, Row
from witness.rules.dcgm_table import ROWS

__all__ = [
    "BY_ID",
    "FIELDS",
    "Evidence",
    "Field",
    "Group",
    "Kind",
    "Level",
    "Resets",
    "all_names",
    "field_of",
    "in_group",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the table.

    `names` are all metric names, the present one of DCGM first; `key` is that name without its
    prefix. `unit` is "" for a plain count. `low` and `high` bound what the hardware can report:
    a value outside is not a reading. `direction` is 1 where a change upward is the bad one, -1
    downward, 0 where neither is looked for. `detail` marks a part of another field's total: when
    it is missing, nothing is. `step` is the smallest change that the sensor can show.
    """

    id: int
    key: str
    names: tuple[str, ...]
    title: str
    unit: str
    kind: Kind
    level: Level
    group: Group
    low: float
    high: float
    evidence: Evidence
    resets: Resets
    direction: int
    step: float
    detail: bool
    meaning: Meaning

    @property
    def is_evidence(self) -> bool:
        """Tell whether a change of this field can point at the hardware at all."""
        return self.evidence != "context"

    @property
    def title_inside(self) -> str:
        """Give the title as it stands inside a sentence: "GPU busy", but "last Xid"."""
        known = self.title[:2].isupper() or self.title.startswith(("NV", "PC"))
        return self.title if known else self.title[:1].lower() + self.title[1:]

    def plausible(self, value: float) -> bool:
        """Tell whether hardware can report this value; False for NaN."""
        return self.low <= value <= self.high


def _field(row: Row) -> Field:
    names = tuple(
        name if name.startswith("DCGM_") else f"DCGM_FI_{name}" for name in row.names.split()
    )
    family = row.family
    return Field(
        id=row.id,
        key=row.names.split()[0],
        names=names,
        title=row.title,
        unit=family.unit,
        kind=family.kind,
        level=row.level,
        group=family.group,
        low=family.low,
        high=family.high,
        evidence=family.evidence,
        resets=family.resets,
        direction=family.direction,
        step=family.step,
        detail=family.detail,
        meaning=MEANINGS[family.meaning],
    )


FIELDS: tuple[Field, ...] = tuple(_field(row) for row in ROWS)
"""Every field that is read, by rising number."""

BY_ID: Mapping[int, Field] = MappingProxyType({field.id: field for field in FIELDS})

_BY_NAME: Mapping[str, Field] = MappingProxyType(
    {name.lower(): field for field in FIELDS for name in field.names}
)


def field_of(metric_name: str) -> Field | None:
    """Find the field of a Prometheus metric name, or None where it is not in the table.

    Upper or lower case, and the ending `_total` that some collectors append to counters.
    """
    name = metric_name.strip().lower()
    return _BY_NAME.get(name) or _BY_NAME.get(name.removesuffix("_total"))


def all_names(ids: Iterable[int] | None = None) -> tuple[str, ...]:
    """List every metric name of these fields, or of all: what a source has to be asked for."""
    wanted = FIELDS if ids is None else tuple(BY_ID[one] for one in ids)
    return tuple(name for field in wanted for name in field.names)


def in_group(group: Group) -> tuple[Field, ...]:
    """List the fields of one group of charts."""
    return tuple(field for field in FIELDS if field.group == group)
