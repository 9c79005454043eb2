"""What does a well-formed document of each kind hold?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from witness.rules.alarm import Alarm
from witness.rules.topology import Place


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every document carries.

    `at` is the sender's time, or the receipt's where the sender's is missing or implausible:
    `time_note` says which ("no time", "no zone", "implausible", None: as sent). `audit_requests`
    are the targeted audits that the sender says it makes.
    """

    kind: str
    cluster: str
    namespace: str
    job: str
    attempt: int | None
    attempt_uid: str | None
    at: datetime
    time_note: str | None
    received_at: datetime
    token_id: int | None
    code_digest: str | None
    image_digest: str | None
    framework: str | None
    producer: str | None
    example: bool
    body: str
    audit_requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlarmPost:
    """An alarm as one rank reported it; `said` identifies it apart from who said it and when."""

    envelope: Envelope
    reporter_rank: int | None
    alarm: Alarm
    said: str


@dataclass(frozen=True, slots=True)
class RankRow:
    """One row of a rank map with the spellings that the rules normalise."""

    place: Place
    uuid_form: str
    uuid_prefix: str | None


@dataclass(frozen=True, slots=True)
class RankMapPost:
    """Where the ranks of one start of a job run."""

    envelope: Envelope
    world_size: int
    gpus_per_node: int | None
    peer_offset: int | None
    rows: tuple[RankRow, ...]


@dataclass(frozen=True, slots=True)
class PassesPost:
    """Passes of one check since the last beat, summed."""

    envelope: Envelope
    check: str
    first_step: int
    last_step: int
    count: int
    gpus: int
    mode: str | None
    peer_offset: int | None
    step_time_s: float | None


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint; `committed` None: not said; `tagged` False: no tags came with it."""

    step: int
    uri: str | None
    saved_at: datetime | None
    committed: bool | None
    tagged: bool
    last_audit_pass: int | None
    last_weight_check_pass: int | None
    parent: str | None


@dataclass(frozen=True, slots=True)
class CheckpointsPost:
    """Checkpoints that a job saved."""

    envelope: Envelope
    checkpoints: tuple[CheckpointRow, ...]


@dataclass(frozen=True, slots=True)
class ReplayPost:
    """Replays of the triggering step after an alarm."""

    envelope: Envelope
    rank: int | None
    gpu: str | None
    step: int
    witnesses: tuple[int, ...]
    replays: int
    wrong: int


@dataclass(frozen=True, slots=True)
class ElasticPost:
    """One event of an elastic job."""

    envelope: Envelope
    event: str
    slice: int | None
    step: int | None
    snapshot_step: int | None
    content: Mapping[str, Any]


Post = AlarmPost | RankMapPost | PassesPost | CheckpointsPost | ReplayPost | ElasticPost


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the sender is told: the row, whether it was known, and how often it has come."""

    kind: str
    row_id: int
    duplicate: bool
    reports: int
    reporters: int | None = None
