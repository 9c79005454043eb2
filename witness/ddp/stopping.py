"""What happens between an alarm and the end of the job?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch.distributed as dist

from witness.ddp.after_alarm import AfterAlarm, Count, count_wrong, trials
from witness.ddp.alarms import Alarm, SilentCorruption, in_words
from witness.ddp.announcing import Announcer
from witness.ddp.determinism import deterministic
from witness.ddp.placement import first_of_node
from witness.ddp.replay import Work
from witness.report.hold import write_hold

_log = logging.getLogger(__name__)


class Stopping:
    """Tells the alarm, holds the checkpoints, tries the suspects again; then gives the alarm back.

    In this order, so that what matters is on disk before anything that takes time.
    """

    def __init__(
        self,
        work: Work,
        announcer: Announcer,
        rows: Sequence[dict[str, Any]],
        group: dist.ProcessGroup | None,
        checkpoints: Path | str | None,
        limits: AfterAlarm | None,
    ) -> None:
        self._work, self._announcer, self._rows, self._group = work, announcer, rows, group
        self._checkpoints = None if checkpoints is None else Path(checkpoints)
        self._limits = limits or AfterAlarm()
        self.counts: list[Count] = []

    def stop(self, alarm: Alarm, deterministic_kernels: bool) -> Alarm:
        """Do all that an alarm asks for; every rank must call it with the same alarm."""
        if dist.get_rank(self._group) == 0:
            _log.error("%s", in_words(alarm))
        self._announcer.tell("alarm", alarm)
        self._hold(alarm)
        self._try_again(alarm, deterministic_kernels)
        if self._limits.raise_error:
            raise SilentCorruption(alarm)
        return alarm

    def _hold(self, alarm: Alarm) -> None:
        """Leave the marker that keeps a restarted job from resuming inside the window.

        One rank a node does, in case nodes do not share the folder, and the group's first, which
        may have no such rank; nobody goes on before all have.
        """
        writes = first_of_node() or dist.get_rank(self._group) == 0
        if self._checkpoints is not None and writes:
            try:
                write_hold(self._checkpoints, alarm, self._announcer.envelope)
            except Exception:
                _log.exception("the hold marker could not be left in %s", self._checkpoints)
        try:
            dist.barrier(self._group)
        except Exception:
            _log.warning("a rank is gone after the alarm", exc_info=True)

    def _try_again(self, alarm: Alarm, deterministic_kernels: bool) -> None:
        chosen = trials(alarm, self._rows, self._limits.suspects)
        # A NaN that only the gradients show needs gradients, and those need deterministic kernels.
        with_grads = deterministic_kernels or not alarm.get("mismatched_pairs")
        try:
            with deterministic() if with_grads else nullcontext():
                self.counts = count_wrong(
                    self._work, chosen, alarm["step"], with_grads, self._limits, self._group
                )
        except Exception:
            # A rank that died now costs the counts, not the alarm.
            _log.warning("the suspects could not be tried again", exc_info=True)
        for one in self.counts:
            if dist.get_rank(self._group) == 0:
                _log.error("step %d again: %s", alarm["step"], one)
            self._announcer.tell(
                "replays", alarm["step"], one.suspect, list(one.witnesses), one.replays, one.wrong
            )
