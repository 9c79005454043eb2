"""Is each approved action carried out by one worker only, however many there are?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from app.actions.decide import Choice, Decider, decide
from app.actions.executor import Executor
from app.main import make_context
from app.store import ids
from tests.actions.fleet import alarm, envelope, node
from tests.actions.service import Service, until
from tests.doubles.kubernetes.double import KubernetesDouble

ACTIONS = 12


def test_two_workers_share_what_was_approved(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster)
    for number in range(ACTIONS):
        cluster.put("nodes", node(f"node-{number}"))
        ranks = [
            {
                "rank": rank,
                "node": f"node-{number}" if rank // 8 == 1 else f"other-{number}-{rank // 8}",
                "gpu_uuid": f"GPU-{number:08x}-1111-4222-8333-{rank:012d}",
            }
            for rank in range(32)
        ]
        job = f"job-{number}"
        placed = envelope("rank_map", job, "2026-03-02T10:00:00Z", world_size=32, ranks=ranks)
        service.post(placed, alarm(job))
    # A second process is a second connection to the same database and a second executor.
    second = make_context(service.context.settings)
    helper = Executor(second)
    helper.start()
    try:
        alice = Decider("alice", "operator")
        for one in service.proposals(status="proposed"):
            choice = Choice("approved", one["evidence_version"])
            decide(service.context, ids.read(one["id"]), alice, choice)
            service.app.state.executor.wake()
            helper.wake()
        until(
            lambda: all(one["status"] == "verified" for one in service.proposals()),
            "every action is done",
            60,
        )
    finally:
        helper.stop()
        second.clusters.close()  # type: ignore[attr-defined]
        second.store.close()
    sent = Counter(call.path for call in cluster.changes("PATCH"))
    assert sent == {f"/api/v1/nodes/node-{number}": 1 for number in range(ACTIONS)}
