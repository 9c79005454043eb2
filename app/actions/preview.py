"""What would this action do to the cluster as it stands now, and what is not known?

Read live at every look: the node and its pods, the machine at its provider, what is free. A
cluster or a provider that does not answer is said plainly and never fails the page.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from app.actions import fleets, rails, undo, ways
from app.actions.previewing import about_node
from app.actions.previewing import losses as losing
from app.actions.previewing import spare as sparing
from app.actions.previewing.about_platform import Platform, about_platform
from app.actions.previewing.confirming import Confirmation, confirmation
from app.actions.previewing.happening import Held, will_happen
from app.actions.previewing.live import Alarmed, Live, read_live
from app.actions.previewing.losses import Checkpoints, Kept
from app.actions.previewing.machine_now import MachineNow, read_machine
from app.actions.previewing.parts import Check, Loss
from app.actions.previewing.resuming import Going, going_on
from app.actions.previewing.seen import Seen, seen_of
from app.actions.previewing.slices import with_slice
from app.actions.previewing.spare import Spare
from app.context import Context
from app.store import (
    case_reading,
    docket_reading,
    held_nodes,
    node_checkpoints,
    rail_policy,
)
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from app.store.writer import QueueFull

__all__ = ["Preview", "of_uncordon", "preview"]

FOR_ROOM = frozenset({"cordon", "replace", "reboot", "deep_health_check"})


@dataclass(frozen=True, slots=True)
class Preview:
    """Everything that a person sees before the click.

    `checks` are about the node, `platform` about what owns it, `room` about capacity and limits;
    `refusal` says why there is no button to approve, None: there is one.
    """

    proposal: Proposal
    live: Live
    machine: MachineNow
    checks: tuple[Check, ...]
    platform: Platform
    room: tuple[Check, ...]
    happens: tuple[str, ...]
    losses: tuple[Loss, ...]
    going: Going | None
    spare: Spare | None
    confirmation: Confirmation
    seen: Seen
    refusal: str | None
    policy: str | None = None
    local: tuple[Checkpoints, ...] = ()  # states that lie, or may lie, on the node itself

    @property
    def node_uid(self) -> str:
        """Give the uid that an approval is bound to; empty where none was read."""
        return (self.live.state.uid or "") if self.live.state else ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database says beside what is read live."""

    case: DocketCase | None
    kept: Kept
    going: Going | None
    held: int
    fleet_hours: float


def preview(context: Context, proposal: Proposal) -> Preview:
    """Read the node of a proposal and judge what stands in the way."""
    with context.store.reading() as connection:
        known = _known(connection, proposal)
    live, machine = _read(context, proposal, known)
    proposal = ways.as_needed(proposal, live.state)
    live, part = with_slice(context, proposal, live, _alarmed(known))
    platform = about_platform(live, machine, proposal)
    spare = _spare(context, proposal, live)
    if proposal.destroys:
        # The approval asks for the same; a cluster that nobody has read yet would have no button.
        with suppress(QueueFull):  # a look never fails for want of a place to write
            fleets.make_sure(context, proposal.cluster, timedelta(hours=known.fleet_hours))
    with context.store.reading() as connection:
        rail = rails.in_the_way(connection, proposal, context.now())
        limits = _limits(context, connection, proposal)
    checks = [*about_node.about_node(live, proposal), *about_node.about_cordon(live, proposal)]
    checks += [part.check] if part else []
    room = [*([spare.check] if spare else []), *sparing.of_group(machine, live), *limits.checks]
    reasons = (about_node.refusal(live, proposal), rail.message if rail else None)
    return Preview(
        proposal=proposal,
        live=live,
        machine=machine,
        checks=tuple(checks),
        platform=platform,
        room=tuple(room),
        happens=will_happen(proposal, live, platform, Held(known.held)),
        losses=losing.losses(proposal, live, known.kept),
        going=known.going,
        spare=spare,
        confirmation=confirmation(proposal, live),
        seen=seen_of(live, machine, platform),
        refusal=" ".join(_ended(one) for one in reasons if one) or None,
        policy=limits.policy,
        local=losing.local_checkpoints(known.kept.jobs or ()),
    )


