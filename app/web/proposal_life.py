"""What became of a proposal: its stages, what was seen and when, which machine came after which?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.actions import rails
from app.actions.previewing.happening import usual
from app.store import audit_reading, machine_gpus, machine_links, proposals
from app.store.audit import Entry
from app.store.audit_reading import Filter
from app.store.connection import Connection
from app.store.machine_gpus import SeenGpu
from app.store.machine_links import MachineLink
from app.store.proposals import Proposal
from app.web.next_step import WORD_OF_STATUS

ENTRIES = 200
HOW = {
    "logical_id": "the provider kept its logical id",
    "event": "an event of the provider names both",
    "same_name": "it carries the old host name",
    "only_new_one": "it is the only new machine of its group since",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the life; `at` None: not reached, or not written down when."""

    name: str
    standing: Literal["done", "now", "ahead", "ended"]
    at: datetime | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One thing that happened to a proposal."""

    at: datetime | None
    words: str


@dataclass(frozen=True, slots=True)
class After:
    """A machine in the place of another; `node_id` None: no rank map has named it yet."""

    link: MachineLink
    how: str
    node_id: int | None
    gpus: tuple[SeenGpu, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """Everything that is told of a proposal after its decision."""

    stages: tuple[Stage, ...]
    steps: tuple[LifeStep, ...]
    after: tuple[After, ...]
    usual: str | None
    stuck_since: datetime | None
    stamp: str


def read_life(connection: Connection, proposal: Proposal) -> Life:
    """Read what happened to a proposal."""
    entries = audit_reading.page(
        connection, Filter(proposal_id=proposal.id), before=None, limit=ENTRIES
    )
    links = machine_links.of_proposal(connection, proposal.id)
    after = tuple(_after(connection, one) for one in links)
    return Life(
        stages=_stages(proposal, entries),
        steps=_steps(proposal, entries),
        after=after,
        usual=usual(proposal),
        stuck_since=_moment(proposal.details.get("stuck_since")),
        stamp=_stamp(proposal, entries, after),
    )


def _after(connection: Connection, link: MachineLink) -> After:
    cluster, instance = link.cluster, link.new_instance_id
    return After(
        link,
        HOW.get(link.how, link.how),
        machine_gpus.node_of_instance(connection, cluster, instance),
        machine_gpus.of_instance(connection, cluster, instance),
    )


def _stamp(proposal: Proposal, entries: Sequence[Entry], after: Sequence[After]) -> str:
    """Name what the page shows, so that an unchanged one is not sent again."""
    newest = entries[0].id if entries else 0
    seen = sum(len(one.gpus) for one in after)
    return f"{proposal.status}.{proposal.looks}.{newest}.{len(after)}.{seen}"


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _stages(proposal: Proposal, entries: Sequence[Entry]) -> tuple[Stage, ...]:
    """Give the stages in their order; the last one is how it ended, or what is hoped for."""
    first_of = {one.verb.removeprefix("proposal."): one.at for one in entries}
    status = proposal.status
    found = [Stage("Proposed", "done", proposal.created_at, f"by {proposal.recommended_by}")]
    if proposal.decided_at is not None and status != "rejected":
        found.append(Stage("Approved", "done", proposal.decided_at, f"by {proposal.decided_by}"))
    if proposal.claimed_at is not None:
        found.append(Stage("Sent", "done", proposal.claimed_at, "once"))
    for name in ("accepted", "waiting"):
        if name in first_of and status != name:
            found.append(Stage(name.capitalize(), "done", first_of[name]))
    if status in proposals.ENDED:
        at = proposal.finished_at or proposal.decided_at
        found.append(Stage(status.capitalize(), "ended", at, WORD_OF_STATUS.get(status, "")))
        return tuple(found)
    if status == "proposed":
        found.append(Stage("Decision", "now"))
    elif status in ("accepted", "waiting"):
        found.append(Stage(status.capitalize(), "now", first_of.get(status)))
    elif found[-1].name in ("Approved", "Sent"):
        last = found.pop()
        found.append(Stage(last.name, "now", last.at, last.words))
    ahead = {
        "proposed": ("Approved", "Sent", "Verified"),
        "approved": ("Sent", "Verified"),
    }.get(status, ("Verified",))
    return (*found, *(Stage(name, "ahead") for name in ahead))


def _steps(proposal: Proposal, entries: Sequence[Entry]) -> tuple[LifeStep, ...]:
    by = proposal.recommended_by
    begun = LifeStep(proposal.created_at, f"Proposed by {by}: {proposal.why}")
    steps = [LifeStep(one.at, _said(proposal, one)) for one in reversed(entries)]
    if proposal.claimed_at is not None:
        steps.append(LifeStep(proposal.claimed_at, "Taken up by a worker of the service."))
    ordered = sorted(steps, key=lambda one: one.at or proposal.created_at)
    drift = [
        LifeStep(None, f"Found when the node was read later: {line}")
        for line in proposal.details.get("drift") or ()
    ]
    return (begun, *ordered, *drift)


def _said(proposal: Proposal, entry: Entry) -> str:
    """Leave out of an entry's sentence what the page's title says already."""
    begins = f"{rails.title(proposal)}, approved by {proposal.decided_by}: "
    if not entry.summary.startswith(begins):
        return entry.summary
    verb = entry.verb.removeprefix("proposal.").replace("_", " ").capitalize()
    return f"{verb}: {entry.summary.removeprefix(begins)}"
