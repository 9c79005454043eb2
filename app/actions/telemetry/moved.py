"""Which fields of a GPU moved over months, in what share of the windows that were kept?

Each window is looked at once, when it is kept, and what moved in it stays when its samples are
deleted. More than an alarm's own reading counts here: also the windows of GPUs that were only
compared, and those that people asked for, or a GPU would be known only where it is accused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.context import Context
from app.store import telemetry_kept, telemetry_moved
from app.store.connection import Connection
from app.store.telemetry_kept import Packed, unpack
from app.store.telemetry_queue import Window
from witness.rules import moved as rules
from witness.rules.blocks import BlockError
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.observations import Source
from witness.rules.observations import Window as Times
from witness.rules.samples import Series
from witness.rules.telemetry import read

MOST = 2_000
"""Windows that are summed up for one GPU, the newest: several a day for more than a year."""
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class MovedField:
    """How one field moved: in `moved` of the `windows` that looked at it.

    `field` None is the silence of the GPU itself. `amount` is the least that a counter rose inside
    windows, None where nothing is summed; `between` is what the board's own counter gained between
    windows, at unknown times. `first_at` and `last_at` are None where it moved only between them.
    `hardware` tells the hardware's own statements from hints. `text` says all of it.
    """

    field: Field | None
    title: str
    hardware: bool
    windows: int
    moved: int
    amount: float | None
    between: float
    first_at: datetime | None
    last_at: datetime | None
    text: str

    @property
    def share(self) -> float:
        """Give the share of the windows that looked at it in which it moved, from 0 to 1."""
        return self.moved / self.windows if self.windows else 0.0


@dataclass(frozen=True, slots=True)
class OverMonths:
    """What moved on one GPU, the hardware's own statements first; empty `fields` clear nothing.

    `hours` is the time that its windows cover, overlaps once: outside of it nothing is known.
    `more` tells that older windows than the `MOST` newest were kept and are not in the sums.
    """

    windows: int
    hours: float
    first_at: datetime
    last_at: datetime
    fields: tuple[MovedField, ...]
    more: bool


def read_moved(
    connection: Connection,
    gpu_id: int,
    gpu_uuid: str,
    cluster: str | None = None,
    since: datetime | None = None,
) -> OverMonths | None:
    """Sum up what moved on a GPU; None where no window of it holds any samples.

    `cluster` limits it to what was pulled for that one, `since` to windows that began from then on.
    Compare GPUs by share and not by sum: more alarms mean more windows.
    """
    kept = telemetry_moved.read_moved(
        connection, gpu_id, gpu_uuid, MOST + 1, cluster=cluster, since=since
    )
    if not kept:
        return None
    (device,) = rules.moved(kept[:MOST])
    return OverMonths(
        windows=device.windows,
        hours=device.hours,
        first_at=_moment(device.first),
        last_at=_moment(device.last),
        fields=tuple(_field(one) for one in device.fields),
        more=len(kept) > MOST,
    )


def _field(one: rules.FieldMoved) -> MovedField:
    field = None if one.field_id is None else BY_ID[one.field_id]
    return MovedField(
        field=field,
        title="Silence" if field is None else field.title,
        hardware=field is None or field.evidence == "hardware",
        windows=one.windows,
        moved=one.moved,
        amount=one.amount,
        between=one.between,
        first_at=_moment(one.times[0]) if one.times else None,
        last_at=_moment(one.times[-1]) if one.times else None,
        text=one.text,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def as_json(found: OverMonths | None) -> dict[str, Any] | None:
    """Give what programs read; None where nothing was collected, which is no good sign either."""
    if found is None:
        return None
    return {
        "windows": found.windows,
        "hours": found.hours,
        "first_at": found.first_at,
        "last_at": found.last_at,
        "older_left_out": found.more,
        "fields": [
            {
                "field": one.field.names[0] if one.field else None,
                "field_id": one.field.id if one.field else None,
                "title": one.title,
                "evidence": "hardware" if one.hardware else "hint",
                "windows": one.windows,
                "moved": one.moved,
                "share": one.share,
                "amount": one.amount,
                "unit": one.field.unit if one.field else None,
                "between": one.between,
                "first_at": one.first_at,
                "last_at": one.last_at,
                "text": one.text,
            }
            for one in found.fields
        ],
    }


def look(
    window: Window,
    series: Mapping[str, Sequence[Series]],
    beside: Iterable[str],
    interval_s: float | None = None,
) -> rules.Kept | None:
    """Say what moved in a window at all; None where it holds no samples.

    `beside` are GPUs of the same node whose samples are at hand. There is no alarm in this
    question, so nothing comes before the window: no counter is called a habit, no level is judged.
    """
    own = series.get(window.gpu_uuid, ())
    if not any(one.times for one in own):
        return None
    start, end = window.start.timestamp(), window.end.timestamp()
    node = tuple(uuid for uuid in beside if uuid != window.gpu_uuid)
    changed = {one.field_id for one in own if _has_changed(one)}
    others = [one for uuid in node for one in _telling(series.get(uuid, ()), changed)]
    reading = read(
        Times(start, start, end, end),
        window.gpu_uuid,
        [*own, *others],
        node=node,
        source=Source(interval_s=interval_s),
    )
    seen = {one.field_id for one in reading.observations if one.field_id is not None}
    looked_at = tuple(sorted({*reading.looked_at, *seen}))
    return rules.Kept(
        window.gpu_uuid, start, end, looked_at, reading.risen, rules.board_counters(own)
    )


def _has_changed(one: Series) -> bool:
    is_level = BY_ID[one.field_id].kind == "gauge"
    return not is_level and any(value != one.values[0] for value in one.values)


def _telling(series: Sequence[Series], changed: set[int]) -> list[Series]:
    """Keep what of another GPU can change the answer: that it reports, and what moved beside."""
    longest = max(series, key=lambda one: len(one.times), default=None)
    return [one for one in series if one is longest or one.field_id in changed]


def catch_up(context: Context, after: int = 0) -> int | None:
    """Look at a few windows that were pulled by a version which did not, from behind `after`.

    Gives the window to go on from, None where there are no more.
    """
    with context.store.reading() as connection:
        windows = telemetry_moved.not_looked_at(connection, after, context.now(), AT_ONCE)
        packed = telemetry_kept.read_packed(connection, [one.id for one in windows])
    if not windows:
        return None
    found = [(one, _look_again(one, packed.get(one.id, ()))) for one in windows]
    made = [(window, kept) for window, kept in found if kept is not None]
    context.store.write(lambda connection: _write(connection, made))
    return windows[-1].id


def _look_again(window: Window, packed: Iterable[Packed]) -> rules.Kept | None:
    """Look at kept samples, without those of its node; damaged blocks say nothing."""
    try:
        own = [unpack(one, window.gpu_uuid) for one in packed]
    except BlockError:
        return None
    return look(window, {window.gpu_uuid: own}, (), window.interval_s)


def _write(connection: Connection, made: Sequence[tuple[Window, rules.Kept]]) -> None:
    for window, kept in made:
        telemetry_moved.write_if_still(connection, window, kept)
