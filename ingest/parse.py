"""How is a decoded document read into its kind?

Strict where a value is used, silent about keys that are not known: they stay in the raw document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.store import ids
from ingest import fields
from ingest.documents import (
    AlarmPost,
    CheckpointRow,
    CheckpointsPost,
    ElasticPost,
    Envelope,
    PassesPost,
    Post,
    RankMapPost,
    RankRow,
    ReplayPost,
)
from ingest.json_text import canonical
from ingest.refusal import Refused, invalid
from witness.rules.alarm import AlarmError, read_alarm
from witness.rules.identity import gpu_uuid, instance_id, node_name
from witness.rules.topology import Place

CHECKS = ("nonfinite", "ring", "weights")
# A clock that is further off than this says nothing about when something happened.
EARLIEST_YEAR = 2015
FUTURE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is known of a document beside its content."""

    received_at: datetime
    token_id: int | None
    body: str


def read_post(kind: str, document: object, arrival: Arrival) -> Post:
    """Read a document of a kind; raise Refused naming the first bad field."""
    reader = _READERS.get(kind)
    if reader is None:
        raise invalid("kind", "one of " + ", ".join(_READERS), kind)
    if not isinstance(document, dict):
        raise Refused(422, "invalid_document", "expected a JSON object")
    return reader(_envelope(kind, document, arrival), document)


def _envelope(kind: str, document: Mapping[str, Any], arrival: Arrival) -> Envelope:
    sent, zoned = fields.moment(document, "time")
    at, note = arrival.received_at, "no time"
    if sent is not None:
        plausible = sent.year >= EARLIEST_YEAR and sent - arrival.received_at <= FUTURE
        at = sent if plausible else arrival.received_at
        note = "implausible" if not plausible else "" if zoned else "no zone"
    labels = _labels(document.get("labels"))
    return Envelope(
        kind=kind,
        cluster=fields.name(document, "cluster"),
        namespace=fields.name(document, "namespace"),
        job=fields.name(document, "job"),
        attempt=fields.integer(document, "attempt", limit=fields.STEP_LIMIT),
        attempt_uid=fields.text(document, "attempt_uid"),
        at=at,
        time_note=note or None,
        received_at=arrival.received_at,
        token_id=arrival.token_id,
        code_digest=fields.text(document, "code_digest"),
        image_digest=fields.text(document, "image_digest"),
        framework=_framework(document.get("framework")),
        producer=fields.text(document, "producer"),
        example=labels.get("example") == "true",
        body=arrival.body,
        audit_requests=fields.texts(document, "audit_requests"),
    )


