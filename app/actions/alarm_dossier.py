"""What does one alarm come to: its facts together with everything the rules say about them?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.actions.alarm_resume import Ground, Resume, resume_after
from app.actions.casework import DIGEST_DAYS
from app.actions.certainty import Certainty, false_alarms, of_gpu
from app.store import alarm_reading, attempt_reading
from app.store.alarm_reading import AlarmFacts, OtherAlarm, Report, StoredFinding
from app.store.attempt_reading import Beat, Covered, PostedMap
from app.store.connection import Connection
from app.store.exposure_reading import digest_devices
from app.store.intake import rank_map_rows
from app.store.intake.rank_map_rows import MapRow
from witness.rules import ring
from witness.rules.alarm import Alarm, read_alarm
from witness.rules.decision_table import RowResult, evaluate
from witness.rules.ring import DecisiveAudit, Explanation
from witness.rules.setting import Setting
from witness.rules.topology import Topology

REPORTS_SHOWN = 50
CONFLICTS_SHOWN = 20
SIBLINGS = 20
NODES_SHOWN = 24
SCORED = 3
"""Scores are worked out for the first named GPUs; with more, software comes first."""


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """One group of mismatches with its smallest explanations and the audit that would decide."""

    explanation: Explanation
    decisive: DecisiveAudit | None


@dataclass(frozen=True, slots=True)
class Core:
    """What an alarm says and names, without what the rules make of it: a few rows by their keys."""

    facts: AlarmFacts
    document: Mapping[str, Any]
    alarm: Alarm
    topology: Topology | None
    findings: tuple[StoredFinding, ...]
    beats: tuple[Beat, ...]


@dataclass(frozen=True, slots=True)
class Dossier:
    """One alarm, whole.

    `rows_by_rank` holds the map's rows of the ranks that the alarm names or compares; `other_rows`
    the same from the attempt's other maps, where two disagree. `nodes` holds (id, name, instance
    id, ranks) of the first machines of the job.
    """

    facts: AlarmFacts
    alarm: Alarm
    document: Mapping[str, Any]
    topology: Topology | None
    setting: Setting
    findings: tuple[StoredFinding, ...]
    findings_in_all: int
    table: tuple[RowResult, ...]
    explained: tuple[ExplainedGroup, ...]
    audits: int
    resume: Resume
    beats: tuple[Beat, ...]
    covered: tuple[Covered, ...]
    reports: tuple[Report, ...]
    conflicts: tuple[OtherAlarm, ...]
    maps: tuple[PostedMap, ...]
    rows_by_rank: Mapping[int, MapRow]
    other_rows: Mapping[int, tuple[MapRow, ...]]
    certain: Mapping[int, Certainty]
    digest_devices: int
    nodes: tuple[tuple[int, str | None, str | None, int], ...]

    @property
    def gpus(self) -> int | None:
        """Count the GPUs of the job, None where nobody said."""
        return self.resume.gpus


def read_core(connection: Connection, alarm_id: int) -> Core | None:
    """Read what one alarm says and names; None when there is none with this id."""
    facts = alarm_reading.read_alarm(connection, alarm_id)
    if facts is None:
        return None
    document = json.loads(facts.body)
    beats: tuple[Beat, ...] = ()
    if facts.attempt_id is not None:
        beats = attempt_reading.read_beats(connection, facts.attempt_id, facts.step)
    return Core(
        facts,
        document,
        read_alarm(document["alarm"]),
        _topology(connection, facts),
        alarm_reading.read_findings(connection, alarm_id),
        beats,
    )


def read_dossier(connection: Connection, alarm_id: int, now: datetime) -> Dossier | None:
    """Read one alarm and apply the rules to it; None when there is none with this id."""
    core = read_core(connection, alarm_id)
    if core is None:
        return None
    facts, alarm, topology, found = core.facts, core.alarm, core.topology, core.findings
    covered, maps = _attempt(connection, facts)
    gpus = facts.world_size or (topology.world_size if topology else None) or alarm.world_size
    ground = Ground(facts, alarm, found, core.beats, covered, gpus)
    explained, audits = _explained(connection, facts, alarm, topology)
    ranks = _ranks_of_interest(alarm, found)
    return Dossier(
        facts=facts,
        alarm=alarm,
        document=core.document,
        topology=topology,
        setting=Setting.of(alarm, topology),
        findings=found,
        findings_in_all=_count(connection, alarm_id, found),
        table=evaluate(alarm, topology),
        explained=explained,
        audits=audits,
        resume=resume_after(connection, ground),
        beats=core.beats,
        covered=covered,
        reports=alarm_reading.read_reports(connection, alarm_id, REPORTS_SHOWN),
        conflicts=alarm_reading.read_conflicts(connection, facts, CONFLICTS_SHOWN),
        maps=maps,
        rows_by_rank=_rows(connection, facts.rank_map_id, ranks),
        other_rows=_other_rows(connection, facts, maps, ranks),
        certain=_certain(connection, found, now),
        digest_devices=_digest_devices(connection, facts),
        nodes=_nodes(connection, facts),
    )


def _count(connection: Connection, alarm_id: int, found: tuple[StoredFinding, ...]) -> int:
    if len(found) < alarm_reading.FINDINGS_SHOWN:
        return len(found)
    return alarm_reading.count_findings(connection, alarm_id)


def _topology(connection: Connection, facts: AlarmFacts) -> Topology | None:
    """Give the layout that the findings rest on: none where two maps disagree."""
    if facts.rank_map_id is None or facts.map_state not in ("own", "inferred"):
        return None
    return rank_map_rows.topology_of(connection, facts.rank_map_id)


def _nodes(
    connection: Connection, facts: AlarmFacts
) -> tuple[tuple[int, str | None, str | None, int], ...]:
    """Read the first machines of the job, which are all involved where nobody is named."""
    if facts.rank_map_id is None or facts.map_state not in ("own", "inferred"):
        return ()
    return attempt_reading.read_nodes(connection, facts.rank_map_id, NODES_SHOWN)


def _attempt(
    connection: Connection, facts: AlarmFacts
) -> tuple[tuple[Covered, ...], tuple[PostedMap, ...]]:
    if facts.attempt_id is None:
        return (), ()
    return (
        attempt_reading.read_covered(connection, facts.attempt_id),
        attempt_reading.read_maps(connection, facts.attempt_id),
    )


def _explained(
    connection: Connection, facts: AlarmFacts, alarm: Alarm, topology: Topology | None
) -> tuple[tuple[ExplainedGroup, ...], int]:
    """Solve over this alarm's audit and every other of its attempt."""
    if not alarm.mismatched_pairs:
        return (), 0
    setting = Setting.of(alarm, topology)
    audits = list(alarm.audits(setting.offset))
    for _, _, body in alarm_reading.read_sibling_bodies(connection, facts, SIBLINGS):
        sibling = read_alarm(json.loads(body)["alarm"])
        audits += sibling.audits(Setting.of(sibling, topology).offset)
    world = setting.world_size
    used = [audit.offset for audit in audits if audit.offset]
    groups = []
    for explanation in ring.explain(audits, world):
        decisive = None
        if world and setting.offset and len(explanation.sets) > 1:
            decisive = ring.decisive_audit(explanation, world, setting.offset, used)
        groups.append(ExplainedGroup(explanation, decisive))
    return tuple(groups), len(audits)


