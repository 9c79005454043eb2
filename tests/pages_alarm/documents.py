"""Which documents do the tests of the alarm page post?"""

from __future__ import annotations

from typing import Any

DAY = "2026-11-02"
WINDOW: dict[str, Any] = {
    "suspect_window": [21, 30],
    "last_audit_pass": 20,
    "last_weight_check_pass": 20,
}


def envelope(
    job: str = "train", attempt: int | None = 1, clock: str = "14:00:00"
) -> dict[str, Any]:
    """Give what every document carries."""
    said: dict[str, Any] = {
        "cluster": "alpine",
        "namespace": "research",
        "job": job,
        "time": f"{DAY}T{clock}Z",
    }
    return said if attempt is None else {**said, "attempt": attempt}


def node(rank: int, shift: int = 0) -> str:
    """Name the node of a rank, 8 ranks a node."""
    return f"hyperpod-i-{rank // 8 + shift:017x}"


def gpu(rank: int, shift: int = 0) -> str:
    """Name the GPU of a rank."""
    return f"GPU-{rank // 8 + shift:08x}-1111-4222-8333-{rank % 8:012x}"


def rank_map(world: int = 32, shift: int = 0, **about: Any) -> dict[str, Any]:
    """Place `world` ranks, 8 a node, beginning at node `shift`."""
    rows = [
        {
            "rank": rank,
            "node": node(rank, shift),
            "instance_id": node(rank, shift).removeprefix("hyperpod-"),
            "gpu_uuid": gpu(rank, shift),
            "local_rank": rank % 8,
            "pod": f"train-worker-{rank // 8}",
        }
        for rank in range(world)
    ]
    more = {"world_size": world, "gpus_per_node": 8, "peer_offset": 8}
    return {**envelope(**about), **more, "ranks": rows}


def passes(check: str, first: int, last: int, count: int, **about: Any) -> dict[str, Any]:
    """Report passes of one check."""
    told = {"check": check, "first_step": first, "last_step": last, "count": count, "gpus": 32}
    return {**envelope(**about), **told, "step_time_s": 0.25}


def checkpoints(*steps: int, tagged: bool = True, **about: Any) -> dict[str, Any]:
    """Report complete checkpoints."""
    saved = [
        {
            "step": step,
            "uri": f"s3://states/{step}",
            "saved_at": f"{DAY}T14:00:05Z",
            "committed": True,
            "tags": {"last_audit_pass": step, "last_weight_check_pass": step} if tagged else None,
        }
        for step in steps
    ]
    return {**envelope(**about), "checkpoints": saved}


def alarm(said: dict[str, Any], reporter: int = 0, **about: Any) -> dict[str, Any]:
    """Wrap what a job alarms about."""
    about.setdefault("clock", "14:00:12")
    return {**envelope(**about), "reporter_rank": reporter, "alarm": said}


def compute(**more: Any) -> dict[str, Any]:
    """Say that a ring audit at step 30 went wrong."""
    said = {"check": "compute", "step": 30, "nonfinite": [], "culprits": [], "verdicts": []}
    return {**said, "mismatched_pairs": [], **WINDOW, **more}


CULPRIT = compute(mismatched_pairs=[[13, 5], [21, 13]], culprits=[13])


def verdict(kind: str, suspect: int | None) -> dict[str, Any]:
    """Say that rank 5 replayed rank 13 and differed, and what rank 21 made of it."""
    held = {"pair": [13, 5], "third": 21, "suspect": suspect, "kind": kind}
    return compute(mismatched_pairs=[[13, 5]], verdicts=[held])


def weights(**more: Any) -> dict[str, Any]:
    """Say that the weight check at step 30 went wrong."""
    return {"check": "weights", "step": 30, **WINDOW, **more}
