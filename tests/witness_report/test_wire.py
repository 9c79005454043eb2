"""Does intake read every document as it was meant, and does any value of a script become JSON?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ingest.documents import (
    AlarmPost,
    CheckpointsPost,
    ElasticPost,
    PassesPost,
    Post,
    RankMapPost,
    ReplayPost,
)
from ingest.json_text import decode
from ingest.parse import Arrival, read_post
from tests.witness_report.conftest import alarm, rows
from witness import wire
from witness.wire import Envelope, envelope_from_environment

ENVELOPE = Envelope(
    "alpine",
    "research",
    "llm",
    3,
    "uid-1",
    "sha256:aa",
    "sha256:bb",
    {"name": "torch", "version": "2.13"},
    labels={"team": "pre-training"},
)
NOWHERE = Path("/nowhere")


def taken(document: dict[str, Any]) -> Post:
    """Read a document with the reader of intake, from its bytes."""
    decoded, text = decode(wire.to_line(document))
    post = read_post(decoded["kind"], decoded, Arrival(datetime.now(UTC), None, text))
    envelope = post.envelope
    assert (envelope.cluster, envelope.namespace, envelope.job) == ("alpine", "research", "llm")
    assert (envelope.attempt, envelope.attempt_uid) == (3, "uid-1")
    assert (envelope.code_digest, envelope.image_digest) == ("sha256:aa", "sha256:bb")
    assert envelope.framework == "torch 2.13"
    assert envelope.producer == "silent-witness"
    assert envelope.time_note is None
    return post


def test_intake_reads_an_alarm_as_it_was_meant() -> None:
    post = taken(wire.alarm(ENVELOPE, alarm(), 8))
    assert isinstance(post, AlarmPost)
    assert post.reporter_rank == 8
    assert post.alarm.culprits == (1,)
    assert post.alarm.suspect_window == (21, 30)


def test_intake_reads_every_other_kind() -> None:
    map_post = taken(wire.rank_map(ENVELOPE, rows(), 3, 1, 1))
    assert isinstance(map_post, RankMapPost)
    assert (map_post.world_size, map_post.gpus_per_node, len(map_post.rows)) == (3, 1, 3)
    beat = wire.passes(
        ENVELOPE, "ring", (11, 20), 2, 3, mode="default", peer_offset=1, step_time_s=0.5
    )
    passes = taken(beat)
    assert isinstance(passes, PassesPost)
    assert (passes.first_step, passes.last_step, passes.count) == (11, 20, 2)
    assert (passes.gpus, passes.mode, passes.step_time_s) == (3, "default", 0.5)
    row = {"step": 20, "uri": "s3://b/20", "committed": True, "tags": {"last_audit_pass": 20}}
    saved = taken(wire.checkpoints(ENVELOPE, [row]))
    assert isinstance(saved, CheckpointsPost)
    assert saved.checkpoints[0].last_audit_pass == 20
    replay = taken(wire.replay(ENVELOPE, 30, 1, [0, 2], 20, 7))
    assert isinstance(replay, ReplayPost)
    assert (replay.rank, replay.witnesses, replay.replays, replay.wrong) == (1, (0, 2), 20, 7)
    event = taken(wire.elastic_event(ENVELOPE, "slice_down", slice=2, step=7))
    assert isinstance(event, ElasticPost)
    assert (event.event, event.slice, event.step) == ("slice_down", 2, 7)


def test_values_of_a_training_script_become_strict_json() -> None:
    said = {
        "loss": float("nan"),
        "norm": torch.tensor(float("inf")),
        "step": np.int64(7),
        "ranks": np.array([1, 2]),
        "digests": {13: {"own": 2**64 + 1}},
        "pairs": {(3, 1)},
        "raw": b"\x01\xff",
        "path": Path("/checkpoints/20"),
        "odd": "a\x00b\ud800",
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        None: torch.float32,
    }
    assert json.loads(wire.to_json(said)) == {
        "loss": "NaN",
        "norm": "Infinity",
        "step": 7,
        "ranks": [1, 2],
        "digests": {"13": {"own": 2**64 + 1}},
        "pairs": [[3, 1]],
        "raw": "01ff",
        "path": "/checkpoints/20",
        "odd": "a\ufffdb\\ud800",
        "at": "2026-01-02T00:00:00+00:00",
        "null": "torch.float32",
    }


def test_a_value_that_contains_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "nested deeper" in wire.to_json(loop)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner)
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_any_value_is_one_line_that_intake_decodes(value: object) -> None:
    line = wire.to_line({"value": value})
    assert b"\n" not in line
    decoded, _ = decode(line)
    assert wire.to_line(decoded) == line


def test_an_alarm_has_one_key_whoever_reports_it_and_whenever() -> None:
    one = wire.content_key(wire.alarm(ENVELOPE, alarm(), 0))
    other = wire.alarm(ENVELOPE, dict(reversed(alarm().items())), 8) | {"time": "later"}
    assert wire.content_key(other) == one
    assert wire.content_key(wire.alarm(ENVELOPE, alarm(culprit=2), 0)) != one


def test_a_time_has_six_digits_and_a_zone() -> None:
    text = wire.now_text()
    assert len(text) == 27
    assert datetime.fromisoformat(text).tzinfo is not None


RUN = "TORCHELASTIC_RUN_ID"
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, "unnamed"),
        ({"WITNESS_JOB": "mine", RUN: "theirs", "JOB_NAME": "other"}, "mine"),
        ({RUN: "llm-70b", "JOB_NAME": "other"}, "llm-70b"),
        ({RUN: "none", "JOB_NAME": "other"}, "other"),
        ({RUN: "1234", "JOB_NAME": "other"}, "other"),
        ({RUN: "8b3f4f1e-2f6c-4a50-9d3d-0c4be5a4f5a1", "SLURM_JOB_NAME": "s"}, "s"),
        ({"POD_NAME": "llm-pod-3"}, "llm"),
        ({**POD, "HOSTNAME": "llm-worker-0"}, "llm"),
        ({"HOSTNAME": "llm-worker-0"}, "unnamed"),
        ({**POD, "HOSTNAME": "something-else", "SLURM_JOB_NAME": "s"}, "s"),
        ({"WITNESS_JOB": "  ", RUN: "llm"}, "llm"),
    ],
)
def test_the_job_is_named_by_the_first_variable_that_names_one(
    environ: dict[str, str], wanted: str
) -> None:
    found = envelope_from_environment(environ, service_account=NOWHERE, hyperpod_config=NOWHERE)
    assert found.job == wanted


@pytest.mark.parametrize(
    ("environ", "attempt", "uid"),
    [
        ({}, None, None),
        ({"TORCHELASTIC_RESTART_COUNT": "0"}, 1, None),
        ({"TORCHELASTIC_RESTART_COUNT": "2", RUN: "llm"}, 3, "llm"),
        ({"WITNESS_ATTEMPT": "7", "TORCHELASTIC_RESTART_COUNT": "2"}, 7, None),
        ({"WITNESS_ATTEMPT": "seven", "TORCHELASTIC_RESTART_COUNT": "2"}, 3, None),
        ({"WITNESS_ATTEMPT_UID": "u", RUN: "llm"}, None, "u"),
        ({RUN: "none"}, None, None),
        ({"SLURM_JOB_ID": "42"}, None, "slurm-42.0"),
        ({"SLURM_JOB_ID": "42", "SLURM_RESTART_COUNT": "1"}, 2, "slurm-42.1"),
        ({"SLURM_JOB_ID": "42", "TORCHELASTIC_RESTART_COUNT": "1", RUN: "9"}, 2, "9.slurm-42.0"),
    ],
)
def test_the_start_is_counted_from_one_and_told_apart(
    environ: dict[str, str], attempt: int | None, uid: str | None
) -> None:
    found = envelope_from_environment(environ, service_account=NOWHERE, hyperpod_config=NOWHERE)
    assert (found.attempt, found.attempt_uid) == (attempt, uid)


def test_cluster_and_namespace_come_from_the_platform_where_nobody_set_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "namespace").write_text("research\n")
    config = tmp_path / "resource_config.json"
    config.write_text('{"ClusterConfig": {"ClusterName": "alpine"}}')
    found = envelope_from_environment(
        {"SLURM_CLUSTER_NAME": "s"}, service_account=tmp_path, hyperpod_config=config
    )
    assert (found.cluster, found.namespace) == ("alpine", "research")
    given = {"WITNESS_CLUSTER": "a", "WITNESS_NAMESPACE": "b", "WITNESS_LABELS": "x=1, y = 2,z"}
    found = envelope_from_environment(given, service_account=tmp_path, hyperpod_config=config)
    assert (found.cluster, found.namespace) == ("a", "b")
    assert found.labels == {"x": "1", "y": "2"}
    config.write_text("[]")
    found = envelope_from_environment({}, service_account=NOWHERE, hyperpod_config=config)
    assert (found.cluster, found.namespace) == ("default", "default")