def _ranks_of_interest(alarm: Alarm, found: tuple[StoredFinding, ...]) -> frozenset[int]:
    ranks = {one.rank for one in found if one.rank is not None}
    for verdict in alarm.verdicts[:200]:
        ranks.update(one for one in (*verdict.pair, verdict.third) if one is not None)
    for pair in alarm.mismatched_pairs[:200]:
        ranks.update(pair)
    return frozenset(ranks)


def _rows(
    connection: Connection, rank_map_id: int | None, ranks: frozenset[int]
) -> dict[int, MapRow]:
    if rank_map_id is None or not ranks:
        return {}
    rows = rank_map_rows.rows_of(connection, rank_map_id)
    return {row.place.rank: row for row in rows if row.place.rank in ranks}


def _other_rows(
    connection: Connection,
    facts: AlarmFacts,
    maps: tuple[PostedMap, ...],
    ranks: frozenset[int],
) -> dict[int, tuple[MapRow, ...]]:
    """Read where other maps of the attempt put the same ranks."""
    if len(maps) < 2:
        return {}
    other: dict[int, tuple[MapRow, ...]] = {}
    for one in maps:
        if one.rank_map_id != facts.rank_map_id:
            for rank, row in _rows(connection, one.rank_map_id, ranks).items():
                other[rank] = (*other.get(rank, ()), row)
    return other


def _certain(
    connection: Connection, found: tuple[StoredFinding, ...], now: datetime
) -> dict[int, Certainty]:
    named = list(dict.fromkeys(one.gpu_id for one in found if one.gpu_id is not None))
    if not named:
        return {}
    fleet = false_alarms(connection)
    scored = {gpu: of_gpu(connection, gpu, now, fleet) for gpu in named[:SCORED]}
    return {gpu: one for gpu, one in scored.items() if one is not None}


def _digest_devices(connection: Connection, facts: AlarmFacts) -> int:
    """Count the devices that alarmed under the alarm's code digest around its time."""
    if facts.code_digest is None:
        return 0
    since = facts.occurred_at - timedelta(days=DIGEST_DAYS)
    return len({device for _, device in digest_devices(connection, [facts.code_digest], since)})
