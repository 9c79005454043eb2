"""How does a program read jobs: a list, one of them whole, and what was covered?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.job_dossier import JobDossier, Judged, read_dossier
from app.api.paging import Listing
from app.api.reading import Reading
from app.context import context_of
from app.errors import not_found
from app.filters import bad
from app.store import attempt_reading, ids, job_details, job_reading
from app.store.attempt_reading import PostedMap
from app.store.job_details import CoverageRow, Covered, JobAlarm
from app.store.job_reading import STATUSES, AttemptRow, JobRow
from app.strict_json import StrictJSON
from witness.rules.coverage import bound

router = APIRouter(prefix="/api/v1", tags=["reading"])

JOBS = Listing(
    "jobs",
    order="newest activity first: last_seen_at, then id, both descending",
    filters=("cluster", "namespace", "job", "status", "from", "to", "q"),
    columns=(
        "id",
        "cluster",
        "namespace",
        "job",
        "example",
        "silent",
        "first_seen_at",
        "last_seen_at",
        "alarms",
        "last_alarm_at",
        "last_pass_at",
        "attempts",
        "attempt",
        "started_at",
        "world_size",
        "stopped_at",
    ),
    cursor=(int, int),
)
COVERAGE = Listing(
    "coverage",
    order="by attempt id, then check, both ascending",
    filters=("cluster", "namespace", "job", "check", "from", "to", "q"),
    columns=(
        "job_id",
        "cluster",
        "namespace",
        "job",
        "attempt_id",
        "check",
        "first_step",
        "last_step",
        "count",
        "gpus",
        "gpu_audits",
        "seconds",
        "first_at",
        "last_at",
        "false_alarm_bound",
    ),
    cursor=(int, str),
)


@router.get("/jobs", summary="List jobs", openapi_extra=JOBS.openapi())
def jobs(request: Request, by: Reading) -> Response:
    """List jobs; from and to bound their last activity, status is alarmed, silent or example."""
    page = JOBS.read(request)
    for status in page.filters.status:
        if status not in STATUSES:
            raise bad("status", f"status must be one of {', '.join(STATUSES)}.")
    context = context_of(request)
    silent_before = context.now() - timedelta(minutes=context.settings.silent_after_minutes)
    with context.store.reading() as connection:
        found = job_reading.list_jobs(
            connection,
            page.filters,
            page.after,
            page.limit + 1,
            silent_before,
            (by.cluster, by.namespace),
        )
    rows = [
        {
            **_job(one.job),
            "silent": job_reading.is_silent(one.newest, one.job, silent_before),
            "attempts": one.attempts,
            "attempt": one.newest.number if one.newest else None,
            "started_at": one.newest.started_at if one.newest else None,
            "world_size": one.newest.world_size if one.newest else None,
            "stopped_at": one.newest.alarm_at if one.newest else None,
        }
        for one in found
    ]
    return JOBS.answer(page, rows, [job_reading.key_of(one.job) for one in found])


@router.get("/jobs/{job_id}", summary="Read one job")
def job(request: Request, by: Reading, job_id: str) -> Response:
    """Give one job with its newest attempts, coverage, checkpoints, alarms and notes."""
    context = context_of(request)
    silent_after = timedelta(minutes=context.settings.silent_after_minutes)
    with context.store.reading() as connection:
        dossier = read_dossier(connection, _read_id(job_id), context.now(), silent_after)
        newest = dossier.attempts[0] if dossier and dossier.attempts else None
        maps = attempt_reading.read_maps(connection, newest.id) if newest else ()
    if dossier is None or not by.allows(dossier.job.cluster, dossier.job.namespace):
        raise not_found("no job with this id")
    read = {**as_json(dossier), "rank_map": _rank_map(maps[0]) if maps else None}
    return StrictJSON(read, headers={"Cache-Control": "no-store"})


@router.get("/coverage", summary="List what was checked", openapi_extra=COVERAGE.openapi())
def coverage(request: Request, by: Reading) -> Response:
    """List passes summed by attempt and check, with the false-alarm bound they prove."""
    page = COVERAGE.read(request)
    with context_of(request).store.reading() as connection:
        found = job_details.list_coverage(
            connection, page.filters, page.after, page.limit + 1, (by.cluster, by.namespace)
        )
    keys = [(one.attempt_id, one.covered.check) for one in found]
    return COVERAGE.answer(page, [_coverage_row(one) for one in found], keys)


def as_json(dossier: JobDossier) -> dict[str, Any]:
    """Give one job as programs read it; lists hold their newest entries."""
    floor = dossier.floor
    return {
        **_job(dossier.job),
        "url": f"/jobs/{ids.show(dossier.job.id)}",
        "silent": dossier.silent,
        "audited_gpu_hours": dossier.audited_gpu_hours or None,
        "attempts_in_all": dossier.attempts_in_all,
        "attempts": [_attempt(one, dossier) for one in dossier.attempts],
        "coverage": [_covered(one.covered) for one in dossier.covers],
        "resume_floor": {
            "highest_step": floor.highest_step,
            "why": floor.why,
            "checkpoint": floor.checkpoint
            and {"step": floor.checkpoint.step, "uri": floor.checkpoint.uri},
        },
        "checkpoints": [_checkpoint(one) for one in dossier.checkpoints],
        "recent_alarms": [_alarm(one) for one in dossier.alarms],
        "replays": [
            {
                "rank": one.rank,
                "gpu_uuid": one.gpu_uuid,
                "step": one.step,
                "replays": one.replays,
                "wrong": one.wrong,
                "at": one.at,
            }
            for one in dossier.replays
        ],
        "elastic_events": [
            {"event": one.event, "slice": one.slice, "step": one.step, "at": one.at}
            for one in dossier.events
        ],
        "notes": [
            {
                "at": one.at,
                "author": one.author,
                "kind": one.kind,
                "text": one.text,
                "details": one.details,
            }
            for one in dossier.notes
        ],
    }


def _read_id(text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise not_found("no job with this id") from None


def _job(one: JobRow) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "cluster": one.cluster,
        "namespace": one.namespace,
        "job": one.name,
        "example": one.example,
        "first_seen_at": one.first_seen_at,
        "last_seen_at": one.last_seen_at,
        "alarms": one.alarms,
        "last_alarm_at": one.last_alarm_at,
        "last_pass_at": one.last_pass_at,
    }


def _attempt(one: AttemptRow, dossier: JobDossier) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "attempt": one.number,
        "start": one.start,
        "starts": one.starts,
        "attempt_uid": one.uid,
        "started_at": one.started_at,
        "last_seen_at": one.last_seen_at,
        "last_pass_at": one.last_pass_at,
        "stopped_at": one.alarm_at,
        "world_size": one.world_size,
        "rank_maps": one.maps,
        "rank_maps_contradict": one.maps > 1,
        "overlaps": [ids.show(other) for other in dossier.overlaps.get(one.id, ())],
        "code_digest": one.code_digest,
        "image_digest": one.image_digest,
        "framework": one.framework,
        "producer": one.producer,
        "step_time_s": one.step_time_s,
    }


def _rank_map(one: PostedMap) -> dict[str, Any]:
    """Give the newest attempt's first map; `unplaced` ranks have no node name."""
    return {
        "ranks": one.ranks,
        "nodes": one.nodes,
        "unplaced": one.unplaced,
        "world_size": one.world_size,
        "received_at": one.received_at,
    }


