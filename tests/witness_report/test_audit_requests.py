"""What does a job learn of what to audit closely, from a good service, a bad one and none?"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.witness_report.hostile import BlackHole, HostileServer, answer
from witness.report import Reporter
from witness.report.audit_requests import AuditRequest, ask_audit_requests, read_requests
from witness.report.delivery import Options
from witness.report.transport import Answer
from witness.wire import Envelope

ENVELOPE = Envelope("alpine", "research", "llama", 2)
UUID = "GPU-a0000002-1111-4222-8333-000000000005"
ROWS = [
    {"rank": 0, "node": "node-1", "instance_id": "i-0c0ffee0000000001", "gpu_uuid": None},
    {"rank": 1, "node": "node-2", "instance_id": "i-0c0ffee0000000002", "gpu_uuid": UUID.upper()},
]


def one(**more: Any) -> AuditRequest:
    """Give a request for a machine."""
    given: dict[str, Any] = {
        "id": "0123456789abc", "node": None, "instance_id": None, "gpu_uuid": None,
        "audit_every": 10, "passes": 20, **more,
    }  # fmt: skip
    return AuditRequest(**given)


@pytest.mark.parametrize(
    ("more", "concerns"),
    [
        ({"instance_id": "i-0c0ffee0000000002"}, True),
        ({"instance_id": "i-0c0ffee0000000009"}, False),
        ({"instance_id": "i-0c0ffee0000000009", "node": "node-2"}, False),
        ({"instance_id": "i-0c0ffee0000000009", "gpu_uuid": UUID}, True),
        ({"node": "node-1"}, True),
        ({"node": "node-7"}, False),
        ({}, False),
    ],
)
def test_a_request_concerns_a_machine_or_a_gpu(more: dict[str, Any], concerns: bool) -> None:
    assert one(**more).concerns(ROWS) is concerns


def test_an_answer_is_read_as_far_as_it_makes_sense() -> None:
    good = {"id": "a", "node": "n", "instance_id": None, "audit_every": 10, "passes": 10**9}
    bad = [{"id": 1}, {"id": "b", "audit_every": 0, "passes": 1}, {"id": "c", "audit_every": True,
           "passes": 2}, {"id": "d", "audit_every": 5, "passes": -1}, "e", None]  # fmt: skip
    body = json.dumps({"requests": [good, *bad]}).encode()
    (read,) = read_requests(Answer(200, {}, body))
    assert (read.id, read.audit_every, read.passes) == ("a", 10, 1_000)
    for wrong in (b"", b"[]", b"{}", b'{"requests": 3}', b"<html>"):
        with pytest.raises(ValueError, match=r"Expecting|service"):
            read_requests(Answer(200, {}, wrong))
    with pytest.raises(ValueError, match="404"):
        read_requests(Answer(404, {}, body))


def test_nobody_waits_longer_than_the_bound(free_port: int) -> None:
    began = time.monotonic()
    assert ask_audit_requests(None, None, ENVELOPE) == ()
    assert ask_audit_requests(f"http://127.0.0.1:{free_port}", None, ENVELOPE) == ()
    assert ask_audit_requests("ftp://nowhere", None, ENVELOPE) == ()
    assert time.monotonic() - began < 1.0, "a refused connection is no reason to wait"


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    reporter = Reporter(
        ENVELOPE, url="http://127.0.0.1:9", token=None, spool=tmp_path,
        options=Options(closer_audits=False),
    )  # fmt: skip
    assert reporter.audit_requests(ROWS) == ()
    other = Reporter(ENVELOPE, url="http://127.0.0.1:9", token=None, spool=tmp_path, rank=3)
    assert other.audit_requests(ROWS) == ()


def test_a_service_that_is_silent_costs_no_more_than_the_bound() -> None:
    with BlackHole() as hole:
        began = time.monotonic()
        assert ask_audit_requests(hole.url, None, ENVELOPE, 0.4) == ()
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("status", [200, 404, 429, 503])
def test_an_answer_that_is_none_changes_nothing(status: int) -> None:
    with HostileServer(answer(status, b"{}")) as server:
        assert ask_audit_requests(server.url, None, ENVELOPE) == ()
        assert len(server.heads) == 1, "it is asked once"
        assert b"/api/v1/audit-requests?cluster=alpine&namespace=research" in server.heads[0]
