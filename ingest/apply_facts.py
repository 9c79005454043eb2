"""How are passes, checkpoints, replays and elastic events kept, once however often they come?"""

from __future__ import annotations

import json
from typing import Any

from app.store import ids
from app.store.columns import micros
from app.store.intake import coverage_rows
from app.store.intake.attempt_book import Attempt
from app.store.intake.document_rows import known_receipts, write_receipts
from app.store.intake.rank_map_rows import gpu_id, topology_of
from ingest.documents import (
    CheckpointsPost,
    ElasticPost,
    PassesPost,
    Post,
    Receipt,
    ReplayPost,
)
from ingest.group import Group
from ingest.json_text import canonical


class FactIntake:
    """Takes the documents of a group that are neither maps nor alarms."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._taken: list[tuple[int, Post, Attempt | None, int]] = []
        self._beats: dict[int, tuple[str, int, int]] = {}

    def take(self, place: int, post: Post) -> None:
        """Work out which document this is."""
        job = self._group.job(post.envelope).id
        attempt, _ = self._group.attempt(post.envelope)
        if attempt is None and isinstance(post, PassesPost):
            # Passes without attempt number and map still prove that the job is checked.
            at = micros(post.envelope.at)
            attempt = self._group.book.open(job, None, post.envelope.attempt_uid, at)
        receipt = ids.derive("receipt", post.envelope.kind, job, *_identity(post, attempt))
        self._taken.append((place, post, attempt, receipt))

    def write(self) -> dict[int, Receipt]:
        """Write what is new; give a receipt by place."""
        known = known_receipts(self._group.connection, {taken[3] for taken in self._taken})
        counted = dict(known)
        first: dict[int, int] = {}
        receipts, rows = {}, {"passes": [], "checkpoints": [], "replay": [], "elastic_event": []}  # type: ignore[var-annotated]
        for place, post, attempt, receipt in self._taken:
            counted[receipt] = counted.get(receipt, 0) + 1
            new = counted[receipt] == 1
            if new:
                first[receipt] = self._group.keep(place)
                rows[post.envelope.kind].extend(self._rows(post, attempt, receipt, first[receipt]))
            job = self._group.job_id(post.envelope)
            receipts[place] = Receipt(post.envelope.kind, job, not new, counted[receipt])
        connection = self._group.connection
        coverage_rows.write_passes(connection, rows["passes"])
        coverage_rows.write_checkpoints(connection, rows["checkpoints"])
        coverage_rows.write_replays(connection, rows["replay"])
        coverage_rows.write_elastic_events(connection, rows["elastic_event"])
        self._write_receipts(known, counted, first)
        return receipts

    def sum_up(self) -> None:
        """Bring audited time up to the passes; the attempts must be written."""
        coverage_rows.sum_audits(self._group.connection, self._beats)

    def _write_receipts(
        self, known: dict[int, int], counted: dict[int, int], first: dict[int, int]
    ) -> None:
        at = micros(self._group.now)
        kinds = {receipt: post.envelope.kind for _, post, _, receipt in self._taken}
        write_receipts(
            self._group.connection,
            [
                (
                    receipt,
                    kinds[receipt],
                    count - known.get(receipt, 0),
                    at,
                    at,
                    first.get(receipt, 0),
                )
                for receipt, count in counted.items()
            ],
        )

    def _rows(
        self, post: Post, attempt: Attempt | None, receipt: int, document: int
    ) -> list[dict[str, Any]]:
        job, at = self._group.job_id(post.envelope), micros(post.envelope.at)
        base = {
            "id": receipt,
            "job_id": job,
            "attempt_id": attempt.id if attempt else None,
            "document_id": document,
        }
        if isinstance(post, PassesPost) and attempt is not None:
            return [self._pass(post, attempt, at, base)]
        if isinstance(post, CheckpointsPost):
            return [
                {
                    **base,
                    "id": ids.derive("checkpoint", job, one.step, one.uri),
                    "step": one.step,
                    "uri": one.uri,
                    "saved_at": micros(one.saved_at) if one.saved_at else None,
                    "committed": one.committed,
                    "tagged": one.tagged,
                    "last_audit_pass": one.last_audit_pass,
                    "last_weight_check_pass": one.last_weight_check_pass,
                    "parent": one.parent,
                }
                for one in post.checkpoints
            ]
        if isinstance(post, ReplayPost):
            return [
                {
                    **base,
                    "rank": post.rank,
                    "gpu_id": gpu_id(post.gpu) or self._gpu_of(attempt, post.rank),
                    "step": post.step,
                    "witnesses": json.dumps(post.witnesses),
                    "replays": post.replays,
                    "wrong": post.wrong,
                    "at": at,
                }
            ]
        assert isinstance(post, ElasticPost)
        return [
            {
                **base,
                "event": post.event,
                "slice": post.slice,
                "step": post.step,
                "snapshot_step": post.snapshot_step,
                "at": at,
            }
        ]

    def _pass(
        self, post: PassesPost, attempt: Attempt, at: int, base: dict[str, Any]
    ) -> dict[str, Any]:
        self._group.job(post.envelope).passed(at)
        attempt.last_pass_at = max(attempt.last_pass_at or at, at)
        attempt.step_time_s = post.step_time_s or attempt.step_time_s
        attempt.changed = True
        _, newest, gpus = self._beats.get(attempt.id, ("", at, 0))
        cluster = post.envelope.cluster
        self._beats[attempt.id] = (cluster, max(newest, at), max(gpus, post.gpus))
        return {
            **base,
            "check_name": post.check,
            "at": at,
            "first_step": post.first_step,
            "last_step": post.last_step,
            "count": post.count,
            "gpus": post.gpus,
            "mode": post.mode,
            "peer_offset": post.peer_offset,
            # A beat without its own step time is measured by the attempt's.
            "step_time_s": post.step_time_s or attempt.step_time_s,
        }

    def _gpu_of(self, attempt: Attempt | None, rank: int | None) -> int | None:
        if attempt is None or attempt.rank_map_id is None or rank is None:
            return None
        place = topology_of(self._group.connection, attempt.rank_map_id).place(rank)
        return None if place is None else gpu_id(place.gpu_uuid)


def _identity(post: Post, attempt: Attempt | None) -> tuple[object, ...]:
    """Say what makes a document the same as one that came before, apart from when it came."""
    start = attempt.id if attempt else None
    if isinstance(post, PassesPost):
        return (
            start,
            post.check,
            post.first_step,
            post.last_step,
            post.count,
            post.mode,
            post.peer_offset,
        )
    if isinstance(post, CheckpointsPost):
        return (start, repr(post.checkpoints))
    if isinstance(post, ReplayPost):
        return (start, post.rank, post.gpu, post.step, post.witnesses, post.replays, post.wrong)
    assert isinstance(post, ElasticPost)
    content = {key: value for key, value in post.content.items() if key != "kind"}
    return (start, canonical(content))
