"""Which documents does the bench post?

Alarms of 2 KB as a training job writes them: a ring's mismatched pairs, one culprit, the history of
the loss beside.  Sixty-four jobs of 256 ranks on 256 machines; a fault stays on its GPU, so that
most alarms join an incident that is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

CLUSTER, NAMESPACE = "bench", "research"
JOBS, RANKS, PER_NODE = 64, 256, 8
FLEET_NODES = 256
SIZE = 2_000


def rank_map(job: int) -> dict[str, Any]:
    """Place a job's ranks: eight jobs follow each other on the same nodes."""
    first = (job * RANKS // PER_NODE) % FLEET_NODES
    return {
        **_head(job),
        "time": "2026-11-02T10:00:00Z",
        "world_size": RANKS,
        "gpus_per_node": PER_NODE,
        "ranks": [place(rank, first) for rank in range(RANKS)],
    }


def place(rank: int, first_node: int = 0) -> dict[str, Any]:
    """Give the row of one rank."""
    node = first_node + rank // PER_NODE
    return {
        "rank": rank,
        "node": f"hyperpod-i-{node:017x}",
        "instance_id": f"i-{node:017x}",
        "gpu_uuid": f"GPU-{node:08x}-0000-4000-8000-{rank % PER_NODE:012x}",
        "local_rank": rank % PER_NODE,
    }


def alarm(number: int) -> dict[str, Any]:
    """Give the alarm of a number: each is another alarm."""
    job, turn = number % JOBS, number // JOBS
    step = 100 + 10 * turn
    rank = PER_NODE + (job * 7 + turn % 8 * 8) % (RANKS - 2 * PER_NODE)
    return {
        **_head(job),
        "kind": "alarm",
        "time": f"2026-11-02T{10 + turn // 3600 % 12:02}:{turn // 60 % 60:02}:{turn % 60:02}Z",
        "reporter_rank": rank % PER_NODE,
        "code_digest": f"sha256:{job:064x}",
        "alarm": {
            "step": step,
            "check": "compute",
            "nonfinite": [],
            "mismatched_pairs": [[rank, rank - PER_NODE], [rank + PER_NODE, rank]],
            "culprits": [rank],
            "verdicts": [],
            "suspect_window": [step - 9, step],
            "last_audit_pass": step - 10,
            "last_weight_check_pass": step - 10,
            "kernel_mode": "deterministic",
        },
    }


def _head(job: int) -> dict[str, Any]:
    return {"cluster": CLUSTER, "namespace": NAMESPACE, "job": f"llm-70b-{job:03}", "attempt": 1}


def alarm_bodies(first: int, count: int) -> Iterator[bytes]:
    """Write alarms, each filled up to 2 KB with the loss history that jobs send along."""
    for number in range(first, first + count):
        document = alarm(number)
        bare = len(json.dumps(document))
        history = [round(2.0 + (number * 31 + k) % 997 / 997, 4) for k in range(400)]
        text = json.dumps(history)
        document["history"] = json.loads(text[: SIZE - bare - 14].rsplit(",", 1)[0] + "]")
        yield json.dumps(document).encode()


def big_map(ranks: int) -> bytes:
    """Write the rank map of one large job."""
    rows = [place(rank) for rank in range(ranks)]
    named = {"cluster": CLUSTER, "namespace": NAMESPACE, "job": f"large-{ranks}", "attempt": 1}
    return json.dumps({**named, "time": "2026-11-02T10:00:00Z", "ranks": rows}).encode()
