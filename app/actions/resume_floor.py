"""Up to which step may a restarting job resume, and which alarm says so?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.actions.taint import key_of, tainted_by
from app.store import checkpoint_reading
from app.store.checkpoint_reading import LaterRun, OpenWindow, SavedState
from app.store.connection import Connection
from witness.rules.resume import Checkpoint, resume_floor

CONSIDERED = 20


@dataclass(frozen=True, slots=True)
class Considered:
    """One checkpoint and what speaks against it; None where nothing known does."""

    checkpoint: Checkpoint
    against: str | None


@dataclass(frozen=True, slots=True)
class Floor:
    """The answer; `highest_step` None: no open alarm limits it."""

    highest_step: int | None
    why: str
    limited_by: OpenWindow | None
    checkpoint: Checkpoint | None
    considered: tuple[Considered, ...]
    left_behind: int


def floor_of(connection: Connection, job_id: int) -> Floor:
    """Work out the highest step that a job may resume from."""
    windows = checkpoint_reading.read_windows(connection, job_id)
    if not windows:
        saved = checkpoint_reading.read_newest(connection, job_id, CONSIDERED)
        return _answer((), saved, (), 0)
    earliest = min(window.occurred_at for window in windows)
    runs = checkpoint_reading.read_later_runs(connection, job_id, earliest)
    open_windows = [one for one in windows if not _left_behind(one, runs)]
    if not open_windows:
        saved = checkpoint_reading.read_newest(connection, job_id, CONSIDERED)
        return _answer(windows, saved, (), len(windows))
    first = min(one.first for one in open_windows)
    last = max(one.last for one in open_windows)
    saved = checkpoint_reading.read_around(connection, job_id, [first], last)
    return _answer(windows, saved, open_windows, len(windows) - len(open_windows))


def _left_behind(window: OpenWindow, runs: Sequence[LaterRun]) -> bool:
    """Tell whether a later attempt went back before a window and saved a state beyond it."""
    return any(
        run.attempt_id != window.attempt_id
        and run.first_step <= window.first
        and run.newest_checkpoint > window.last
        for run in runs
    )


def _answer(
    windows: Sequence[OpenWindow],
    saved: Sequence[SavedState],
    open_windows: Sequence[OpenWindow],
    left_behind: int,
) -> Floor:
    tainted: dict[tuple[int, str | None], str] = {}
    for window in windows:
        text = (
            f"saved inside the suspect window {window.first} to {window.last}, or descends from it"
        )
        tainted.update(dict.fromkeys(tainted_by(window, saved), text))
    usable = [one.checkpoint for one in saved if key_of(one.checkpoint) not in tainted]
    found = resume_floor(usable, [(one.first, one.last) for one in open_windows])
    limit = min(open_windows, key=lambda one: one.first, default=None)
    considered = [
        Considered(one.checkpoint, _against(one.checkpoint, tainted, found.highest_step))
        for one in sorted(saved, key=lambda one: -one.checkpoint.step)
    ]
    return Floor(
        found.highest_step,
        found.why,
        limit,
        found.checkpoint,
        tuple(considered[:CONSIDERED]),
        left_behind,
    )


def _against(
    checkpoint: Checkpoint, tainted: dict[tuple[int, str | None], str], highest: int | None
) -> str | None:
    text = tainted.get(key_of(checkpoint))
    if text is not None:
        return text
    if highest is not None and checkpoint.step > highest:
        return f"later than step {highest}"
    if checkpoint.committed is False:
        return "left unfinished"
    return None if checkpoint.committed else "whether it was written to the end is not known"
