"""What do the adapters of training frameworks share?"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.adapters.torchrun import record_alarm
from witness.ddp.alarms import Alarm, SilentCorruption
from witness.ddp.checkpoints import Checkpoints
from witness.ddp.leaving import EXIT_CODE
from witness.ddp.randomness import seed_all, untouched
from witness.report.hold import HoldUnreadableError, leave_behind

_log = logging.getLogger(__name__)

TAGS = "witness-tags.json"
"""The file of a checkpoint's tags: in its folder, or beside a file with its name in front."""


class Stopped(SilentCorruption, SystemExit):
    """Ends a framework's training; a process that catches nothing exits with code 3.

    `witness.ddp.leaving.exit_on_alarm` around the training lets every rank finish its posting.
    """

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self.code = EXIT_CODE


def stop_on(alarm: Alarm | None) -> None:
    """Raise `Stopped` for an alarm, which is equal on every rank; do nothing for None.

    Under torchrun the alarm is left as the cause, because torchrun records no exit by itself.
    """
    if alarm is not None:
        record_alarm(alarm)
        raise Stopped(alarm)


@dataclass(frozen=True, slots=True)
class Micro:
    """One micro-batch as a replay needs it: whose it is, and what else the framework passes."""

    batch: Any
    step: int
    rank: int
    place: int
    extra: Any = None

    def seeded(self, devices: Iterable[torch.device]) -> AbstractContextManager[None]:
        """Draw the random numbers that its own rank drew."""
        return seeded(devices, self.step, self.rank, self.place)


@contextmanager
def seeded(devices: Iterable[torch.device], step: int, rank: int, place: int) -> Iterator[None]:
    """Draw random numbers by step, rank and the micro-batch's place in the step.

    So a replay draws them again, wherever it runs. Afterwards the generators of the CPU and of
    `devices` are as before.
    """
    with untouched(devices):
        seed_all(place, step, rank)
        yield


def as_ddp(model: Any) -> DistributedDataParallel:
    """Give the model if it is wrapped in DDP; raises TypeError where the checks cannot stand."""
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(
            "the checks compare replicas that hold the same weights, so the model must be wrapped "
            f"in DistributedDataParallel on several ranks; here it is a {type(model).__name__}"
        )
    return model


def write_tags(checkpoint: Path, step: int, tags: Mapping[str, int | None]) -> Path:
    """Write what had passed by a step beside its checkpoint, whole or not at all; give the file."""
    path = _tags_of(checkpoint)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps({"step": step, **tags}) + "\n")
    beside.replace(path)
    return path


def remove_tags(checkpoint: Path) -> None:
    """Remove the tags of a checkpoint that was removed."""
    _tags_of(checkpoint).unlink(missing_ok=True)


class TaggedCheckpoints(Checkpoints):
    """What an adapter's job saved anywhere below a folder, found by its tags.

    `latest_safe()` chooses where to resume. States without tags are not seen: the job that saved
    them was not watched.
    """

    def steps(self) -> dict[int, Path]:
        """List the checkpoints by step; of two of one step the newer one counts."""
        found: dict[int, Path] = {}
        for path in sorted(self.folder.rglob(f"*{TAGS}"), key=lambda one: one.stat().st_mtime):
            inside = path.name == TAGS
            checkpoint = path.parent if inside else path.with_name(path.name[: -len(TAGS) - 1])
            if checkpoint.exists():
                found[int(json.loads(path.read_text())["step"])] = checkpoint
        return dict(sorted(found.items()))


def leave_holds_behind(folder: Path, start_step: int, tags: Mapping[str, int | None]) -> None:
    """Note that a run which began before held windows saved a state beyond them, on one rank.

    Else every later restart would go back before them again. Never raises.
    """
    passed = [step for step in tags.values() if step is not None]
    if not passed:
        return
    try:
        leave_behind(folder, start_step - 1, min(passed), "rank 0")
    except (OSError, HoldUnreadableError):
        _log.warning("the hold beside the checkpoints could not be noted as left", exc_info=True)


def _tags_of(checkpoint: Path) -> Path:
    if checkpoint.is_dir():
        return checkpoint / TAGS
    return checkpoint.with_name(f"{checkpoint.name}.{TAGS}")
