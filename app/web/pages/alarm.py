"""Where does a person read one alarm, and fetch its document and its findings?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.alarm_dossier import Dossier, read_dossier
from app.context import context_of
from app.csv_table import csv_response
from app.errors import not_found
from app.raw_document import laid_out, strict_text
from app.store import alarm_reading, attempt_reading, docket_reading, proposals
from app.store.connection import Connection
from app.web import words
from app.web.addresses import read_id
from app.web.alarm import table
from app.web.alarm.answers import CaseState, answers_of
from app.web.alarm.machines import CHAINS, machines_of
from app.web.alarm.replicas import replicas_of
from app.web.alarm.rings import rings_of
from app.web.alarm.steps import choices, inside_rows, step_picture
from app.web.alarm.verdict import verdict_of
from app.web.drawings.step_axis import draw_labels, draw_steps
from app.web.rendering import render
from app.web.security import Viewer
from app.web.telemetry.around import read_on_alarm
from witness.rules.decision_table import TABLE_VERSION

router = APIRouter(include_in_schema=False)

CASES_READ = 5
EVERY_NODE = 200_000
TITLE_LETTERS = 160
FINDING_COLUMNS = (
    "ordinal",
    "rule",
    "kind",
    "rank",
    "node",
    "instance_id",
    "gpu_uuid",
    "ambiguous",
    "software_first",
    "blocks_replacement",
    "cautions",
)


@router.get("/alarms/{alarm_id}")
def alarm(request: Request, person: Viewer, alarm_id: str) -> Response:
    """Show one alarm."""
    context = context_of(request)
    row_id, now = read_id(alarm_id, "alarm"), context.now()
    with context.store.reading() as connection:
        dossier = read_dossier(connection, row_id, now)
        if dossier is None:
            raise not_found("no alarm with this id")
        states = _states(connection, dossier)
        tele = read_on_alarm(connection, dossier, context.settings.sources)
    return render(request, "alarm.html", **_values(dossier, states, now), tele=tele)


@router.get("/alarms/{alarm_id}/document.json")
def document(request: Request, person: Viewer, alarm_id: str) -> Response:
    """Give the document as strict JSON: NaN and integers from 2^53 on are strings."""
    row_id = read_id(alarm_id, "alarm")
    with context_of(request).store.reading() as connection:
        facts = alarm_reading.read_alarm(connection, row_id)
    if facts is None:
        raise not_found("no alarm with this id")
    headers = {
        "Content-Disposition": f'attachment; filename="alarm-{alarm_id}.json"',
        "X-Content-Type-Options": "nosniff",
    }
    body = strict_text(facts.body).encode()
    return Response(body, media_type="application/json", headers=headers)


@router.get("/alarms/{alarm_id}/findings.csv")
def findings(request: Request, person: Viewer, alarm_id: str) -> Response:
    """Give every finding of an alarm, however many ranks it names."""
    row_id = read_id(alarm_id, "alarm")
    with context_of(request).store.reading() as connection:
        if alarm_reading.read_alarm(connection, row_id) is None:
            raise not_found("no alarm with this id")
        found = alarm_reading.read_findings(connection, row_id, limit=None)
    rows = [_finding_row(one) for one in found]
    return csv_response(f"alarm-{alarm_id}-findings", FINDING_COLUMNS, rows)


@router.get("/alarms/{alarm_id}/nodes.csv")
def nodes(request: Request, person: Viewer, alarm_id: str) -> Response:
    """Give every node of the alarm's job: all of them are involved where nobody is named."""
    row_id = read_id(alarm_id, "alarm")
    with context_of(request).store.reading() as connection:
        facts = alarm_reading.read_alarm(connection, row_id)
        if facts is None:
            raise not_found("no alarm with this id")
        map_id = facts.rank_map_id
        found = attempt_reading.read_nodes(connection, map_id, EVERY_NODE) if map_id else ()
    rows = [
        {"node": name, "instance_id": instance, "ranks": ranks}
        for _, name, instance, ranks in found
    ]
    return csv_response(f"alarm-{alarm_id}-nodes", ("node", "instance_id", "ranks"), rows)


def _finding_row(one: alarm_reading.StoredFinding) -> dict[str, Any]:
    row = {name: getattr(one, name) for name in FINDING_COLUMNS if name != "cautions"}
    row["cautions"] = " ".join(text for _, text in one.cautions)
    return row


def _states(connection: Connection, dossier: Dossier) -> tuple[CaseState, ...]:
    """Read the cases that the alarm belongs to, the one about the graver finding first."""
    order = sorted(dossier.findings, key=lambda one: (one.rule is None, one.ambiguous, one.ordinal))
    wanted = list(dict.fromkeys(one.case_id for one in order))[:CASES_READ]
    held = proposals.of_cases(connection, wanted) if wanted else {}
    found = [(case_id, docket_reading.one(connection, case_id)) for case_id in wanted]
    return tuple(
        CaseState(case, held.get(case_id, ())) for case_id, case in found if case is not None
    )


def _values(dossier: Dossier, states: tuple[CaseState, ...], now: Any) -> dict[str, Any]:
    picture, verdict = step_picture(dossier), verdict_of(dossier)
    raw = laid_out(dossier.facts.body)
    cautions = {(code, text): None for one in dossier.findings for code, text in one.cautions}
    return {
        "alarm": dossier,
        "facts": dossier.facts,
        "verdict": verdict,
        "page_title": words.visible(verdict.plain[:TITLE_LETTERS]),
        "answers": answers_of(dossier, states, now),
        "cautions": list(cautions),
        "rings": rings_of(dossier),
        "replicas": replicas_of(dossier),
        "axis": {
            "labels": draw_labels(),
            "wide": draw_steps(picture, wide=True),
            "narrow": draw_steps(picture, wide=False),
            "inside": sum(one.state == "inside" for one in picture.flags),
        },
        "choices": choices(dossier),
        "unusable": inside_rows(dossier),
        "machines": machines_of(dossier),
        "chains_shown": CHAINS,
        "table": dossier.table,
        "matching": sum(one.matched for one in dossier.table),
        "states_of": table.STATE,
        "above": table.rules_above(dossier, states),
        "table_version": TABLE_VERSION,
        "raw": raw,
        "raw_text": "\n".join(words.visible(line) for line in raw.text.split("\n")),
        "envelope": _envelope(dossier),
    }


def _envelope(dossier: Dossier) -> list[tuple[str, str | None]]:
    """List what the job said beside the alarm; None: not sent."""
    said, alarm = dossier.document, dossier.alarm
    schedule = alarm.schedule
    intervals = None
    if schedule is not None:
        parts = (
            ("audit", schedule.audit_every),
            ("weights", schedule.check_every),
            ("checkpoint", schedule.ckpt_every),
        )
        given = [f"{name} every {every}" for name, every in parts if every is not None]
        intervals = ", ".join(given) or None
    names = ("code_digest", "image_digest", "framework", "producer")
    texts = [(name.replace("_", " "), _text(said.get(name))) for name in names]
    return [*texts, ("kernel mode", alarm.kernel_mode), ("schedule", intervals)]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return " ".join(str(one) for one in value.values())
    return str(value)
