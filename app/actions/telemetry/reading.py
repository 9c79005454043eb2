"""What is read in the telemetry of an alarm's suspects, from what is kept?

Made again whenever one of its windows is pulled, so that a page never waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.actions.alarm_dossier import read_dossier
from app.actions.telemetry.planning import Plan, Suspect, plan
from app.context import Context
from app.store import ids, telemetry_kept, telemetry_queue, telemetry_unread
from app.store.connection import Connection
from app.store.telemetry_queue import OPEN, Window
from witness.rules.blocks import BlockError
from witness.rules.observations import Reading, Refusal, Source
from witness.rules.samples import Series
from witness.rules.telemetry import read

NO_SOURCE = "No source of metrics is configured for this cluster."


def read_alarm(context: Context, alarm_id: int) -> int:
    """Read every suspect of an alarm anew and keep the readings; give how many there are."""
    now = context.now()
    with context.store.reading() as connection:
        dossier = read_dossier(connection, alarm_id, now)
        if dossier is None:
            return _none(context, alarm_id)
        planned, asked = plan(dossier), telemetry_queue.of_alarm(connection, alarm_id)
        made = [_one(connection, planned, asked, one) for one in planned.suspects]
    stamp = _stamp(asked)

    def write(connection: Connection) -> None:
        if _stamp(telemetry_queue.of_alarm(connection, alarm_id)) != stamp:
            return  # Whoever settled or added a window since then reads the alarm after that.
        for suspect, reading, whole in made:
            gpu = ids.derive("gpu", suspect.uuid)
            telemetry_kept.write_reading(connection, alarm_id, gpu, reading, whole=whole, now=now)
        telemetry_unread.set_read(connection, alarm_id)

    context.store.write(write)
    return len(made)


def _none(context: Context, alarm_id: int) -> int:
    context.store.write(lambda connection: telemetry_unread.set_read(connection, alarm_id))
    return 0


def _stamp(asked: Sequence[tuple[int, str, Window]]) -> set[tuple[object, ...]]:
    """Say which samples a reading rests on."""
    return {(owner, one.id, one.pulled_at, one.state in OPEN) for owner, _, one in asked}


def _one(
    connection: Connection,
    planned: Plan,
    asked: Sequence[tuple[int, str, Window]],
    suspect: Suspect,
) -> tuple[Suspect, Reading, bool]:
    own = ids.derive("gpu", suspect.uuid)
    windows = {window.id: window for owner, _, window in asked if owner == own}
    series, damaged = _series(connection, windows)
    of_suspect = [one for one in windows.values() if one.gpu_uuid == suspect.uuid]
    reading = read(
        planned.window,
        suspect.uuid,
        series,
        node=suspect.node,
        ring=suspect.ring,
        source=source_of(of_suspect, list(windows.values()), damaged),
    )
    if any(one.state == "no_source" for one in of_suspect):
        reading = replace(reading, notes=(NO_SOURCE, *reading.notes))
    return suspect, reading, bool(windows) and all(one.whole for one in windows.values())


def _series(
    connection: Connection, windows: Mapping[int, Window]
) -> tuple[list[Series], str | None]:
    uuids = {one.id: one.gpu_uuid for one in windows.values() if one.pulled_at is not None}
    try:
        return telemetry_kept.read_series(connection, uuids), None
    except BlockError as error:
        return [], f"What was kept cannot be read: {error}."


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
