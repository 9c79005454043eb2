"""What does the published contract say of the documents and answers?

The models describe; `ingest.parse` reads.  A test holds one against the other.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=8192, pattern="^[^\\u0000]+$")]
Step = Annotated[int, Field(ge=0, le=2**63 - 1)]
Rank = Annotated[int, Field(ge=0, le=2**31 - 1)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Text = Annotated[str, Field(max_length=65536, pattern="^[^\\u0000]*$")]


class _Open(BaseModel):
    """Unknown keys are kept in the raw document."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": True})


class Framework(_Open):
    """What trained."""

    name: Text | None = None
    version: Text | None = None


class Envelope(_Open):
    """What every document carries."""

    cluster: Name
    namespace: Name
    job: Name
    attempt: Step | None = Field(None, description="counts starts of the job")
    time: datetime | None = Field(None, description="RFC 3339; without a zone it is taken as UTC")
    attempt_uid: Text | None = None
    code_digest: Text | None = None
    image_digest: Text | None = None
    framework: Framework | None = None
    producer: Text | None = None
    labels: dict[str, Text] | None = None
    audit_requests: list[Text] | None = Field(
        None, description="ids of the targeted audits that this start of the job makes"
    )


class Verdict(_Open):
    """How one ambiguous pair was confirmed."""

    pair: Annotated[list[Rank], Field(min_length=2, max_length=2)]
    third: Rank | None = None
    suspect: Rank | None = None
    kind: Name


class Schedule(_Open):
    """Intervals of the job's checks in steps."""

    audit_every: Step | None = None
    check_every: Step | None = None
    ckpt_every: Step | None = None
    start_step: Step | None = None


class Alarm(_Open):
    """The alarm document of the training job."""

    check: Name = Field(description='"compute", "reduced gradient", "weights"; others are kept')
    step: Step
    nonfinite: list[Rank] | None = None
    mismatched_pairs: list[Annotated[list[Rank], Field(min_length=2, max_length=2)]] | None = Field(
        None, description="[target, replayer]"
    )
    culprits: list[Rank] | None = None
    verdicts: list[Verdict] | None = None
    suspects: list[Rank] | None = Field(None, description="null: no strict majority")
    suspect_window: Annotated[list[Step], Field(min_length=2, max_length=2)] | None = None
    last_audit_pass: Step | None = None
    last_weight_check_pass: Step | None = None
    world_size: Count | None = None
    peer_offset: Count | None = None
    kernel_mode: Name | None = None
    schedule: Schedule | None = None
    digests: dict[str, Any] | None = None


class AlarmDocument(Envelope):
    """An alarm as one rank reports it."""

    reporter_rank: Rank | None = None
    alarm: Alarm


class RankRow(_Open):
    """Where one rank runs; null where it is not known."""

    rank: Rank
    node: Text | None = None
    instance_id: Text | None = None
    gpu_uuid: Text | None = None
    provider_id: Text | None = None
    local_rank: Rank | None = None
    gpu_index: Rank | None = None
    gpu_serial: Text | None = None
    pci_bus_id: Text | None = None
    pod: Text | None = None
    slice: int | Text | None = None


class RankMapDocument(Envelope):
    """The placement of one start of a job."""

    world_size: Count | None = None
    gpus_per_node: Count | None = None
    peer_offset: Count | None = None
    ranks: Annotated[list[RankRow], Field(min_length=1)]


class PassesDocument(Envelope):
    """Passes of one check since the last beat, summed."""

    check: Literal["nonfinite", "ring", "weights"]
    first_step: Step
    last_step: Step
    count: Step
    gpus: Count
    mode: Text | None = Field(None, description='"deterministic" or "default"')
    peer_offset: Count | None = None
    step_time_s: Annotated[float, Field(ge=0)] | None = None


class Tags(_Open):
    """Which checks had passed when a checkpoint was saved."""

    last_audit_pass: Step | None = None
    last_weight_check_pass: Step | None = None


class Checkpoint(_Open):
    """One saved state."""

    step: Step
    uri: Text | None = None
    saved_at: datetime | None = None
    committed: bool | None = None
    tags: Tags | None = None
    parent: Text | Step | None = None


class CheckpointsDocument(Envelope):
    """What a job saved."""

    checkpoints: list[Checkpoint]


class ReplayDocument(Envelope):
    """Replays of a triggering step; a rank or a gpu_uuid is needed."""

    rank: Rank | None = None
    gpu_uuid: Text | None = None
    step: Step
    witnesses: list[Rank] | None = None
    replays: Count
    wrong: Rank


class ElasticDocument(Envelope):
    """One event of an elastic job."""

    event: Name
    slice: Rank | None = None
    step: Step | None = None
    snapshot_step: Step | None = None


class Error(BaseModel):
    """Why something was refused."""

    code: str
    message: str
    field: str | None


class ErrorAnswer(BaseModel):
    """The body of every refusal."""

    error: Error


class Accepted(BaseModel):
    """The body of every acceptance; `duplicate` and `reports` only for what was known."""

    id: str
    url: str
    duplicate: bool | None = None
    reports: int | None = None
    reporters: int | None = None


class LinesAccepted(BaseModel):
    """A result for every line."""

    results: list[dict[str, Any]]
    accepted: int
    refused: int


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": words}
    for status, words in {
        400: "The body cannot be decoded",
        401: "No known token",
        403: "The token is for another cluster, namespace or scope",
        413: "The body is too large",
        415: "The body has an unknown encoding",
        422: "A field is not as expected",
        429: "Too much waits; Retry-After says for how long",
        503: "The database is away; Retry-After says for how long",
    }.items()
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Accepted, "description": "Known already"},
    201: {"model": Accepted, "description": "Stored"},
    **_REFUSALS,
}
LINE_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": LinesAccepted, "description": "A result for every line"},
    **_REFUSALS,
}
LINES_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {
                "schema": {
                    "type": "string",
                    "description": "One JSON document a line, each with its `kind`: alarm, "
                    "rank_map, passes, checkpoints, replay, elastic_event.",
                }
            }
        },
    }
}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a JSON body by a model, with its definitions in place."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _inlined(schema, definitions)}},
        }
    }


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            name = value["$ref"].rsplit("/", 1)[-1]
            return _inlined(definitions[name], definitions)
        return {key: _inlined(item, definitions) for key, item in value.items()}
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    return value
