"""How are passes summed up, and checkpoints, replays and elastic events kept?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.lookup import rows_of_keys
from app.store.intake.offender_rows import count_fleet
from app.store.intake.upsert import insert_new, merge
from app.store.tables import (
    attempts,
    checkpoints,
    coverage,
    coverage_hours,
    elastic_events,
    passes,
    replays,
)

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
# Only these compare devices; a finite gradient says nothing about a wrong finite number.
AUDITS = ("ring", "weights")


def write_passes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert beats of passes that are new, with their sums by attempt and by hour.

    Each row has the columns of `passes`; times in microseconds.
    """
    insert_new(connection, passes, rows)
    merge(
        connection,
        coverage,
        [
            {
                "attempt_id": row["attempt_id"],
                "check_name": row["check_name"],
                "job_id": row["job_id"],
                "first_step": row["first_step"],
                "last_step": row["last_step"],
                "count": row["count"],
                "gpus": row["gpus"],
                "gpu_audits": row["count"] * row["gpus"],
                "seconds": _seconds(row),
                "first_at": row["at"],
                "last_at": row["at"],
            }
            for row in rows
        ],
        {
            "first_step": "min",
            "last_step": "max",
            "count": "add",
            "gpus": "max",
            "gpu_audits": "add",
            "seconds": "add",
            "first_at": "min",
            "last_at": "max",
        },
    )
    merge(
        connection,
        coverage_hours,
        [
            {
                "job_id": row["job_id"],
                "hour": row["at"] // HOUR_US,
                "check_name": row["check_name"],
                "count": row["count"],
                "gpu_audits": row["count"] * row["gpus"],
                "gpu_seconds": _seconds(row) * row["gpus"],
            }
            for row in rows
        ],
        {"count": "add", "gpu_audits": "add", "gpu_seconds": "add"},
    )


def _seconds(row: Mapping[str, Any]) -> float:
    """Give the seconds of work that a beat covers; 0 where no step time is known."""
    return float((row["last_step"] - row["first_step"] + 1) * (row["step_time_s"] or 0.0))


def sum_audits(connection: Connection, beats: Mapping[int, tuple[str, int, int]]) -> None:
    """Bring audited seconds of attempts up to their coverage, the fleet's by the difference.

    `beats` gives, by attempt, its cluster, the time of its newest beat in microseconds, and the
    GPUs that took part.  Ring and weight passes cover the same steps: the larger sum counts.
    """
    if not beats:
        return
    summed = connection.execute(
        sa.select(coverage.c.attempt_id, sa.func.max(coverage.c.seconds))
        .where(coverage.c.attempt_id.in_(sorted(beats)), coverage.c.check_name.in_(AUDITS))
        .group_by(coverage.c.attempt_id)
    )
    audited: dict[int, float] = {row[0]: row[1] for row in summed}
    before = {
        row[0]: row[1]
        for row in rows_of_keys(connection, attempts, ("id", "audited_seconds"), audited)
    }
    fleet = []
    for attempt, seconds in sorted(audited.items()):
        grown = seconds - before.get(attempt, 0.0)
        if grown <= 0:
            continue
        connection.execute(
            sa.update(attempts).where(attempts.c.id == attempt).values(audited_seconds=seconds)
        )
        cluster, at, gpus = beats[attempt]
        fleet.append((cluster, at // DAY_US, grown * gpus))
    sums: dict[tuple[str, int], float] = {}
    for cluster, day, gpu_seconds in fleet:
        sums[cluster, day] = sums.get((cluster, day), 0.0) + gpu_seconds
    count_fleet(
        connection,
        [(cluster, day, "", "", 0, 0, total) for (cluster, day), total in sums.items()],
    )


def write_checkpoints(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert checkpoints; a later document may say that one is committed by now."""
    merge(
        connection,
        checkpoints,
        rows,
        {
            "attempt_id": "fill",
            "saved_at": "fill",
            "committed": "or",
            "tagged": "or",
            "last_audit_pass": "max",
            "last_weight_check_pass": "max",
            "parent": "fill",
        },
    )


def write_replays(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert replays that are new."""
    insert_new(connection, replays, rows)


def write_elastic_events(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert elastic events that are new."""
    insert_new(connection, elastic_events, rows)
