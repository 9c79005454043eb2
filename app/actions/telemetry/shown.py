"""What of an alarm's telemetry does a page or a program get to see?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.actions.alarm_dossier import Dossier
from app.actions.telemetry.planning import plan
from app.actions.telemetry.retention import deleted_words
from app.store import ids, telemetry_kept, telemetry_queue
from app.store.connection import Connection
from app.store.telemetry_kept import STATUSES, Kept
from app.store.telemetry_queue import ENDED_EMPTY, OPEN, Window
from witness.rules.blocks import BlockError
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.observations import Window as Times
from witness.rules.samples import Part, Series

DRAWN_SUSPECTS = 2
"""Suspects whose curves are drawn; of the others the reading is written."""
IN_FULL = 4
"""Suspects of which a page shows the whole reading."""
PANELS = 12
NOT_PULLED = "It was not pulled yet."
EXAMPLE = "A recorded example: its GPUs are invented, so no source is asked for them."
NO_GPU = "No GPU of this alarm is known by its UUID, so there is nothing to ask for."


@dataclass(frozen=True, slots=True)
class Curve:
    """One GPU's samples of a field; `role` is suspect, node or ring."""

    series: Series
    role: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One field of one suspect, with those that it is compared with."""

    field: Field
    part: Part
    curves: tuple[Curve, ...]
    risen: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """One suspect: its reading (None: none was made yet), its windows and what is drawn."""

    uuid: str
    kept: Kept | None
    windows: tuple[Window, ...]
    panels: tuple[Panel, ...]
    panels_in_all: int


@dataclass(frozen=True, slots=True)
class Telemetry:
    """All of an alarm; `waiting` counts windows that are not settled, `failed` empty ones."""

    times: Times
    suspects: tuple[Shown, ...]
    left_out: int
    waiting: int
    failed: int
    samples: int
    size: int
    example: bool = False

    @property
    def unread(self) -> str:
        """Say why a suspect has no reading."""
        return EXAMPLE if self.example else NOT_PULLED

    @property
    def status(self) -> str:
        """Give the status that counts first among the suspects."""
        found = {one.kept.status for one in self.suspects if one.kept is not None}
        return next((one for one in STATUSES if one in found), "not_collected")

    @property
    def says(self) -> str:
        """Say in one sentence what the telemetry says."""
        if not self.suspects:
            return NO_GPU
        found = [one.kept for one in self.suspects if one.kept is not None]
        first = next((one for one in found if one.status == self.status), None)
        return self.unread if first is None else first.headline


def read_telemetry(connection: Connection, dossier: Dossier, *, curves: bool) -> Telemetry:
    """Read what is kept for an alarm.

    `curves` asks for what a page shows: samples to draw, and whole readings of the first suspects
    only. Without it every reading is whole.
    """
    planned = plan(dossier)
    asked = telemetry_queue.of_alarm(connection, dossier.facts.id)
    first = [ids.derive("gpu", one.uuid) for one in planned.suspects[:IN_FULL]]
    readings = telemetry_kept.readings_of_alarms(
        connection, [dossier.facts.id], first if curves else None
    )
    by_gpu = {one.gpu_id: one for one in readings}
    shown = []
    for place, suspect in enumerate(planned.suspects):
        drawn = curves and place < DRAWN_SUSPECTS
        shown.append(show(connection, suspect.uuid, asked, by_gpu, drawn=drawn))
    windows = {one.id: one for _, _, one in asked}
    samples, size = telemetry_kept.sizes(connection, list(windows))
    return Telemetry(
        planned.window,
        tuple(shown),
        planned.left_out,
        sum(one.state in OPEN and not one.pulled_at for one in windows.values()),
        sum(one.state in ENDED_EMPTY for one in windows.values()),
        samples,
        size,
        dossier.facts.example,
    )


def show(
    connection: Connection,
    uuid: str,
    asked: Sequence[tuple[int, str, Window]],
    readings: Mapping[int, Kept],
    *,
    drawn: bool,
) -> Shown:
    """Gather one suspect of an alarm; `drawn` asks for samples to draw."""
    own = ids.derive("gpu", uuid)
    mine = [(role, window) for owner, role, window in asked if owner == own]
    kept = readings.get(own)
    panels = _panels(connection, mine, kept) if drawn else []
    windows = tuple(window for _, window in mine)
    deleted = max((one.purged_at for one in windows if one.purged_at), default=None)
    if kept is not None and deleted is not None:
        notes = (deleted_words(deleted), *kept.reading.get("notes", ()))
        kept = replace(kept, reading={**kept.reading, "notes": notes})
    return Shown(uuid, kept, windows, tuple(panels[:PANELS]), len(panels))


def _panels(
    connection: Connection, mine: Sequence[tuple[str, Window]], kept: Kept | None
) -> list[Panel]:
    """Gather fields of the suspect: those that rose first, then those that could be evidence."""
    roles = {window.gpu_uuid: role for role, window in mine}
    uuids = {window.id: window.gpu_uuid for _, window in mine if window.pulled_at}
    try:
        series = telemetry_kept.read_series(connection, uuids)
    except BlockError:
        return []
    of_suspect = {(one.field_id, one.part) for one in series if roles[one.gpu_uuid] == "suspect"}
    risen = {
        one["field_id"] for one in (kept.reading["observations"] if kept else ()) if one["risen"]
    }
    panels = [
        Panel(
            BY_ID[field_id],
            part,
            tuple(
                Curve(one, roles[one.gpu_uuid])
                for one in sorted(series, key=lambda one: roles[one.gpu_uuid] == "suspect")
                if (one.field_id, one.part) == (field_id, part)
            ),
            field_id in risen,
        )
        for field_id, part in of_suspect
    ]
    panels.sort(key=lambda one: (not one.risen, not one.field.is_evidence, one.field.id, one.part))
    return panels


def as_json(telemetry: Telemetry) -> dict[str, Any]:
    """Give what programs read of an alarm's telemetry; samples have an address of their own."""
    return {
        "state": telemetry.status,
        "why": telemetry.says,
        "waiting": telemetry.waiting,
        "failed": telemetry.failed,
        "left_out": telemetry.left_out,
        "samples": telemetry.samples,
        "readings": [_reading(one, telemetry.unread) for one in telemetry.suspects],
    }


def _reading(shown: Shown, unread: str) -> dict[str, Any]:
    if shown.kept is None:
        return {"gpu_uuid": shown.uuid, "state": "not_collected", "why": unread}
    reading = shown.kept.reading
    return {
        "gpu_uuid": shown.uuid,
        "state": shown.kept.status,
        "why": shown.kept.headline,
        "whole": shown.kept.whole,
        "made_at": shown.kept.made_at,
        "observations": [
            {**one, "field": _key(one["field_id"])} for one in reading["observations"]
        ],
        "looked_at": [_key(one) for one in reading["looked_at"]],
        "missing": [{**one, "field": _key(one["field_id"])} for one in reading["missing"]],
        "notes": reading["notes"],
    }


def _key(field_id: int | None) -> str | None:
    field = None if field_id is None else BY_ID.get(field_id)
    return field.names[0] if field else None
