"""Who of two is wrong, replicas or nodes, told by a third process that trains nothing?

Two replicas have no majority, and a ring over two nodes has no third node. This is the end of the
link to a standby at which the replicas are.
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
    from collections.abc import Sequence

    from witness.ddp.guard import Guard

MASK = 2**64 - 1

_log = logging.getLogger(__name__)


class Replicas:
    """The replicas of a job with a standby; all must build it alike and make the same calls.

    The guard's own alarms are settled by themselves, before they are told. `passed(step)` follows
    every step that went well, `close()` ends the standby. Costs on every step: a fingerprint of the
    reduced gradients on all replicas, and one copy of these gradients sent to the standby over
    gloo. At a weight check: fingerprints of weights and optimizer state, and a copy of both only
    where the standby differs.

    Proven where a replica is named: another GPU, given the gradients and the data that all replicas
    say they had, came to the bits of the other side. Not proven: anything where the replicas agree.
    Where they do not agree on what the standby was given, nobody is named.

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
        if _agree(words):
            self._sync(words)

    def passed(self, step: int) -> Alarm | None:
        """Have the standby compare itself after a step whose weights were compared and agree.

        Does nothing on other steps. Gives an alarm of check `optimizer state` where the weights
        agree and the optimizers' states do not: that would part the replicas at the next update.
        """
        if not self.guard.schedule.is_check(step):
            return None
        words = self._words()
        if _agree(words):
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
        `compute` in a ring over two nodes, which may name both of a pair, it sets a verdict a pair,
        or `suspects` where the replicas computed from different weights. In all these it adds
        `standby`. Other alarms come back as they are.
        """
        if alarm["check"] == "weights" and alarm.get("suspects") is None:
            return self._side_with(alarm, self._words(), WEIGHTS)
        two_nodes = 2 * alarm.get("peer_offset", 1) % len(self.ranks) == 0
        if alarm["check"] == "compute" and alarm.get("mismatched_pairs") and two_nodes:
            words = self._words()
            if not _agree([row[:STATE] for row in words]):
                return {**self._side_with(alarm, words, WEIGHTS), "culprits": [], "verdicts": []}
            return self._replayed(alarm)
        return alarm

    def close(self) -> None:
        """Let the standby go; both replicas may call it, after the last step or the alarm."""
        self._command(STOP)

    def _follow(self, *_: Any) -> None:
        """Let the standby take part in the update that is about to happen.

        A scaler calls a fused optimizer also for a step that this one then skips by itself.
        """
        optimizer, params = self.guard.optimizer, self.guard.gradients.params
        skipped = getattr(optimizer, "found_inf", None)
        if skipped is not None and bool(skipped.item()):
            return
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
            "suspects": wrong if sound and 0 < len(wrong) < len(own) else None,
            "digests": {str(rank): {"own": _hex(word)} for rank, word in answers.items()},
            "standby": {"rank": self.standby, "sound": bool(sound)},
        }

    def _replayed(self, alarm: Alarm) -> Alarm:
        step, with_grads = alarm["step"], alarm.get("kernel_mode") == "deterministic"
        work, me = self.guard.work, dist.get_rank()
        targets = sorted({target for target, _ in alarm["mismatched_pairs"]})
        mine = torch.zeros((), dtype=torch.int64, device=work.params[0].device)
        if me in targets:
            with deterministic() if with_grads else nullcontext():
                mine = fold(replay(work, step, me, with_grads))
        second = gather(mine.reshape(1), self.group).flatten().tolist()
        again = dict(zip(self.ranks, second, strict=True))
        self._command(REPLAY, step, int(with_grads), targets)
        if me in targets:
            begun = {
                "buffers": [None if one is None else one.cpu() for one in work.buffers.values()],
                "scale": None if work.scale is None else work.scale(torch.ones(())).cpu(),
            }
            send_state(begun, self.standby, self.link)
        sound, *answers = receive(1 + len(targets), self.standby, self.link)
        thirds = dict(zip(targets, answers, strict=True)) if sound else {}
        return {
            **alarm,
            # Two mismatched pairs of the same two ranks name both: the verdicts say more.
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

    def _command(
        self, command: int, step: int = 0, option: int = 0, targets: Sequence[int] = ()
    ) -> None:
        if self.leading:
            send([command, step, option, len(targets)], self.standby, self.link)
            if targets:
                send(targets, self.standby, self.link)


def _agree(words: list[list[int]]) -> bool:
    """Tell whether all replicas say the same."""
    return all(row == words[0] for row in words)


def _hex(word: int) -> str:
    return format(word & MASK, "016x")
