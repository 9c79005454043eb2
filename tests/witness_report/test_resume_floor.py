"""Is "not asked" never taken for "no floor", and is no restart held up longer than it allows?"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.kubernetes.certificate import server_context
from tests.witness_report import hostile
from tests.witness_report.conftest import Making, Service, alarm, rows
from tests.witness_report.hostile import BlackHole, HostileServer, answer, raw
from witness.report import ResumeFloor, ask_resume_floor
from witness.report.transport import Answer
from witness.wire import Envelope

ENVELOPE = Envelope("alpine", "re search&", "llm/70b", 1)


def _asked(url: str | None, timeout_s: float = 0.6, **given: Any) -> ResumeFloor:
    began = time.monotonic()
    floor = ask_resume_floor(url, "secret", ENVELOPE, timeout_s, **given)
    assert time.monotonic() - began < timeout_s + 0.8
    return floor


def _said(**keys: Any) -> bytes:
    return json.dumps({"highest_step": None, "why": "so", **keys}).encode()


def test_the_service_answers_before_and_after_an_alarm(
    service: Service, make: Making, job: str
) -> None:
    reporter = make(service.url, service.token)
    floor = reporter.resume_floor()
    assert (floor.known, floor.highest_step) == (True, None)  # a job that it never heard of
    reporter.rank_map(rows(), 3)
    reporter.checkpoint(20, "/c/20", {"last_audit_pass": 20})
    reporter.checkpoint(25, "/c/25", None)
    reporter.alarm(alarm(30))
    reporter.close(5)
    floor = reporter.resume_floor()
    assert (floor.highest_step, floor.window, floor.step, floor.uri) == (20, (21, 30), 20, "/c/20")
    assert "before step 21" in floor.why
    reporter.alarm(alarm(9))
    reporter.close(5)
    assert reporter.resume_floor().highest_step == -1
    refused = make(service.url, "wrong").resume_floor()
    assert not refused.known
    assert "401" in refused.why


def test_names_are_written_so_that_any_name_arrives() -> None:
    with HostileServer(answer(200, _said())) as server:
        assert _asked(server.url + "/witness/").known
        line = server.heads[0].split(b"\r\n")[0].decode()
        wanted = "cluster=alpine&namespace=re+search%26&job=llm%2F70b"
        assert line == f"GET /witness/api/v1/resume-floor?{wanted} HTTP/1.1"
        assert b"Authorization: Bearer secret" in server.heads[0]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>sign in</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"why": "no step"}',
        _said(highest_step="20"),
        _said(highest_step=20.5),
        _said(highest_step=True),
        _said(highest_step=-2),
    ],
)
def test_an_answer_of_something_else_is_no_floor(body: bytes) -> None:
    with HostileServer(answer(200, body)) as server:
        floor = _asked(server.url)
    assert not floor.known
    assert floor.highest_step is None


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 405, 422])
def test_a_refusal_is_no_floor_and_is_not_asked_again(status: int) -> None:
    refusal = json.dumps({"error": {"code": "x", "message": "not for this namespace"}}).encode()
    with HostileServer(answer(status, refusal)) as server:
        floor = _asked(server.url)
        assert len(server.heads) == 1
    assert not floor.known
    assert f"{status}: not for this namespace" in floor.why


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_is_busy_is_asked_again_until_the_time_is_over(status: int) -> None:
    calls = []

    def busy_once(line: socket.socket, body: bytes) -> None:
        calls.append(body)
        how = answer(status) if len(calls) == 1 else answer(200, _said(highest_step=20))
        how(line, body)

    with HostileServer(busy_once) as server:
        assert _asked(server.url, 3.0).highest_step == 20
    with HostileServer(answer(status, Retry_After="30")) as server:
        floor = _asked(server.url)
        assert len(server.heads) == 1
    assert not floor.known
    assert str(status) in floor.why


def test_a_service_that_is_down_silent_or_a_black_hole_is_given_up_in_time() -> None:
    assert "Refused" in _asked("http://127.0.0.1:9").why
    with BlackHole() as hole:
        assert not _asked(hole.url).known
    with HostileServer(hostile.accepting) as server:
        for behaviour in (hostile.silent(server), hostile.dripping(server)):
            server.behaviour = behaviour
            floor = _asked(server.url)
            assert not floor.known
            assert "no answer within" in floor.why or "in time" in floor.why or "timed" in floor.why
    with HostileServer(raw(b"SSH-2.0\r\n")) as server:
        assert not _asked(server.url).known


def test_a_name_that_does_not_resolve_in_time_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(5))
    assert "no answer within 0.3 s" in _asked("http://service.example", 0.3).why


@pytest.mark.parametrize("url", [None, "", "nonsense", "ftp://there", "http://"])
def test_no_service_is_no_floor(url: str | None) -> None:
    assert not _asked(url).known


def test_a_certificate_that_is_not_trusted_is_no_floor(tmp_path: Path) -> None:
    context, certificate = server_context(tmp_path)
    (tmp_path / "ca.pem").write_text(certificate)
    with HostileServer(answer(200, _said(highest_step=20)), context) as server:
        assert "not trusted" in _asked(server.url).why
        assert server.heads == []
        assert _asked(server.url, 3.0, ca_file=str(tmp_path / "ca.pem")).highest_step == 20
        assert not _asked(server.url, ca_file=str(tmp_path / "missing.pem")).known


def test_a_token_that_cannot_be_read_is_no_floor() -> None:
    def token() -> str:
        raise OSError("the secret is gone")

    with HostileServer(answer(200, _said())) as server:
        assert "the secret is gone" in ask_resume_floor(server.url, token, ENVELOPE, 0.5).why


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("", None), ("soon", None), ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0), ("-5", None)],
)
def test_retry_after_is_read_in_both_forms(value: str, seconds: float | None) -> None:
    assert Answer(429, {"retry-after": value}, b"").retry_after_s(60.0) == seconds
