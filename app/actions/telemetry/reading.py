"""What is read in the telemetry of an alarm's suspects, from what is kept?

Made again whenever one of its windows is pulled, so that a page never waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from app.actions.alarm_dossier import read_core
from app.actions.telemetry.decoding import Decoded
from app.actions.telemetry.further import Further, read_further, stamp_of
from app.actions.telemetry.planning import Plan, Suspect, plan
from app.context import Context
from app.store import ids, telemetry_kept, telemetry_queue, telemetry_unread
from app.store.connection import Connection
from app.store.telemetry_kept import Packed
from app.store.telemetry_queue import OPEN, Window
from witness.rules.observations import Reading, Refusal, Source
from witness.rules.telemetry import read

NO_SOURCE = "No source of metrics is configured for this cluster."

_Made = tuple[Suspect, Reading, bool]


@dataclass(frozen=True, slots=True)
class _Ground:
    """All that the readings of an alarm rest on; `standing` are GPUs that have one already."""

    planned: Plan
    asked: Sequence[tuple[int, str, Window]]
    packed: Mapping[int, Sequence[Packed]]
    standing: Collection[int]
    further: Further

    def windows_of(self, suspect: Suspect) -> dict[int, Window]:
        """Find the windows of a suspect and of those that it is compared with."""
        own = ids.derive("gpu", suspect.uuid)
        return {window.id: window for owner, _, window in self.asked if owner == own}


def read_alarm(context: Context, alarm_id: int) -> int:
    """Read every suspect of an alarm anew and keep the readings; give how many there are.

    The readings of an alarm are those of its plan of now: what was read of a GPU that is not in
    doubt any more goes in the same transaction.
    """
    now = context.now()
    with context.store.reading() as connection:
        ground = _read_ground(connection, alarm_id)
    if ground is None:
        context.store.write(lambda connection: telemetry_unread.set_read(connection, alarm_id))
        return 0
    made = _read_all(ground)
    stamp = _stamp(ground.asked) | ground.further.stamp
    gpus = [ids.derive("gpu", one.uuid) for one in ground.planned.suspects]

    def write(connection: Connection) -> None:
        asked = _stamp(telemetry_queue.of_alarm(connection, alarm_id))
        if asked | stamp_of(connection, alarm_id) != stamp:
            return  # Whoever settled or added a window since then reads the alarm after that.
        telemetry_kept.keep_readings_of(connection, alarm_id, gpus)
        for suspect, reading, whole in made:
            gpu = ids.derive("gpu", suspect.uuid)
            telemetry_kept.write_reading(connection, alarm_id, gpu, reading, whole=whole, now=now)
        telemetry_unread.set_read(connection, alarm_id)

    context.store.write(write)
    return len(gpus)


def _read_ground(connection: Connection, alarm_id: int) -> _Ground | None:
    """Read each row once, so that nothing is worked out while a transaction is open."""
    core = read_core(connection, alarm_id)
    if core is None:
        return None
    asked = telemetry_queue.of_alarm(connection, alarm_id)
    pulled = {one.id for _, _, one in asked if one.pulled_at is not None}
    planned = plan(core)
    return _Ground(
        planned,
        asked,
        telemetry_kept.read_packed(connection, pulled),
        telemetry_kept.gpus_read(connection, alarm_id),
        read_further(connection, core, planned),
    )


def _read_all(ground: _Ground) -> list[_Made]:
    """Read the suspects, those of one node after each other: they share most of their windows."""
    nodes: dict[frozenset[str], list[Suspect]] = {}
    for one in ground.planned.suspects:
        nodes.setdefault(frozenset((one.uuid, *one.node)), []).append(one)
    suspects = [(one, ground.windows_of(one)) for listed in nodes.values() for one in listed]
    # What was read from samples that are deleted by now cannot be read again, and stays.
    suspects = [
        (one, windows)
        for one, windows in suspects
        if not any(window.purged_at for window in windows.values())
        or ids.derive("gpu", one.uuid) not in ground.standing
    ]
    uuids = {one.id: one.gpu_uuid for _, _, one in ground.asked}
    decoded = Decoded(ground.packed, uuids, [windows for _, windows in suspects])
    made = [_one(decoded, ground, one, windows) for one, windows in suspects]
    return sorted(made, key=lambda one: one[0].uuid)


def _stamp(asked: Sequence[tuple[int, str, Window]]) -> set[tuple[object, ...]]:
    """Say which samples a reading rests on."""
    return {
        (owner, one.id, one.pulled_at, one.purged_at, one.state in OPEN) for owner, _, one in asked
    }


def _one(
    decoded: Decoded, ground: _Ground, suspect: Suspect, windows: Mapping[int, Window]
) -> _Made:
    series, damaged = decoded.take(windows)
    own = [one for one in windows.values() if one.gpu_uuid == suspect.uuid]
    refusal = next((damaged[one.id] for one in own if one.id in damaged), None)
    reading = read(
        ground.planned.window,
        suspect.uuid,
        [] if refusal else series,
        node=suspect.node,
        ring=suspect.ring,
        source=source_of(own, list(windows.values()), refusal),
        further=ground.further.of(suspect.uuid, series),
    )
    notes = [text for text in damaged.values() if text != refusal]
    if any(one.state == "no_source" for one in own):
        notes.insert(0, NO_SOURCE)
    whole = bool(windows) and all(one.whole for one in windows.values())
    notes += [*reading.notes, *ground.further.notes(suspect.uuid)]
    return suspect, replace(reading, notes=tuple(notes)), whole


def source_of(
    own: Sequence[Window], all_windows: Sequence[Window], damaged: str | None = None
) -> Source:
    """Say what is known of where the samples came from, and what was refused."""
    warnings = dict.fromkeys(text for one in all_windows for text in one.warnings)
    if any(one.partial for one in all_windows):
        warnings["It called its answer incomplete."] = None
    refused = [one.said for one in own if one.state in ("refused", "given_up") and one.said]
    refusals = [Refusal(why) for why in dict.fromkeys([*refused, *([damaged] if damaged else [])])]
    known = next((one for one in own if one.pulled_at is not None), None)
    level = known.level if known else None
    return Source(
        level=level if level in ("basic", "advanced", "disabled") else None,  # type: ignore[arg-type]
        interval_s=known.interval_s if known else None,
        refusals=tuple(refusals),
        warnings=tuple(warnings),
    )
