"""Which machine and GPU was each named rank, in that attempt, and how sure is that?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.alarm_dossier import Dossier
from app.store.alarm_reading import StoredFinding
from app.store.intake import rank_map_rows
from app.store.intake.rank_map_rows import MapRow
from app.web.alarm.verdict import gpu_index
from witness.rules.alarm import UNATTRIBUTABLE, VERDICT_KINDS
from witness.rules.topology import Place

CHAINS = 4
INVOLVED = 24

_FORMS = {
    "short": "short id",
    "mig": "MIG device",
    "index": "not a GPU UUID: an index",
    "invalid": "not a GPU UUID",
    "missing": "the map names no GPU",
}


@dataclass(frozen=True, slots=True)
class Chain:
    """Rank, pod, node, instance, GPU of one named rank; None where the map does not say."""

    rank: int
    world_size: int | None
    pod: str | None
    node: str | None
    node_id: int | None
    instance_id: str | None
    gpu_index: int | None
    gpu: str | None
    gpu_id: int | None
    gpu_note: str | None
    elsewhere: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machines:
    """Every named rank, how the map stands, and what else must be said."""

    chains: tuple[Chain, ...]
    involved: tuple[Chain, ...]
    every_node: bool
    shown: int
    in_all: int
    source: str
    notes: tuple[str, ...]


def machines_of(dossier: Dossier) -> Machines:
    """Resolve the named ranks."""
    chains: dict[int, Chain] = {}
    for finding in dossier.findings:
        if finding.rank is not None and finding.rank not in chains:
            chains[finding.rank] = _chain(dossier, finding)
    in_all = len(chains)
    if dossier.findings_in_all > len(dossier.findings):
        in_all = len(dossier.alarm.named_ranks())
    involved = [rank for rank in _involved(dossier) if rank not in chains]
    return Machines(
        chains=tuple(chains.values()),
        involved=tuple(_bystander(dossier, rank) for rank in involved[:INVOLVED]),
        every_node=not chains and not involved,
        shown=len(chains),
        in_all=in_all,
        source=_source(dossier),
        notes=tuple(_notes(dossier)),
    )


def _involved(dossier: Dossier) -> list[int]:
    """List ranks of comparisons that differ and name nobody."""
    ranks = [rank for pair in dossier.setting.loose_pairs for rank in pair]
    for verdict in dossier.alarm.verdicts:
        if verdict.kind == UNATTRIBUTABLE or verdict.kind not in VERDICT_KINDS:
            trio = (*verdict.pair, verdict.third)
            ranks += [rank for rank in trio if rank is not None]
    return list(dict.fromkeys(ranks))


def _bystander(dossier: Dossier, rank: int) -> Chain:
    """Resolve a rank that no finding names."""
    row = dossier.rows_by_rank.get(rank)
    settled = dossier.facts.map_state in ("own", "inferred")
    place = row.place if row and settled else Place(rank)
    uuid = place.gpu_uuid if row and row.uuid_form in ("full", "mig") else None
    return Chain(
        rank=rank,
        world_size=dossier.setting.world_size,
        pod=place.pod,
        node=place.node,
        node_id=rank_map_rows.node_id(dossier.facts.cluster, place.node, place.instance_id),
        instance_id=place.instance_id,
        gpu_index=gpu_index(dossier, rank) if settled else None,
        gpu=place.gpu_uuid,
        gpu_id=rank_map_rows.gpu_id(uuid),
        gpu_note=_FORMS.get(row.uuid_form) if row and settled else None,
        elsewhere=_elsewhere(dossier, rank, row),
        rules=(),
    )


def _chain(dossier: Dossier, finding: StoredFinding) -> Chain:
    rank = finding.rank
    assert rank is not None
    row = dossier.rows_by_rank.get(rank)
    # Two maps that disagree are both shown, and neither is said to be the one.
    settled = dossier.facts.map_state in ("own", "inferred")
    place = row.place if row and settled else None
    rules = tuple(
        dict.fromkeys(one.rule or "no row" for one in dossier.findings if one.rank == rank)
    )
    return Chain(
        rank=rank,
        world_size=dossier.setting.world_size,
        pod=place.pod if place else None,
        node=finding.node or (place.node if place else None),
        node_id=finding.node_id,
        instance_id=finding.instance_id or (place.instance_id if place else None),
        gpu_index=gpu_index(dossier, rank) if settled else None,
        gpu=finding.gpu_uuid or (place.gpu_uuid if place else None),
        gpu_id=finding.gpu_id,
        gpu_note=_gpu_note(row, finding) if settled and row else None,
        elsewhere=_elsewhere(dossier, rank, row),
        rules=rules,
    )


def _gpu_note(row: MapRow, finding: StoredFinding) -> str | None:
    if row.uuid_form == "short":
        whole = row.place.gpu_uuid is not None and len(row.place.gpu_uuid) == 40
        return "posted as a short id; one GPU fits" if whole else "short id, not known in full"
    return _FORMS.get(row.uuid_form)


def _elsewhere(dossier: Dossier, rank: int, row: MapRow | None) -> tuple[str, ...]:
    """Say where each map puts a rank, where they disagree."""
    others = dossier.other_rows.get(rank, ())
    rows = [one for one in (row, *others) if one is not None]
    places = dict.fromkeys(
        (one.place.host or "no node", one.place.gpu_uuid or "no GPU") for one in rows
    )
    return tuple(f"{host}, {gpu}" for host, gpu in places) if len(places) > 1 else ()


def _source(dossier: Dossier) -> str:
    facts = dossier.facts
    attempt = "an attempt without number" if facts.attempt is None else f"attempt {facts.attempt}"
    if facts.map_state == "none":
        return "no rank map yet"
    if facts.map_state == "inferred":
        return f"from the rank map of {attempt}, inferred by time"
    if facts.map_state == "contradictory":
        return f"two maps of {attempt} disagree"
    return f"from the rank map of {attempt}"


def _notes(dossier: Dossier) -> list[str]:
    facts = dossier.facts
    notes = []
    if facts.map_state == "none":
        notes.append(
            "No rank map of this attempt has come yet. The alarm is kept as it is and resolves by "
            "itself when the map comes; until then no action is offered."
        )
    elif facts.map_state == "inferred":
        notes.append(
            "The alarm does not say which attempt it belongs to; "
            "its time says so: the place is inferred."
        )
    elif facts.map_state == "contradictory":
        notes.append("Two maps disagree about this attempt. Both are kept; no action is offered.")
    for one in dossier.maps[:1]:
        if one.unplaced:
            notes.append(f"{one.unplaced:,} of {one.ranks:,} ranks have no node in this map.")
    return notes
