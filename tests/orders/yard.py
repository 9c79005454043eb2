"""Where do the tests' orders go: a HyperPod cluster, its Kubernetes, one clock over both?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.actions import execute, looking
from app.cluster import registry as cluster_registry
from app.cluster.provider import registry as provider_registry
from app.config import Settings
from app.context import Context
from app.store import audit_reading, evidence, ids, node_places, proposals, rail_policy
from app.store.connection import Connection
from app.store.proposals import Proposal
from app.store.store import Store
from app.store.tables import cases, nodes
from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker import SagemakerDouble
from witness.rules.decision_table import TABLE_VERSION
from witness.rules.rail_policy import RailPolicy

CLUSTER = "alpine"
LIMITS = {"connect_timeout_s": 1.0, "read_timeout_s": 2.0}


def instance(number: int) -> str:
    """Name a machine."""
    return f"i-{0xC0FFEE00000000000 + number:017x}"


@dataclass
class Yard:
    """The outside world and the service's side of it, without a web server."""

    context: Context
    sagemaker: SagemakerDouble
    kubernetes: KubernetesDouble

    def approve(self, action: str, number: int, **parameters: Any) -> Proposal:
        """Write an action on a machine down as approved, as if it had been decided just now."""
        now, machine = self.context.now(), instance(number)
        node = self.sagemaker.cluster.nodes.get(machine)
        name = f"hyperpod-{machine}"
        row_id = ids.derive("proposal", "yard", action, number, now.isoformat())
        values = {
            "id": row_id, "case_id": 1, "action": action, "ordinal": row_id % 2**31,
            "cluster": CLUSTER, "node_id": number, "node_name": name, "instance_id": machine,
            "status": "approved", "table_version": str(TABLE_VERSION),
            "why": "a test", "recommended_by": "R1", "created_at": now, "decided_by": "alice",
            "decided_at": now, "parameters": parameters,
            "lineage": {"logical_id": node.logical_id, "group": node.group} if node else {},
        }  # fmt: skip

        def write(connection: Connection) -> None:
            # What destroys asks how large the cluster is, and how lately that was read.
            node_places.keep(connection, CLUSTER, "kubernetes", self._places(), now)
            # The result of an earlier test of the same case is news that a decider has seen.
            seen = evidence.version(connection, 1)
            proposals.add(connection, {**values, "evidence_version": seen})

        self.context.store.write(write)
        return self.row(row_id)

    def _places(self) -> list[node_places.Place]:
        return [
            node_places.Place(
                CLUSTER, f"hyperpod-{one}", one, True, None, "gpu", None, None, None, None
            )
            for one in self.sagemaker.cluster.nodes
        ]

    def row(self, row_id: int) -> Proposal:
        """Read a proposal."""
        with self.context.store.reading() as connection:
            found = proposals.get(connection, row_id)
        assert found is not None
        return found

    def run(self, proposal: Proposal, worker: str = "worker") -> Proposal:
        """Carry an approved action out."""
        assert execute.run_one(self.context, proposal.id, worker)
        return self.row(proposal.id)

    def pass_time(self, minutes: float, step: float = 5.0) -> None:
        """Let time pass in small steps, and look for what is due at each."""
        left = minutes
        while left > 0:
            self.sagemaker.advance(minutes=min(step, left))
            left -= step
            looking.look_due(self.context)

    def verbs(self, proposal: Proposal) -> list[str]:
        """List what the audit says of an action, in order."""
        with self.context.store.reading() as connection:
            found = audit_reading.page(connection, audit_reading.Filter(), before=None, limit=500)
        return [one.verb for one in reversed(found) if one.proposal_id == proposal.id]


def make_context(
    url: str, folder: Path, sagemaker: SagemakerDouble, kubernetes: KubernetesDouble
) -> Context:
    """Connect the service's side to both doubles, on the double's clock."""
    config = kubernetes.kubeconfig(folder / "config")
    return Context(
        Settings(database_url=url, data_dir=folder),
        Store.open(url, lambda connection, documents: []),
        cluster_registry.clusters({CLUSTER: {"kubeconfig": str(config), **LIMITS}}),
        now=sagemaker.clock.now,
        providers=provider_registry.providers({CLUSTER: sagemaker.entry(**LIMITS)}, folder=folder),
    )


def furnish(context: Context, numbers: Sequence[int]) -> None:
    """Write down a case and the nodes, and limits that stand in no test's way."""
    at: datetime = context.now() - timedelta(hours=1)

    def write(connection: Connection) -> None:
        case = {
            "id": 1, "subject": "gpu", "subject_id": 1, "ordinal": 1, "cluster": CLUSTER,
            "job_id": 1, "status": "open", "opened_at": at, "first_alarm_at": at,
            "last_alarm_at": at, "last_alarm_id": 1, "alarms": 1, "evidence_version": 1,
            "standing": "suspect", "headline": "x", "advice": "x", "urgency": 1,
        }  # fmt: skip
        connection.execute(sa.insert(cases).values(case))
        for number in numbers:
            name = f"hyperpod-{instance(number)}"
            row = {"id": number, "cluster": CLUSTER, "name": name, "instance_id": instance(number)}
            connection.execute(sa.insert(nodes).values(**row, first_seen_at=at, last_seen_at=at))
        wide = RailPolicy(
            version=1, max_nodes=10_000, max_share=1, max_destroyed_share=1, max_per_group=10_000,
            max_per_zone=10_000, max_per_domain=10_000, max_per_hour=10_000, max_per_day=10_000,
            cooldown_minutes=0, attempts=100,
        )  # fmt: skip
        rail_policy.keep(connection, wide, by="test", at=at)

    context.store.write(write)
