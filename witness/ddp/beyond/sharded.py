"""Is an optimizer state that no other rank holds kept and updated right, and if not, by whom?

Where each rank updates its own share of the parameters (ZeRO-1), no replica exists to compare with.
Two checks take its place. A fingerprint of the state after each write must equal the one before the
next read. And on every `every`-th step two ranks on other nodes compute the update of one of the
owner's parameters again; the parameters take turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.beyond.at_rest import StateAtRest
from witness.ddp.beyond.document import Alarm, document, window_of_turn
from witness.ddp.beyond.replayed_update import (
    Before,
    digest_after,
    layout_of,
    pack,
    packed_bytes,
    replay_update,
    unpack,
)
from witness.ddp.collectives import any_rank, gather, global_rank
from witness.rules.majority import suspects_by_majority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import nn

Place = tuple[int, int]
"""An owned parameter: its row among all parameters, and its group in the optimizer."""
ROLES = ("owner", "neighbour", "third")


class ShardedState:
    """Watches optimizer state that is sharded over the ranks of a group.

    Every rank must build it alike, call `before(step)` between backward and the update and
    `after()` behind it. `params` are all parameters in one order, `optimizer` what the job steps
    and `local` the torch optimizer inside it that holds this rank's share (for
    `ZeroRedundancyOptimizer` found by itself). Parameters and reduced gradients must be equal on
    all ranks, as under DDP. `peer_offset` is the number of ranks a node; ValueError where the group
    spans fewer than three nodes. `every` 0 leaves the replays out, `parts` 0 the fingerprints.

    Proven: the state that an update read is what the last one wrote, and the parameter looked at
    was updated as two other ranks update it. Not proven: the updates of the other parameters on
    that step, and a state that was wrong already when the watch began.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        params: Sequence[nn.Parameter],
        *,
        peer_offset: int,
        local: torch.optim.Optimizer | None = None,
        every: int = 10,
        parts: int = 1,
        start_step: int = 0,
        group: dist.ProcessGroup | None = None,
        passes: Callable[[], Mapping[str, int | None]] | None = None,
    ) -> None:
        inside: Any = getattr(optimizer, "optim", optimizer)
        self.local: torch.optim.Optimizer = inside if local is None else local
        self.group, self.passes, self.start_step = group, passes, start_step
        self.size, self.me = dist.get_world_size(group), dist.get_rank(group)
        if not peer_offset % self.size or not 2 * peer_offset % self.size:
            raise ValueError(f"{self.size} ranks, {peer_offset} a node, are not three nodes")
        self.params, self.offset, self.every, self.step = params, peer_offset, every, start_step
        self.owned = self._owned_by_rank()
        self.rest = StateAtRest(self.local, parts) if parts else None
        self._written_at = start_step
        self._due: list[tuple[Place, Before] | None] = []
        self._answers: Tensor | None = None
        self.local.register_step_pre_hook(self._before_update)
        self.local.register_step_post_hook(self._after_update)
        for one in {id(optimizer): optimizer, id(self.local): self.local}.values():
            one.register_load_state_dict_post_hook(lambda _: self.loaded())

    def before(self, step: int) -> Alarm | None:
        """Compare the state with what the last update wrote; an alarm comes before it is read.

        One flag agreed by all ranks, with one wait for the device.
        """
        self.step, self._answers = step, None
        if self.rest is None:
            return None
        changed = self.rest.changed().to(self.params[0].device)
        if not any_rank(changed, self.group).item():
            return None
        table = gather(changed.long().reshape(1), self.group).flatten().tolist()
        named = [global_rank(rank, self.group) for rank, flag in enumerate(table) if flag]
        return self._alarm("sharded state", (self._written_at, step), named, applied=False)

    def after(self) -> Alarm | None:
        """Compare the replayed updates; None where all agree, none was due or none took place."""
        answers, self._answers = self._answers, None
        if answers is None:
            return None
        table = gather(answers, self.group).tolist()
        found = [self._judge(table, owner) for owner in range(self.size) if self.owned[owner]]
        wrong = [one for one in found if one is not None]
        if not wrong:
            return None
        turns = max(len(places) for places in self.owned) * self.every
        window = window_of_turn(self.step, self.start_step, turns)
        named = [one["suspect"] for one in wrong if one["suspect"] is not None]
        return self._alarm("sharded update", window, named, applied=True, updates=wrong)

    def loaded(self) -> None:
        """Forget the last write: the state was replaced, as by a checkpoint. Loading calls it."""
        if self.rest is not None:
            self.rest.forget()

    def replay(self, role: int, place: Place, before: Before) -> Tensor:
        """Compute an update again; a drill overrides this method to compute wrongly."""
        return replay_update(self.local, self.local.param_groups[place[1]], before)

    def _owned_by_rank(self) -> list[list[Place]]:
        """Learn from every rank which parameters it updates."""
        rows = {id(param): row for row, param in enumerate(self.params)}
        mine = [
            (rows[id(param)], number)
            for number, group in enumerate(self.local.param_groups)
            for param in group["params"]
        ]
        told: list[Any] = [None] * self.size
        dist.all_gather_object(told, (mine, len(self.local.param_groups)), group=self.group)
        if len({groups for _, groups in told}) > 1:
            raise ValueError("the ranks' optimizers differ in their number of parameter groups")
        return [places for places, _ in told]

    def _chosen(self, owner: int) -> Place | None:
        """Give the parameter of an owner whose turn it is."""
        places = self.owned[owner % self.size]
        return places[self.step // self.every % len(places)] if places else None

    def _before_update(self, *_: Any) -> None:
        if not self.every or self.step % self.every:
            return
        states = self._exchange_states()
        self._due = []
        for role, state in enumerate(states):
            place = self._chosen(self.me - role * self.offset)
            if place is None:
                self._due.append(None)
                continue
            param = self.params[place[0]]
            grad = None if param.grad is None else param.grad.detach().clone()
            self._due.append((place, Before(param.detach().clone(), grad, state)))

    def _exchange_states(self) -> list[dict[str, Any]]:
        """Send the state whose turn it is to two ranks; give one's own and those of two others."""
        mine = self._chosen(self.me)
        own = self.local.state.get(self.params[mine[0]], {}) if mine else {}
        layouts: list[Any] = [None] * self.size
        dist.all_gather_object(layouts, layout_of(own), group=self.group)
        device = self.params[0].device
        packed = pack(own, device)
        sources = [(self.me - turn * self.offset) % self.size for turn in (1, 2)]
        came = [packed.new_empty(packed_bytes(layouts[source])) for source in sources]
        work = []
        for turn, source, into in zip((1, 2), sources, came, strict=True):
            target = (self.me + turn * self.offset) % self.size
            if packed.numel():
                work.append(self._message(dist.isend, packed, target))
            if into.numel():
                work.append(self._message(dist.irecv, into, source))
        for one in dist.batch_isend_irecv(work) if work else []:
            one.wait()
        others = [unpack(one, layouts[source]) for one, source in zip(came, sources, strict=True)]
        return [unpack(packed, layouts[self.me]), *others]

    def _message(self, how: Any, tensor: Tensor, position: int) -> dist.P2POp:
        return dist.P2POp(how, tensor, global_rank(position, self.group), self.group)

    @torch.no_grad()
    def _after_update(self, *_: Any) -> None:
        due, self._due = self._due, []
        if due:
            words = torch.zeros(len(ROLES), 2, dtype=torch.int64, device=self.params[0].device)
            for role, one in enumerate(due):
                if one is not None:
                    words[role, 0] = one[1].digest()
                    words[role, 1] = self._outcome(role, *one)
            self._answers = words
        if self.rest is not None:
            self.rest.written(self.step)
            self._written_at = self.step

    def _outcome(self, role: int, place: Place, before: Before) -> Tensor:
        if role:
            return self.replay(role, place, before)
        param = self.params[place[0]]
        return digest_after(param, self.local.state.get(param, {}))

    def _judge(self, table: list[Any], owner: int) -> dict[str, Any] | None:
        """Judge one owner's update by what its three ranks read and wrote."""
        holders = [(owner + role * self.offset) % self.size for role in range(len(ROLES))]
        rows = {
            global_rank(holder, self.group): table[holder][role]
            for role, holder in enumerate(holders)
        }
        place = self._chosen(owner)
        judged = judge_update(
            list(rows), [row[0] for row in rows.values()], [row[1] for row in rows.values()]
        )
        if judged is None or place is None:
            return None
        return {**judged, "parameter": place[0], **dict(zip(ROLES, rows, strict=True))}

    def _alarm(
        self, check: str, window: tuple[int, int], named: list[int], *, applied: bool, **more: Any
    ) -> Alarm:
        return document(
            check,
            self.step,
            window,
            named,
            passes=self.passes() if self.passes else None,
            update_applied=applied,
            world_size=self.size,
            peer_offset=self.offset,
            **more,
        )


def judge_update(
    ranks: Sequence[int], read: Sequence[int], wrote: Sequence[int]
) -> dict[str, Any] | None:
    """Judge an update by owner, neighbour and third rank, in this order; None where all agree.

    `read` and `wrote` are digests of what each took and made of it. Kind `update`: they read the
    same, and `suspect` made something else of it than the two others. Kind `input`: they did not
    read the same; `suspect` is the owner where the two others agree against it, else None: a copy
    that one of these has otherwise may have changed on its way.
    """
    kind, answers = ("update", wrote) if len(set(read)) == 1 else ("input", read)
    if len(set(answers)) == 1:
        return None
    odd = suspects_by_majority(dict(zip(ranks, answers, strict=True))).suspects
    suspect = odd[0] if odd else None
    if kind == "input" and suspect != ranks[0]:
        suspect = None
    return {"kind": kind, "suspect": suspect}
