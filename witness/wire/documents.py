"""What is in each document that a job posts, and when are two the same?

Each function gives one dict, ready as a line of `/api/v1/events`; for the path of its own kind it
may be sent as it is. Values are cleaned here, so a document can be kept and written at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from witness.wire.envelope import Envelope
from witness.wire.strict import canonical, plain

# Who reported and when do not make another document.
_WHO_AND_WHEN = ("reporter_rank", "time")


def alarm(
    envelope: Envelope, document: Mapping[str, Any], reporter_rank: int | None = None
) -> dict[str, Any]:
    """Wrap the alarm document of a check, key for key."""
    said = envelope.as_document("alarm")
    return {**said, "reporter_rank": reporter_rank, "alarm": plain(document)}


def rank_map(
    envelope: Envelope,
    rows: Iterable[Mapping[str, Any]],
    world_size: int,
    gpus_per_node: int | None = None,
    peer_offset: int | None = None,
    audit_requests: Iterable[str] = (),
) -> dict[str, Any]:
    """Say where each rank runs: rows of `rank`, `node`, `instance_id`, `gpu_uuid` and more.

    `audit_requests` are the ids of the targeted audits that this start of the job makes.
    """
    said = envelope.as_document("rank_map")
    given = {
        "world_size": int(world_size),
        "gpus_per_node": gpus_per_node,
        "peer_offset": peer_offset,
        "ranks": plain(list(rows)),
        "audit_requests": list(audit_requests) or None,
    }
    return {**said, **_given(given)}


def passes(
    envelope: Envelope,
    check: str,
    steps: tuple[int, int],
    count: int,
    gpus: int,
    *,
    mode: str | None = None,
    peer_offset: int | None = None,
    step_time_s: float | None = None,
) -> dict[str, Any]:
    """Sum the passes of one check (`nonfinite`, `ring`, `weights`) from the first to the last step.

    `gpus` is how many took part; `step_time_s` the mean time of a step in seconds.
    """
    given = {
        "check": check,
        "first_step": steps[0],
        "last_step": steps[1],
        "count": count,
        "gpus": gpus,
        "mode": mode,
        "peer_offset": peer_offset,
        "step_time_s": step_time_s,
    }
    return {**envelope.as_document("passes"), **_given(given)}


def checkpoints(envelope: Envelope, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """List saved states: `step`, `uri`, `saved_at`, `committed`, `tags`, `parent`."""
    return {**envelope.as_document("checkpoints"), "checkpoints": plain(list(rows))}


def replay(
    envelope: Envelope,
    step: int,
    rank: int,
    witnesses: Iterable[int],
    replays: int,
    wrong: int,
) -> dict[str, Any]:
    """Say how often a rank got other bits than its witnesses when it did a step again."""
    given = {
        "rank": rank,
        "step": step,
        "witnesses": list(witnesses),
        "replays": replays,
        "wrong": wrong,
    }
    return {**envelope.as_document("replay"), **_given(given)}


def elastic_event(envelope: Envelope, event: str, **fields: Any) -> dict[str, Any]:
    """Report one event of an elastic job with the fields that belong to it."""
    return {**envelope.as_document("elastic_event"), "event": event, **_given(fields)}


def content_key(document: Mapping[str, Any]) -> str:
    """Give 64 hexadecimal digits that are equal for documents which say the same.

    Who reported it and when do not count, so the ranks of a job give one alarm one key.
    """
    said = {key: value for key, value in document.items() if key not in _WHO_AND_WHEN}
    return hashlib.sha256(canonical(said).encode("ascii")).hexdigest()


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain(value) for key, value in fields.items() if value is not None}
