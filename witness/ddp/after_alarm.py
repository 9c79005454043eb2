"""How often does the suspect get the step of the alarm wrong, if it does it again and again?"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.alarms import Alarm, named
from witness.ddp.buffers import Values
from witness.ddp.collectives import gather, global_ranks
from witness.ddp.fingerprints import fold
from witness.ddp.replay import Work, replay
from witness.ddp.ring_audit import sent_buffers
from witness.rules import words

_log = logging.getLogger(__name__)

WITNESSES = 2


@dataclass(frozen=True, slots=True)
class AfterAlarm:
    """What is done between an alarm and the end of the job.

    Up to `replays` rounds (0: none) within `limit_s` seconds altogether, for at most `suspects`
    ranks. `raise_error` raises `SilentCorruption` where otherwise the alarm is returned.
    """

    replays: int = 20
    limit_s: float = 60.0
    suspects: int = 4
    raise_error: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """One suspect, the rank whose micro-batch it got wrong, and two ranks on other nodes."""

    suspect: int
    batch_of: int
    witnesses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """How many of `replays` answers of a suspect differed from the witnesses' one answer.

    None wrong clears nobody: an intermittent fault may rest.
    """

    suspect: int
    witnesses: tuple[int, ...]
    replays: int
    wrong: int

    def __str__(self) -> str:
        beside = words.ranks(self.witnesses)
        return f"rank {self.suspect} is wrong in {self.wrong} of {self.replays} beside {beside}"


def trials(alarm: Alarm, rows: Sequence[Mapping[str, Any]], most: int) -> list[Trial]:
    """Choose whom to try, on which micro-batch, and beside whom.

    Only where somebody is named by what was computed: weights that drifted apart would make
    honest replays differ, and a fault in the reduction is not in anybody's own work. A suspect
    for whom there are no two unsuspected ranks on nodes of their own is left out, and that is said.
    """
    if alarm["check"] != "compute":
        return []
    replaying = {
        one["suspect"]: one["pair"][0] for one in alarm["verdicts"] if one["suspect"] is not None
    }
    suspects = named(alarm)
    found = []
    for suspect in suspects[:most]:
        beside = _witnesses(rows, suspect, suspects, alarm.get("peer_offset") or 1)
        if len(beside) == WITNESSES:
            found.append(Trial(suspect, replaying.get(suspect, suspect), beside))
        else:
            _log.warning(
                "rank %d is not tried again: two unsuspected ranks on other nodes are needed",
                suspect,
            )
    if len(suspects) > most:
        _log.warning("%d suspects; only the first %d are tried again", len(suspects), most)
    return found


def count_wrong(
    work: Work,
    chosen: Sequence[Trial],
    step: int,
    with_grads: bool,
    limits: AfterAlarm,
    group: dist.ProcessGroup | None = None,
) -> list[Count]:
    """Let suspects and witnesses do the step again, together, and count the wrong answers.

    Every rank must call it with the same trials, in the kernel mode of the comparison that fired.
    All ranks stop after the same round: when all rounds are done, when the slowest rank would go
    past the limit in the next one, or when any of them fails. Weights and optimizer state are not
    touched. A trial whose witnesses contradict each other or themselves is not counted.
    """
    if not chosen or limits.replays < 1:
        return []
    order = {rank: position for position, rank in enumerate(global_ranks(group))}
    rounds: list[list[list[int]]] = []
    began = time.monotonic()
    begun = _beginnings(work, chosen, group)
    for done in range(1, limits.replays + 1):
        mine = _round(work, chosen, begun, step, with_grads, began)
        table: list[list[int]] = gather(mine, group).tolist()
        if any(row[-1] for row in table):
            _log.warning("a rank could not do step %d again; its replays end here", step)
            break
        rounds.append(table)
        slowest_s = max(row[-2] for row in table) / 1000
        if slowest_s * (done + 1) / done > limits.limit_s:
            break
    return _counted(chosen, rounds, order)


def _witnesses(
    rows: Sequence[Mapping[str, Any]], suspect: int, suspects: Sequence[int], offset: int
) -> tuple[int, ...]:
    """Prefer ranks along the suspect's own ring: they share its place within a node."""
    hosts = [row.get("node") or row.get("instance_id") for row in rows]
    ranks = [int(row["rank"]) for row in rows]
    start, size = ranks.index(suspect), len(ranks)
    along = [(start + turn * offset) % size for turn in range(1, size)]
    taken, found = {hosts[start], None}, list[int]()
    for place in dict.fromkeys([*along, *range(size)]):
        if ranks[place] not in suspects and hosts[place] not in taken and len(found) < WITNESSES:
            taken.add(hosts[place])
            found.append(ranks[place])
    return tuple(found)


def _beginnings(
    work: Work, chosen: Sequence[Trial], group: dist.ProcessGroup | None
) -> list[Values | None]:
    """Give the buffers that each trial begins with; None where its ranks have the same already."""
    mine = work.buffers.digest(work.params[0].device).reshape(1)
    starts = dict(zip(global_ranks(group), gather(mine, group).flatten().tolist(), strict=True))
    found: list[Values | None] = []
    for trial in chosen:
        begun = {starts[rank] for rank in (trial.batch_of, trial.suspect, *trial.witnesses)}
        found.append(sent_buffers(work, trial.batch_of, group) if len(begun) > 1 else None)
    return found


def _round(
    work: Work,
    chosen: Sequence[Trial],
    begun: Sequence[Values | None],
    step: int,
    with_grads: bool,
    began: float,
) -> Tensor:
    """Do this rank's part of a round: an answer a trial, the time so far in ms, a mark of failure.

    An error is carried as a mark: a rank that left here would keep the others waiting.
    """
    answers, failed, me = [0] * len(chosen), 0, dist.get_rank()
    try:
        for place, trial in enumerate(chosen):
            if me in (trial.suspect, *trial.witnesses):
                again = replay(work, step, trial.batch_of, with_grads, buffers=begun[place])
                answers[place] = int(fold(again))
    except Exception:
        _log.warning("a replay of step %d failed", step, exc_info=True)
        failed = 1
    spent = int((time.monotonic() - began) * 1000)
    return torch.tensor([*answers, spent, failed], dtype=torch.int64, device=work.params[0].device)


def _counted(
    chosen: Sequence[Trial], rounds: Sequence[Sequence[Sequence[int]]], order: Mapping[int, int]
) -> list[Count]:
    counts = []
    for place, trial in enumerate(chosen):
        right = {table[order[rank]][place] for table in rounds for rank in trial.witnesses}
        if len(right) > 1:
            _log.warning(
                "the witnesses of rank %d, %s, contradict each other: nothing is counted",
                trial.suspect,
                words.ranks(trial.witnesses),
            )
        elif rounds:
            answers = [table[order[trial.suspect]][place] for table in rounds]
            wrong = sum(answer not in right for answer in answers)
            counts.append(Count(trial.suspect, trial.witnesses, len(answers), wrong))
    return counts