@dataclass(frozen=True, slots=True)
class _Limits:
    checks: tuple[Check, ...] = ()
    policy: str | None = None


def _limits(context: Context, connection: Connection, proposal: Proposal) -> _Limits:
    """Say how the brake stands and what is left of each limit."""
    if rails.undoes(proposal):
        return _Limits()
    braked = rails.brake(connection, proposal)
    found = [Check("x", braked.message) if braked else Check("t", "The brake is off")]
    budget = rails.budget(connection, proposal, context.now())
    found += [Check("t" if one.left else "x", _used(one.words)) for one in budget.caps]
    found += [Check("u", one) for one in budget.unknown]
    return _Limits(tuple(found), budget.policy)


def _used(words: str) -> str:
    return f"Limit: {words}"


def _read(context: Context, proposal: Proposal, known: _Known) -> tuple[Live, MachineNow]:
    """Ask cluster and provider at the same time: neither waits for the other's time-out."""
    alarmed = _alarmed(known)
    if proposal.action == "uncordon":
        return read_live(context, proposal, alarmed), MachineNow(False, "not asked")
    with ThreadPoolExecutor(1, thread_name_prefix="preview") as pool:
        machine = pool.submit(read_machine, context, proposal)
        live = read_live(context, proposal, alarmed)
        return live, machine.result()


def _alarmed(known: _Known) -> Alarmed | None:
    case = known.case
    return Alarmed(case.job, case.namespace) if case else None


def _spare(context: Context, proposal: Proposal, live: Live) -> Spare | None:
    if proposal.action not in FOR_ROOM or live.dry_run or live.gone:
        return None
    return sparing.spare(context, proposal, live)


def _known(connection: Connection, proposal: Proposal) -> _Known:
    case = docket_reading.one(connection, proposal.case_id)
    jobs = None
    if proposal.node_id is not None:
        jobs = node_checkpoints.jobs_on_node(connection, proposal.node_id)
    replays = case_reading.replays_of(connection, case.gpu_id if case else None)
    alarm_id = case.last_alarm_id if case else 0
    step = case.step if case else 0
    kept = Kept(
        jobs=jobs,
        telemetry=node_checkpoints.telemetry_left(connection, alarm_id),
        replayed=any(one.step == step for one in replays),
        gpu_known=case is not None and case.gpu_id is not None,
        step=step,
    )
    return _Known(
        case=case,
        kept=kept,
        going=going_on(connection, case) if case else None,
        held=held_nodes.count(connection),
        fleet_hours=rail_policy.read(connection).fleet_hours,
    )


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def of_uncordon(context: Context, cordon: Proposal) -> Preview:
    """Look at a node whose cordon is to be lifted."""
    uncordon = replace(cordon, action="uncordon")
    with context.store.reading() as connection:
        known = _known(connection, uncordon)
        other = undo.being_called(connection, cordon)
    live, machine = _read(context, uncordon, known)
    platform = about_platform(live, machine, uncordon)
    checks = [*about_node.about_node(live, cordon), *about_node.about_lifting(live)]
    refusal = None
    if other is not None:
        refusal = f"{rails.title(other)} is being carried out at this moment: seconds, as a rule."
    return Preview(
        proposal=cordon,
        live=live,
        machine=machine,
        checks=tuple(checks),
        platform=platform,
        room=(),
        happens=will_happen(uncordon, live, platform, Held(known.held)),
        losses=(),
        going=None,
        spare=None,
        confirmation=Confirmation(),
        seen=seen_of(live, machine, platform),
        refusal=refusal or about_node.refusal(live, cordon),
    )