def _covered(one: Covered) -> dict[str, Any]:
    return {
        "check": one.check,
        "first_step": one.first_step,
        "last_step": one.last_step,
        "count": one.count,
        "gpu_audits": one.gpu_audits,
        "seconds": one.seconds,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "false_alarm_bound": bound(one.gpu_audits).rule_of_three,
    }


def _coverage_row(one: CoverageRow) -> dict[str, Any]:
    return {
        "job_id": ids.show(one.job_id),
        "cluster": one.cluster,
        "namespace": one.namespace,
        "job": one.job,
        "attempt_id": ids.show(one.attempt_id),
        "gpus": one.gpus,
        **_covered(one.covered),
    }


def _checkpoint(one: Judged) -> dict[str, Any]:
    saved = one.saved.checkpoint
    return {
        "step": saved.step,
        "uri": saved.uri,
        "trust": one.trust,
        "tainted_by": None if one.tainted_by is None else ids.show(one.tainted_by),
        "committed": saved.committed,
        "saved_at": saved.saved_at,
        "tags": {
            "last_audit_pass": saved.last_audit_pass,
            "last_weight_check_pass": saved.last_weight_check_pass,
        }
        if saved.tagged
        else None,
    }


def _alarm(one: JobAlarm) -> dict[str, Any]:
    windowed = one.window_first is not None and one.window_last is not None
    return {
        "id": ids.show(one.id),
        "url": f"/alarms/{ids.show(one.id)}",
        "check": one.check,
        "step": one.step,
        "occurred_at": one.occurred_at,
        "suspect_window": [one.window_first, one.window_last] if windowed else None,
        "rule": one.rule,
        "standing": one.standing,
        "summary": one.summary,
        "reporters": one.reporters,
    }
