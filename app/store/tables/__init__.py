"""Which tables are there?  Facts first, then what is derived from them.

Facts (documents, audit entries) are append-only.  Everything else follows from them by the
rules and is kept up in the same transaction, O(1) a document.  Ids named "derived" come from
`ids.derive`.
Columns named *_at are `Instant`; steps are 64-bit; text that jobs choose (names) is never an id.
"""

from __future__ import annotations

from app.store.tables.alarms import (
    alarm_reports,
    alarms,
    cases,
    findings,
    incidents,
    notes,
    proposals,
)
from app.store.tables.condemned import condemned_gpus, condemned_sightings
from app.store.tables.coverage import (
    alarm_hours,
    checkpoints,
    coverage,
    coverage_hours,
    elastic_events,
    passes,
    replays,
    subject_days,
    subject_jobs,
)
from app.store.tables.facts import (
    audit_entries,
    documents,
    receipts,
)
from app.store.tables.identity import (
    attempt_maps,
    attempts,
    gpus,
    jobs,
    nodes,
    placements,
    rank_map_nodes,
    rank_maps,
)
from app.store.tables.machines import (
    approval_batches,
    hardware_tests,
    machine_links,
    node_places,
    targeted_audits,
    vetoes,
)
from app.store.tables.metadata import metadata
from app.store.tables.node_evidence import node_evidence, node_evidence_wants, node_records
from app.store.tables.offenders import WINDOWS, fleet_days, offender_windows
from app.store.tables.people import (
    people,
    saved_queries,
    settings,
    sign_in_links,
    tokens,
)
from app.store.tables.telemetry import (
    telemetry_asks,
    telemetry_blocks,
    telemetry_readings,
    telemetry_wants,
    telemetry_windows,
)

__all__ = [
    "WINDOWS",
    "alarm_hours",
    "alarm_reports",
    "alarms",
    "approval_batches",
    "attempt_maps",
    "attempts",
    "audit_entries",
    "cases",
    "checkpoints",
    "condemned_gpus",
    "condemned_sightings",
    "coverage",
    "coverage_hours",
    "documents",
    "elastic_events",
    "findings",
    "fleet_days",
    "gpus",
    "hardware_tests",
    "incidents",
    "jobs",
    "machine_links",
    "metadata",
    "node_evidence",
    "node_evidence_wants",
    "node_places",
    "node_records",
    "nodes",
    "notes",
    "offender_windows",
    "passes",
    "people",
    "placements",
    "proposals",
    "rank_map_nodes",
    "rank_maps",
    "receipts",
    "replays",
    "saved_queries",
    "settings",
    "sign_in_links",
    "subject_days",
    "subject_jobs",
    "targeted_audits",
    "telemetry_asks",
    "telemetry_blocks",
    "telemetry_readings",
    "telemetry_wants",
    "telemetry_windows",
    "tokens",
    "vetoes",
]
