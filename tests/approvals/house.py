"""Which service without a web server, clock and fleet do the tests of approvals share?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.actions.decide import Choice, Decider, decide
from app.config import Settings
from app.context import Context
from app.store import audit_reading, evidence, held_nodes, ids, node_places, proposals, rail_policy
from app.store.connection import Connection
from app.store.node_places import Place
from app.store.proposals import Proposal
from app.store.store import Store
from app.store.tables import proposals as table
from ingest.apply import apply_posts
from ingest.parse import Arrival, read_post
from tests.actions.fleet import envelope
from witness.rules import rail_policy as limits

CLUSTER = "alpine"
START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
GPUS = 8
ALICE = Decider("alice", "operator")
ANN = Decider("ann", "approver")
ADMIN = Decider("root", "admin")


def node_name(number: int) -> str:
    """Name a node; they count from 0."""
    return f"hyperpod-i-{0xC0FFEE00000000000 + number:017x}"


def placed(nodes: int, job: str = "llama", at: datetime = START, **more: Any) -> dict[str, Any]:
    """Place a job of eight ranks a node."""
    ranks = [
        {
            "rank": rank,
            "node": node_name(rank // GPUS),
            "instance_id": node_name(rank // GPUS).removeprefix("hyperpod-"),
            "gpu_uuid": f"GPU-{rank // GPUS:08x}-1111-4222-8333-{rank % GPUS:012d}",
        }
        for rank in range(nodes * GPUS)
    ]
    return envelope(
        "rank_map", job, at.isoformat(), world_size=nodes * GPUS, ranks=ranks, **more
    )  # fmt: skip


def named(
    numbers: Sequence[int], step: int, job: str = "llama", at: datetime = START, **more: Any
) -> dict[str, Any]:
    """Raise a weights alarm that names one rank on each of some nodes."""
    said = {
        "step": step,
        "check": "weights",
        "suspects": [number * GPUS + 5 for number in numbers],
        "suspect_window": [step - 9, step],
        "last_audit_pass": step - 10,
        "last_weight_check_pass": step - 10,
    }
    return envelope("alarm", job, at.isoformat(), reporter_rank=0, alarm=said, **more)


class House:
    """The service's side of deciding: store, clock, settings."""

    def __init__(self, url: str, folder: Path, nodes: int = 40, **settings: Any) -> None:
        self.time = START
        self.nodes = nodes
        self.settings = Settings(database_url=url, data_dir=folder, **settings)
        self.context = self.another()
        self.post(placed(nodes))

    def another(self) -> Context:
        """Open the same database as another process does."""
        url = self.settings.resolved_database_url()
        return Context(self.settings, Store.open(url, partial(apply_posts)), now=lambda: self.time)

    def wait(self, **time: float) -> None:
        """Let time pass."""
        self.time += timedelta(**time)

    def post(self, *documents: dict[str, Any]) -> None:
        """Take documents in, as one group."""
        posts = [
            read_post(one["kind"], one, Arrival(self.time, None, json.dumps(one)))
            for one in documents
        ]
        self.context.store.writer.submit(posts).result()

    def suspect(self, *numbers: int, step: int = 30) -> None:
        """Name some nodes, each by an alarm of its own."""
        self.post(*(named([n], step + n, at=self.time) for n in numbers))

    def waiting(self, action: str = "cordon") -> dict[str, Proposal]:
        """Give what waits for a decision, by node."""
        with self.context.store.reading() as connection:
            rows = [proposals.get(connection, one) for one in self._ids(connection)]
        return {
            one.node_name or "": one
            for one in rows
            if one is not None and one.action == action and one.status == "proposed"
        }

    def _ids(self, connection: Connection) -> list[int]:
        return all_ids(connection)

    def row(self, proposal: Proposal) -> Proposal:
        """Read a proposal again."""
        with self.context.store.reading() as connection:
            found = proposals.get(connection, proposal.id)
        assert found is not None
        return found

    def add(self, like: Proposal, action: str, **values: Any) -> Proposal:
        """Write a further proposal for the node of another one."""

        def write(connection: Connection) -> int:
            ordinal = proposals.next_ordinal(connection, like.case_id, action)
            row_id = ids.derive("proposal", like.case_id, action, ordinal)
            names = ("case_id", "cluster", "node_id", "node_name", "instance_id", "gpu_uuid")
            row = {name: getattr(like, name) for name in (*names, "table_version", "why")}
            row |= {
                "id": row_id, "action": action, "ordinal": ordinal, "status": "proposed",
                "evidence_version": like.evidence_version, "recommended_by": "R1",
                "created_at": self.time, "expires_at": self.time + timedelta(days=7),
            }  # fmt: skip
            proposals.add(connection, {**row, **values})
            return row_id

        row_id = self.context.store.write(write)
        with self.context.store.reading() as connection:
            found = proposals.get(connection, row_id)
        assert found is not None
        return found

    def approve(self, proposal: Proposal, by: Decider = ANN, **choice: Any) -> Proposal:
        """Approve on what is known now."""
        seen = self.evidence_of(proposal)
        return decide(self.context, proposal.id, by, Choice("approved", seen, **choice))

    def evidence_of(self, proposal: Proposal) -> int:
        """Read the evidence version of a proposal's case."""
        with self.context.store.reading() as connection:
            return evidence.version(connection, proposal.case_id)

    def ends(self, proposal: Proposal, status: str, cordon: str | None = None) -> None:
        """Write down that a worker took it up, and how it ended."""

        def write(connection: Connection) -> None:
            values = {"status": status, "claimed_at": self.time, "finished_at": self.time}
            assert proposals.move(connection, proposal.id, ("approved",), values)
            if proposal.node_id is not None and cordon is not None:
                held_nodes.note(connection, proposal.node_id, None, cordon, self.time)

        self.context.store.write(write)

    def read_fleet(self, gpu_nodes: int | None = None, **places: dict[str, Any]) -> None:
        """Keep a reading of all nodes; `places` changes those named n0, n1 and so on."""
        found = []
        for number in range(gpu_nodes if gpu_nodes is not None else self.nodes):
            place: dict[str, Any] = {
                "cluster": CLUSTER, "name": node_name(number),
                "instance_id": node_name(number).removeprefix("hyperpod-"), "gpu": True,
                "protected": None, "instance_group": "gpu", "zone": f"zone{number % 2}",
                "network": f"nn-{number // 8}", "rack": None, "out": None,
            }  # fmt: skip
            found.append(Place(**{**place, **places.get(f"n{number}", {})}))
        self.context.store.write(
            lambda c: node_places.keep(c, CLUSTER, "kubernetes", found, self.time)
        )

    def limit(self, **values: Any) -> None:
        """Put limits in force."""

        def write(connection: Connection) -> None:
            before = rail_policy.read(connection)
            after = limits.checked({**before.values, **values}, before.version + 1)
            rail_policy.keep(connection, after, by="root", at=self.time)

        self.context.store.write(write)

    def verbs(self) -> list[str]:
        """List what the audit says, in order."""
        with self.context.store.reading() as connection:
            found = audit_reading.page(connection, audit_reading.Filter(), before=None, limit=900)
        return [one.verb for one in reversed(found)]


def all_ids(connection: Connection) -> list[int]:
    """List every proposal."""
    return [row.id for row in connection.execute(sa.select(table.c.id).order_by(table.c.id))]
