"""Does nothing wait and nothing get lost, whatever answers, or does not?"""

from __future__ import annotations

import itertools
import json
import random
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doubles.kubernetes.certificate import server_context
from tests.witness_report import hostile
from tests.witness_report.conftest import QUICK, Making, alarm, rows, spooled, until
from tests.witness_report.hostile import BlackHole, HostileServer, accepting, answer, raw, results
from witness.report import Reporter

LOGIN_PAGE = b"<html>sign in</html>"
HALF = json.dumps({"results": [{"line": 1, "status": 201}]}).encode()
REFUSALS = {
    "500": answer(500),
    "503 of a proxy": answer(503, LOGIN_PAGE),
    "429": answer(429, Retry_After="1"),
    "401": answer(401, b'{"error": {"message": "This token is not known or was revoked."}}'),
    "403": answer(403),
    "404": answer(404),
    "redirect": answer(302, Location="http://127.0.0.1:1/elsewhere"),
    "a page of a proxy": answer(200, LOGIN_PAGE),
    "JSON of another program": answer(200, b'{"ok": true}'),
    "a list": answer(200, b"[1, 2]"),
    "no results": answer(200, b'{"results": []}'),
    "results of other lines": answer(200, b'{"results": [{"line": 7, "status": 201}]}'),
    "a status that is none": answer(200, b'{"results": [{"line": 1, "status": "201"}]}'),
    "a line is overloaded": results(503),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "nothing": raw(b""),
    "a truncated answer": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + HALF[:30]),
    "a truncated chunk": raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + HALF[:20]
    ),
    "endless headers": raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n"),
}  # fmt: skip


def _reported(reporter: Reporter) -> None:
    began = time.monotonic()
    assert reporter.alarm(alarm())
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("how", sorted(REFUSALS))
def test_what_is_no_acceptance_leaves_the_alarm_in_the_spool_until_one_comes(
    how: str, make: Making, tmp_path: Path
) -> None:
    with HostileServer(REFUSALS[how]) as server:
        reporter = make(server.url, "secret")
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "a failure is counted")
        assert len(spooled(tmp_path / "spool")) == 1
        assert reporter.status()["waiting_alarms"] == 1
        server.behaviour = accepting
        reporter.close()
        if how != "429":  # it is told when to come back, also at the end
            make(server.url, "secret")
        until(lambda: spooled(tmp_path / "spool") == [], "it is delivered")
        assert server.documents()[-1]["alarm"] == alarm()


def test_a_silent_server_holds_up_neither_call_nor_exit(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        server.behaviour = hostile.silent(server)
        reporter = make(server.url)
        _reported(reporter)
        until(lambda: server.bodies, "it is being posted")
        _reported(reporter)
        began = time.monotonic()
        reporter.close(0.5)
        assert time.monotonic() - began < 1.5
        assert len(spooled(tmp_path / "spool")) == 2


def test_a_server_that_drips_is_given_up(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        server.behaviour = hostile.dripping(server)
        reporter = make(server.url)
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "it is given up", 6)
        assert "did not answer in time" in reporter.status()["last_failures"]["posting"]
        assert len(spooled(tmp_path / "spool")) == 1


def test_a_black_hole_holds_up_neither_call_nor_exit(make: Making, tmp_path: Path) -> None:
    with BlackHole() as hole:
        reporter = make(hole.url)
        _reported(reporter)
        began = time.monotonic()
        reporter.close(0.5)
        assert time.monotonic() - began < 1.5
        assert len(spooled(tmp_path / "spool")) == 1


def test_a_certificate_that_is_not_trusted_gets_no_token(make: Making, tmp_path: Path) -> None:
    context, _ = server_context(tmp_path)
    with HostileServer(accepting, context) as server:
        reporter = make(server.url, "secret")
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "a failure is counted")
        assert "CERTIFICATE_VERIFY_FAILED" in reporter.status()["last_failures"]["posting"]
        assert server.heads == []


def test_a_certificate_of_one_s_own_authority_is_trusted_when_named(
    make: Making, tmp_path: Path
) -> None:
    context, certificate = server_context(tmp_path)
    (tmp_path / "ca.pem").write_text(certificate)
    with HostileServer(accepting, context) as server:
        reporter = make(server.url, "secret", options={"ca_file": str(tmp_path / "ca.pem")})
        _reported(reporter)
        until(lambda: reporter.status().get("posted") == 1, "it is posted")
        assert b"Authorization: Bearer secret" in server.heads[0]


def test_a_server_without_tls_behind_https_is_a_failure_like_others(make: Making) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url.replace("http:", "https:"))
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "a failure is counted")
        assert server.bodies == []


@pytest.mark.parametrize("url", ["not-an-address", "ftp://there", "http://", "http://[::1"])
def test_an_address_that_is_none_costs_the_posting_only(
    url: str, make: Making, tmp_path: Path
) -> None:
    reporter = make(url)
    _reported(reporter)
    until(lambda: reporter.status()["failures"], "a failure is counted")
    assert len(spooled(tmp_path / "spool")) == 1