def _labels(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid("labels", "an object of texts", value)
    for key, label in value.items():
        if not isinstance(label, str):
            raise invalid(f"labels.{key}", "a text", label)
    return value


def _framework(value: object) -> str | None:
    """Read {name, version}; None when absent."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise invalid("framework", "an object {name, version}", value)
    parts = (fields.text(value, key, f"framework.{key}") for key in ("name", "version"))
    return " ".join(part for part in parts if part) or None


def _alarm(envelope: Envelope, document: Mapping[str, Any]) -> AlarmPost:
    try:
        alarm = read_alarm(document.get("alarm"))  # type: ignore[arg-type]
    except AlarmError as error:
        raise Refused(422, "invalid_field", str(error), error.field) from error
    reporter = fields.integer(document, "reporter_rank")
    said = {key: document[key] for key in document if key not in _WHO_AND_WHEN}
    return AlarmPost(envelope, reporter, alarm, ids.digest(canonical(said)))


_WHO_AND_WHEN = frozenset({"reporter_rank", "time", "kind"})


def _rank_map(envelope: Envelope, document: Mapping[str, Any]) -> RankMapPost:
    rows = fields.objects(document, "ranks")
    if not rows:
        raise invalid("ranks", "at least one rank", rows)
    world_size = fields.integer(document, "world_size", low=1)
    hosts: _Hosts = {}
    read = tuple(_rank_row(row, f"ranks[{place}]", hosts) for place, row in enumerate(rows))
    seen: set[int] = set()
    for place, row in enumerate(read):
        if row.place.rank in seen:
            raise invalid(f"ranks[{place}].rank", "each rank once", row.place.rank)
        seen.add(row.place.rank)
    largest = max(seen) + 1
    if world_size is not None and largest > world_size:
        expected = f"at least {largest}, since rank {largest - 1} is listed"
        raise invalid("world_size", expected, world_size)
    return RankMapPost(
        envelope,
        world_size or largest,
        fields.integer(document, "gpus_per_node", low=1),
        fields.integer(document, "peer_offset", low=1),
        read,
    )


_Hosts = dict[tuple[str | None, ...], tuple[str | None, str | None]]


def _rank_row(row: Mapping[str, Any], path: str, hosts: _Hosts) -> RankRow:
    rank = row.get("rank")
    if type(rank) is not int or not 0 <= rank < fields.COUNT_LIMIT:
        raise invalid(f"{path}.rank", "a rank, an integer from 0", rank)
    gpu = gpu_uuid(_scalar(row, "gpu_uuid", path))
    place = Place(
        rank,
        *_host(row, path, hosts),
        gpu.canonical,
        fields.integer(row, "local_rank", f"{path}.local_rank"),
        fields.integer(row, "gpu_index", f"{path}.gpu_index"),
        _scalar(row, "pod", path),
        _scalar(row, "slice", path),
    )
    return RankRow(place, gpu.form, gpu.prefix)


def _host(row: Mapping[str, Any], path: str, hosts: _Hosts) -> tuple[str | None, str | None]:
    """Read a row's node and instance; the ranks of one machine spell it alike and are read once."""
    given = tuple(_scalar(row, field, path) for field in ("node", "instance_id", "provider_id"))
    found = hosts.get(given)
    if found is None:
        node = node_name(given[0])
        found = hosts[given] = node, instance_id(node, *given[1:])
    return found


def _scalar(row: Mapping[str, Any], field: str, path: str) -> str | None:
    """Read a text; an integer (a GPU's index, a slice's number) is taken as its digits."""
    value = row.get(field)
    if value is None or isinstance(value, str):
        if value is not None and len(value) > fields.NAME_LIMIT:
            raise invalid(f"{path}.{field}", f"at most {fields.NAME_LIMIT} letters", value)
        return value
    if type(value) is int and abs(value) < fields.STEP_LIMIT:
        return str(value)
    raise invalid(f"{path}.{field}", "a text", value)


def _passes(envelope: Envelope, document: Mapping[str, Any]) -> PassesPost:
    check = fields.name(document, "check")
    if check not in CHECKS:
        raise invalid("check", "one of " + ", ".join(CHECKS), check)
    first = fields.required_step(document, "first_step")
    last = fields.required_step(document, "last_step")
    count = fields.required_step(document, "count")
    if last < first:
        raise invalid("last_step", f"a step that is not before first_step ({first})", last)
    if count > last - first + 1:
        raise invalid("count", f"at most the {last - first + 1} steps from first to last", count)
    return PassesPost(
        envelope,
        check,
        first,
        last,
        count,
        fields.required_integer(document, "gpus", low=1),
        fields.text(document, "mode"),
        fields.integer(document, "peer_offset", low=1),
        fields.number(document, "step_time_s"),
    )


def _checkpoints(envelope: Envelope, document: Mapping[str, Any]) -> CheckpointsPost:
    rows = fields.objects(document, "checkpoints")
    read = tuple(_checkpoint(row, f"checkpoints[{place}]") for place, row in enumerate(rows))
    return CheckpointsPost(envelope, read)


def _checkpoint(row: Mapping[str, Any], path: str) -> CheckpointRow:
    tags = row.get("tags")
    if tags is not None and not isinstance(tags, dict):
        raise invalid(f"{path}.tags", "an object or null", tags)
    tags = tags or {}
    return CheckpointRow(
        fields.required_step(row, "step", f"{path}.step"),
        fields.text(row, "uri", f"{path}.uri"),
        fields.moment(row, "saved_at", f"{path}.saved_at")[0],
        fields.flag(row, "committed", f"{path}.committed"),
        row.get("tags") is not None,
        fields.step(tags, "last_audit_pass", f"{path}.tags.last_audit_pass"),
        fields.step(tags, "last_weight_check_pass", f"{path}.tags.last_weight_check_pass"),
        _parent(row.get("parent"), path),
    )


def _parent(value: object, path: str) -> str | None:
    """Read a parent checkpoint: its address, or its step."""
    if value is None or isinstance(value, str):
        return value
    if type(value) is int and 0 <= value < fields.STEP_LIMIT:
        return str(value)
    raise invalid(f"{path}.parent", "the address or step of a checkpoint", value)


def _replay(envelope: Envelope, document: Mapping[str, Any]) -> ReplayPost:
    rank = fields.integer(document, "rank")
    given = fields.text(document, "gpu_uuid")
    if rank is None and given is None:
        raise invalid("rank", "a rank or a gpu_uuid", None)
    replays = fields.required_integer(document, "replays", low=1)
    wrong = fields.required_integer(document, "wrong")
    if wrong > replays:
        raise invalid("wrong", f"at most the {replays} replays", wrong)
    return ReplayPost(
        envelope,
        rank,
        gpu_uuid(given).canonical if given is not None else None,
        fields.required_step(document, "step"),
        _witnesses(document.get("witnesses")),
        replays,
        wrong,
    )


def _witnesses(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        type(rank) is int and 0 <= rank < fields.COUNT_LIMIT for rank in value
    ):
        raise invalid("witnesses", "a list of ranks", value)
    return tuple(value)


def _elastic(envelope: Envelope, document: Mapping[str, Any]) -> ElasticPost:
    return ElasticPost(
        envelope,
        fields.name(document, "event"),
        fields.integer(document, "slice"),
        fields.step(document, "step"),
        fields.step(document, "snapshot_step"),
        document,
    )


_READERS: dict[str, Callable[[Envelope, Mapping[str, Any]], Post]] = {
    "alarm": _alarm,
    "rank_map": _rank_map,
    "passes": _passes,
    "checkpoints": _checkpoints,
    "replay": _replay,
    "elastic_event": _elastic,
}
KINDS = tuple(_READERS)
