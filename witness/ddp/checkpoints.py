"""Where is the newest state that a job may resume from, and how is one saved whole?"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from witness.ddp.announcing import Announcer
from witness.ddp.collectives import global_rank
from witness.report.hold import choose, leave_behind
from witness.rules.resume import Checkpoint

_log = logging.getLogger(__name__)

BEFORE_ALL = -1
"""The step from which a job resumes that begins anew."""
_NAME = re.compile(r"step-(\d+)\.pt")


class CheckpointError(RuntimeError):
    """A checkpoint could not be saved or chosen; raised on every rank alike."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved state: the step it was saved after, and the last passes by then.

    The tags are a record of what had passed, no proof that the state is clean.
    """

    step: int
    tags: dict[str, int | None]
    state: dict[str, Any]


class Checkpoints:
    """A folder of checkpoints on storage that every rank sees, written by rank 0.

    For jobs that have no saving of their own. `reporter` is told of each one and asked for the
    service's resume floor; None leaves both out.
    """

    def __init__(
        self, folder: Path | str, *, group: dist.ProcessGroup | None = None, reporter: Any = None
    ) -> None:
        self.folder, self.group = Path(folder), group
        self._announcer = Announcer(reporter)
        self._resumed_from: int | None = None

    def path(self, step: int) -> Path:
        """Give the file of the state saved after a step."""
        return self.folder / f"step-{step:08d}.pt"

    def save(self, step: int, state: Mapping[str, Any], tags: Mapping[str, int | None]) -> Path:
        """Save a state so that a file of that name is always whole; every rank must call it.

        Rank 0 writes beside the place, to the disk, and renames; the others wait. `state` may hold
        what `torch.load(weights_only=True)` reads: tensors, numbers, texts, dicts and lists.
        Raises `CheckpointError` on every rank where rank 0 could not save.
        """
        path = self.path(step)
        whole = {"step": step, "tags": dict(tags), "state": dict(state)}
        self._decided(lambda: self._write(path, whole))
        self._announcer.tell("checkpoint", step, str(path), dict(tags))
        return path

    def latest_safe(self) -> Path | None:
        """Choose where to resume, the same on every rank; None means to begin anew.

        That is the newest state that neither a hold of an alarm nor the service's resume floor
        forbids; the service is asked for 3 s at most. Rank 0 chooses, every rank must call it.
        Raises `CheckpointError` on every rank where the folder or its hold cannot be read.
        """
        chosen, self._resumed_from = self._decided(self._choose)
        return None if chosen is None else Path(chosen)

    def load(self, path: Path, map_location: Any = "cpu") -> Saved:
        """Read one checkpoint; compare the replicas afterwards with `Guard.check_loaded`."""
        whole = torch.load(path, map_location=map_location, weights_only=True)
        return Saved(whole["step"], whole["tags"], whole["state"])

    def steps(self) -> dict[int, Path]:
        """List the complete checkpoints of the folder by step."""
        found = {}
        for path in self.folder.glob("step-*.pt"):
            name = _NAME.fullmatch(path.name)
            if name is not None:
                found[int(name[1])] = path
        return dict(sorted(found.items()))

    def _choose(self) -> tuple[str | None, int]:
        floor = self._announcer.tell("resume_floor")
        saved = [_as_rule(*one) for one in self.steps().items()]
        choice = choose(saved, self.folder, floor)
        found = choice.checkpoint
        step = BEFORE_ALL if found is None else found.step
        kept_back = any(one.step > step for one in saved)
        _log.log(
            logging.WARNING if kept_back else logging.INFO,
            "resuming from %s: %s",
            "the very beginning" if found is None else f"step {step}",
            choice.why,
        )
        return (None if found is None else found.uri), step

    def _write(self, path: Path, whole: Mapping[str, Any]) -> None:
        write_whole(path, whole)
        passed = [step for step in whole["tags"].values() if step is not None]
        if self._resumed_from is None or not passed:
            return
        try:
            # Beyond a window, and checked there: later restarts need not go back before it again.
            leave_behind(self.folder, self._resumed_from, min(passed), "rank 0")
        except Exception:
            # The state is saved; without the note a restart goes back further than it must.
            _log.warning("holds could not be noted as left behind", exc_info=True)

    def _decided(self, decide: Any) -> Any:
        """Let rank 0 decide and give every rank its answer, or its error."""
        outcome: list[Any] = [None, None]
        if dist.get_rank(self.group) == 0:
            try:
                outcome = [decide(), None]
            except Exception as error:  # The others wait for an answer.
                outcome = [None, f"{type(error).__name__}: {error}"]
        dist.broadcast_object_list(outcome, src=global_rank(0, self.group), group=self.group)
        if outcome[1] is not None:
            raise CheckpointError(outcome[1])
        return outcome[0]


def write_whole(path: Path, whole: Mapping[str, Any]) -> None:
    """Write a file that is either not there or whole, also after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            torch.save(whole, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _as_rule(step: int, path: Path) -> Checkpoint:
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Checkpoint(step, str(path), saved_at=at, committed=True)