def test_retry_after_is_honoured(make: Making) -> None:
    with HostileServer(answer(429, Retry_After="2")) as server:
        reporter = make(server.url)
        _reported(reporter)
        until(lambda: server.bodies, "it is posted once")
        time.sleep(0.8)  # many times the pause that would be waited otherwise
        assert len(server.bodies) == 1
        assert 0.5 < reporter.status()["next_try_in_s"] <= 2.5
        server.behaviour = accepting
        until(lambda: reporter.status().get("posted") == 1, "it is posted again", 5)


def test_without_retry_after_pauses_grow_and_differ(make: Making) -> None:
    arrived: list[float] = []

    def refuse(line: socket.socket, body: bytes) -> None:
        arrived.append(time.monotonic())
        answer(500)(line, body)

    with HostileServer(refuse) as server:
        reporter = make(server.url)
        _reported(reporter)
        until(lambda: len(arrived) >= 6, "it is tried six times")
    pauses = [after - before for before, after in itertools.pairwise(arrived)]
    assert pauses[-1] > pauses[0]
    assert len({round(pause, 4) for pause in pauses}) == len(pauses)


def test_a_refused_line_is_kept_with_its_reason_and_the_others_land(
    make: Making, tmp_path: Path
) -> None:
    with HostileServer(results(422, 201)) as server:
        reporter = make(None)
        reporter.alarm(alarm(30))
        reporter.alarm(alarm(40))
        reporter.close()
        again = make(server.url)
        until(lambda: again.status().get("posted") == 1, "the good one is accepted")
        until(lambda: spooled(tmp_path / "spool") == ["0000000001.alarm.rejected"], "one is left")
        (left,) = (tmp_path / "spool").glob("run-*/*.rejected")
        kept = json.loads(left.read_text())
        assert kept["reason"]["status"] == 422
        assert kept["reason"]["error"]["field"] == "step"
        assert kept["document"]["alarm"]["step"] == 30
        again.close()
        make(server.url)
        time.sleep(0.3)
        assert len(server.bodies) == 1  # it is not sent again


def test_a_batch_that_is_refused_as_a_whole_is_divided_until_the_bad_line_stands_alone(
    make: Making, tmp_path: Path
) -> None:
    def picky(line: socket.socket, body: bytes) -> None:
        if b'"step":40' in body:
            return answer(413, b'{"error": {"message": "too large"}}')(line, body)
        return accepting(line, body)

    with HostileServer(picky) as server:
        first = make(None)
        for step in (20, 30, 40, 50, 60):
            first.alarm(alarm(step))
        first.close()
        reporter = make(server.url)
        until(lambda: reporter.status().get("posted") == 4, "the other four land")
        until(lambda: len(spooled(tmp_path / "spool")) == 1, "one is left")
        (left,) = (tmp_path / "spool").glob("run-*/*.rejected")
        assert json.loads(left.read_text())["reason"] == {"status": 413, "message": "too large"}


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refusal_that_is_not_the_service_s_counts_against_no_document(
    status: int, make: Making, tmp_path: Path
) -> None:
    with HostileServer(answer(status, LOGIN_PAGE)) as server:
        reporter = make(server.url, options={"pace": replace(QUICK, not_now_s=0.3)})
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "a failure is counted")
        assert spooled(tmp_path / "spool") == ["0000000001.alarm.json"]
        server.behaviour = accepting
        until(lambda: reporter.status().get("posted") == 1, "it is tried again later")


def test_a_token_for_another_namespace_costs_only_the_documents_of_that_one(
    make: Making, tmp_path: Path
) -> None:
    first = make(None)
    first.alarm(alarm(30))
    first.close()

    def scoped(line: socket.socket, body: bytes) -> None:
        statuses = [403 if b'"step":30' in one else 201 for one in body.splitlines()]
        results(*statuses)(line, body)

    with HostileServer(scoped) as server:
        reporter = make(server.url)
        until(lambda: server.bodies, "what was left is sent")
        reporter.alarm(alarm(40))
        until(lambda: reporter.status().get("posted") == 1, "its own is accepted")
        reporter.close()
        assert spooled(tmp_path / "spool") == ["0000000001.alarm.json"]
        assert len(server.documents()) <= 3


def test_a_redirect_is_not_followed(make: Making) -> None:
    with HostileServer(accepting) as elsewhere:
        moved = answer(307, Location=f"{elsewhere.url}/api/v1/events")
        with HostileServer(moved) as server:
            reporter = make(server.url, "secret")
            _reported(reporter)
            until(lambda: len(server.bodies) > 1, "it is tried again")
        assert elsewhere.heads == []


def test_an_address_with_a_path_of_its_own_is_kept(make: Making) -> None:
    with HostileServer(accepting) as server:
        make(f"{server.url}/witness/").rank_map(rows(), 3)
        until(lambda: server.heads, "it is posted")
        assert server.heads[0].startswith(b"POST /witness/api/v1/events HTTP/1.1")


def test_a_token_that_no_header_can_hold_is_a_failure_like_others(make: Making) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url, "two\nlines")
        _reported(reporter)
        until(lambda: reporter.status()["failures"], "a failure is counted")
        assert server.heads == []


def test_the_job_s_own_random_numbers_are_left_alone(make: Making) -> None:
    random.seed(7)
    wanted = random.getstate()
    with HostileServer(answer(500)) as server:
        reporter = make(server.url)
        _reported(reporter)
        until(lambda: len(server.bodies) > 3, "it is tried again and again")
        assert random.getstate() == wanted
