"""Which of two replicas is wrong, asked by a third process that trains nothing?

With two replicas no majority exists. This is the replicas' end of the link to their standby.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from witness.ddp.beyond.document import Alarm, document
from witness.ddp.beyond.link import (
    ASK,
    FOLLOW,
    REPLAY,
    STOP,
    SYNC,
    receive,
    send,
    send_state,
)
from witness.ddp.beyond.standby import STATE, WEIGHTS, digests, hyperparameters, update_words
from witness.ddp.collectives import gather
from witness.ddp.determinism import deterministic
from witness.ddp.fingerprints import fold
from witness.ddp.replay import replay
from witness.rules.confirmation import confirm as judge

if TYPE_CHECKING:
    from witness.ddp.guard import Guard

MASK = 2**64 - 1

_log = logging.getLogger(__name__)


class Replicas:
    """Two replicas of a job with a standby; both must build it alike and make the same calls.

    The guard's own alarms are settled by themselves, before they are told. `passed(step)` follows
    every step that went well, `close()` ends the standby. Costs on every step: a fingerprint of the
    reduced gradients on both replicas, and one copy of these gradients sent to the standby over
    gloo. At a weight check: fingerprints of weights and optimizer state, and a copy of both only
    where the standby differs.

    Proven where a replica is named: a third GPU, given the gradients and the data that both
    replicas say they had, came to the bits of the other one. Not proven: anything where both
    replicas agree. Where they do not agree on what the standby was given, nobody is named.

    `copies` counts how often the standby had to be given their state: once where it did not load
    the same checkpoint; more often says that the standby's own GPU is wrong.
    """

    def __init__(self, guard: Guard, standby: int, link: dist.ProcessGroup) -> None:
        self.guard, self.standby, self.link = guard, standby, link
        self.group = guard.group
        self.ranks = [rank for rank in dist.get_process_group_ranks(link) if rank != standby]
        self.leading = dist.get_rank() == self.ranks[0]
        self.copies = 0
        self._passed_at = guard.start_step - 1
        guard.settle = self.settle
        guard.optimizer.register_step_pre_hook(self._follow)
        words = self._words()
        if words[0] == words[1]:
            self._sync(words)

    def passed(self, step: int) -> Alarm | None:
        """Have the standby compare itself after a step whose weights were compared and agree.

        Does nothing on other steps. Gives an alarm of check `optimizer state` where the weights
        agree and the optimizers' states do not: that would part the replicas at the next update.
        """
        if not self.guard.schedule.is_check(step):
            return None
        words = self._words()
        if words[0] == words[1]:
            self._sync(words)
            self._passed_at = step
            return None
        alarm = document(
            "optimizer state",
            step,
            (self._passed_at + 1, step),
            [],
            passes=self.guard.tags(),
            update_applied=True,
            world_size=len(self.ranks),
        )
        return self._side_with(alarm, words, STATE)

    def settle(self, alarm: Alarm) -> Alarm:
        """Let the standby side with one replica; give the alarm with what it found out.

        For an alarm of check `weights` that names nobody it sets `suspects`; for one of check
        `compute`, which in a ring of two may name both, it sets a verdict a pair, or `suspects`
        where the replicas computed from different weights. In all these it adds `standby`. Other
        alarms come back as they are.
        """
        if alarm["check"] == "weights" and alarm.get("suspects") is None:
            return self._side_with(alarm, self._words(), WEIGHTS)
        if alarm["check"] == "compute" and alarm.get("mismatched_pairs"):
            words = self._words()
            if words[0][WEIGHTS] != words[1][WEIGHTS]:
                return {**self._side_with(alarm, words, WEIGHTS), "culprits": [], "verdicts": []}
            return self._replayed(alarm)
        return alarm

    def close(self) -> None:
        """Let the standby go; both replicas may call it, after the last step or the alarm."""
        self._command(STOP)

    def _follow(self, *_: Any) -> None:
        """Let the standby take part in the update that is about to happen."""
        optimizer, params = self.guard.optimizer, self.guard.gradients.params
        self._command(FOLLOW)
        if self.leading:
            grads = [None if p.grad is None else p.grad.detach().cpu() for p in params]
            step = {"grads": grads, "groups": hyperparameters(optimizer)}
            send_state(step, self.standby, self.link)
        send(update_words(params, optimizer), self.standby, self.link)

    def _sync(self, words: list[list[int]]) -> None:
        """Let the standby compare itself with both, and take over their state where it must."""
        self._command(SYNC)
        send(words[0], self.standby, self.link)
        sound, *_ = receive(3, self.standby, self.link)
        if sound:
            return
        self.copies += 1
        if self.leading:
            _log.warning("the standby held another state than both replicas, and is given theirs")
            module, optimizer = self.guard.work.module, self.guard.optimizer
            state = {"model": module.state_dict(), "optimizer": optimizer.state_dict()}
            send_state(state, self.standby, self.link)

    def _side_with(self, alarm: Alarm, words: list[list[int]], which: int) -> Alarm:
        self._command(ASK)
        sound, *third = receive(3, self.standby, self.link)
        own = {rank: row[which] for rank, row in zip(self.ranks, words, strict=True)}
        wrong = [rank for rank, word in own.items() if word != third[which]]
        answers = {**own, self.standby: third[which]}
        return {
            **alarm,
            "suspects": wrong if sound and len(wrong) == 1 else None,
            "digests": {str(rank): {"own": _hex(word)} for rank, word in answers.items()},
            "standby": {"rank": self.standby, "sound": bool(sound)},
        }

    def _replayed(self, alarm: Alarm) -> Alarm:
        step, with_grads = alarm["step"], alarm.get("kernel_mode") == "deterministic"
        work = self.guard.work
        with deterministic() if with_grads else nullcontext():
            mine = fold(replay(work, step, dist.get_rank(), with_grads))
        second = gather(mine.reshape(1), self.group).flatten().tolist()
        again = dict(zip(self.ranks, second, strict=True))
        self._command(REPLAY, step, int(with_grads))
        begun = {
            "buffers": [None if one is None else one.cpu() for one in work.buffers.values()],
            "scale": None if work.scale is None else work.scale(torch.ones(())).cpu(),
        }
        send_state(begun, self.standby, self.link)
        sound, *answers = receive(3, self.standby, self.link)
        thirds = dict(zip(self.ranks, answers, strict=True)) if sound else {}
        return {
            **alarm,
            # Two mismatched pairs of a ring of two name both: the verdicts say more.
            "culprits": [],
            "verdicts": [
                self._verdict(alarm, pair, thirds, again) for pair in alarm["mismatched_pairs"]
            ],
            "standby": {"rank": self.standby, "sound": bool(sound)},
        }

    def _verdict(
        self, alarm: Alarm, pair: list[int], thirds: dict[int, int], again: dict[int, int]
    ) -> dict[str, Any]:
        target, replayer = pair
        judged = judge(
            alarm["digests"][str(target)]["own"],
            alarm["digests"][str(replayer)].get("replay"),
            _hex(thirds[target]) if thirds else "no answer",
            _hex(again[target]),
        )
        suspect = {"target": target, "replayer": replayer, None: None}[judged.suspect]
        return {
            "pair": [target, replayer],
            "third": self.standby,
            "suspect": suspect,
            "kind": judged.kind,
        }

    def _words(self) -> list[list[int]]:
        """Give each replica's two digests."""
        mine = digests(self.guard.work.module, self.guard.optimizer)
        device = next(self.guard.work.module.parameters()).device
        table: list[list[int]] = gather(torch.tensor(mine, device=device), self.group).tolist()
        return table

    def _command(self, command: int, step: int = 0, option: int = 0) -> None:
        if self.leading:
            send([command, step, option], self.standby, self.link)


def _hex(word: int) -> str:
    return format(word & MASK, "016x")
