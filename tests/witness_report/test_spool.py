"""What is left of what was reported when the disk is full, slow, broken or half written?"""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.witness_report.conftest import Making, alarm, rows, spooled, until
from tests.witness_report.hostile import HostileServer, accepting, answer
from witness.report import Reporter, claims
from witness.report.entries import Entry, Outbox
from witness.report.health import Health
from witness.report.settings import default_spool
from witness.report.spool import Limits, Spool


def _kinds(folder: Path) -> list[str]:
    return [name.split(".")[1] for name in spooled(folder)]


def _settled(reporter: Reporter) -> None:
    """Wait until everything said so far was tried to be written."""
    reporter._delivery._worker.do(lambda: None, 5.0)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, OSError | None]:
    """Give a switch: the error with which the disk fails, None while it works."""
    failing: dict[str, OSError | None] = {"error": None}
    works = os.fsync

    def fsync(descriptor: int) -> None:
        if failing["error"] is not None:
            raise failing["error"]
        works(descriptor)

    monkeypatch.setattr("witness.report.durable.os.fsync", fsync)
    return failing


def test_an_alarm_is_on_disk_when_the_call_comes_back(make: Making, tmp_path: Path) -> None:
    assert make(None).alarm(alarm())
    (file,) = (tmp_path / "spool").glob("run-*/*.json")
    assert json.loads(file.read_bytes())["alarm"] == alarm()
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_a_disk_that_fails_costs_durability_and_not_the_report(
    code: int, make: Making, tmp_path: Path, disk: dict[str, OSError | None]
) -> None:
    disk["error"] = OSError(code, os.strerror(code))
    with HostileServer(accepting) as server:
        reporter = make(server.url)
        reporter.rank_map(rows(), 3)
        reporter.alarm(alarm())
        until(lambda: reporter.status().get("posted") == 2, "it is posted from memory")
        assert {one["kind"] for one in server.documents()} == {"rank_map", "alarm"}
    assert "writing to the spool" in reporter.status()["failures"]
    assert spooled(tmp_path / "spool") == []


def test_what_no_disk_and_no_server_took_is_tried_again_at_the_end(
    make: Making, tmp_path: Path, disk: dict[str, OSError | None]
) -> None:
    disk["error"] = OSError(errno.EIO, "the disk fails")
    reporter = make(None)
    assert not reporter.alarm(alarm())
    assert reporter.status()["only_in_memory"] == 1
    disk["error"] = None
    reporter.close()
    assert _kinds(tmp_path / "spool") == ["alarm"]


def test_a_spool_that_cannot_be_made_costs_durability_only(make: Making, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with HostileServer(accepting) as server:
        reporter = make(server.url, spool=tmp_path / "file" / "spool")
        reporter.alarm(alarm())
        until(lambda: reporter.status().get("posted") == 1, "it is posted from memory")


def test_a_full_disk_drops_passes_to_take_an_alarm(
    make: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = make(None)
    for step in (1, 0):  # a step back ends a beat: two documents
        reporter.passed("ring", step, gpus=3)
    reporter._flush()
    _settled(reporter)
    assert _kinds(tmp_path / "spool") == ["passes", "passes"]
    room, works = {"documents": 2}, os.fsync

    def fsync(descriptor: int) -> None:
        if len(spooled(tmp_path / "spool")) > room["documents"]:  # the new one, still torn
            raise OSError(errno.ENOSPC, "no space left")
        works(descriptor)

    monkeypatch.setattr("witness.report.durable.os.fsync", fsync)
    assert reporter.alarm(alarm())
    assert _kinds(tmp_path / "spool") == ["passes", "alarm"]


def test_a_file_system_that_hangs_holds_up_the_call_for_a_bounded_time(
    make: Making, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    released, works = threading.Event(), os.fsync

    def fsync(descriptor: int) -> None:
        released.wait(20)
        works(descriptor)

    monkeypatch.setattr("witness.report.durable.os.fsync", fsync)
    with HostileServer(accepting) as server:
        reporter = make(server.url, options={"spool_wait_s": 0.3})
        began = time.monotonic()
        assert not reporter.alarm(alarm())
        assert time.monotonic() - began < 1.5
        until(lambda: reporter.status().get("posted") == 1, "it is posted from memory")
        began = time.monotonic()
        reporter.close(0.5)
        assert time.monotonic() - began < 1.5
        released.set()
    until(lambda: spooled(tmp_path / "spool") == [], "the late file is removed")


def test_while_a_call_hangs_further_alarms_do_not_wait_again(
    make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr("witness.report.durable.os.fsync", lambda _: released.wait(20))
    monkeypatch.setattr("witness.report.worker.STUCK_AFTER_S", 0.3)
    reporter = make(None, options={"spool_wait_s": 0.5})
    reporter.alarm(alarm(30))
    assert reporter.status()["disk_hangs"]
    began = time.monotonic()
    for step in range(40, 60):
        reporter.alarm(alarm(step))
    assert time.monotonic() - began < 0.4
    released.set()


def test_torn_files_are_dropped_and_unreadable_ones_set_aside(make: Making, tmp_path: Path) -> None:
    first = make(None)
    first.alarm(alarm(30))
    first.alarm(alarm(40))
    first.close()
    (folder,) = (tmp_path / "spool").iterdir()
    (folder / "0000000002.alarm.json").write_bytes(b'{"kind": "alarm", "job')
    (folder / "0000000003.alarm.json.1f2e.tmp").write_bytes(b'{"kind"')
    (folder / "0000000004.passes.json").write_bytes(b"")
    (folder / "0000000005.passes.json").write_bytes(b"[]")
    (folder / "0000000006.passes.json").mkdir()
    (folder / "notes.txt").write_text("of a person")
    with HostileServer(accepting) as server:
        second = make(server.url)
        until(lambda: second.status().get("posted") == 1, "the whole one is posted")
        until(lambda: len(list(folder.glob("*.unreadable"))) == 3, "the others are set aside")
        assert [one["alarm"]["step"] for one in server.documents()] == [30]
        second.close()
        assert "0000000003.alarm.json.1f2e.tmp" not in spooled(tmp_path / "spool")
        assert (folder / "notes.txt").exists()


def test_a_folder_of_a_living_process_is_left_alone(make: Making, tmp_path: Path) -> None:
    first = make(None)
    first.alarm(alarm(30))
    with HostileServer(accepting) as server:
        second = make(server.url, options={"adopt_every_s": 0.1, "beat_s": 0.5})
        time.sleep(0.4)
        assert server.bodies == []
        first.close()  # now it is nobody's
        until(lambda: server.bodies, "what was left is posted")
        until(lambda: spooled(tmp_path / "spool") == [], "and removed")
        second.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_what_a_long_outage_left_is_sent_in_batches_and_nothing_waits_for_it(
    make: Making, tmp_path: Path
) -> None:
    first = make(None)
    for step in range(600, 0, -1):  # each step back ends a beat
        first.passed("ring", step, gpus=3)
    first.close(30)
    assert len(spooled(tmp_path / "spool")) == 600
    with HostileServer(accepting) as server:
        second = make(server.url)
        assert second.alarm(alarm())
        until(lambda: second.status().get("posted") == 601, "everything is posted", 30)
        until(lambda: spooled(tmp_path / "spool") == [], "everything is removed", 30)
        until(lambda: len(list((tmp_path / "spool").iterdir())) <= 1, "its folder is removed")
        assert max(len(body.splitlines()) for body in server.bodies) <= 500
        second.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_an_end_in_the_middle_of_adopting_leaves_the_rest_for_the_next(
    make: Making, tmp_path: Path
) -> None:
    first = make(None)
    for step in range(250, 0, -1):
        first.passed("ring", step, gpus=3)
    first.close(30)
    with HostileServer(accepting) as server:
        make(server.url).close(0.0)
        third = make(server.url, options={"adopt_every_s": 0.2, "beat_s": 1.0})
        until(lambda: spooled(tmp_path / "spool") == [], "everything is delivered", 30)
        third.close()
        steps = {one["first_step"] for one in server.documents()}
    assert steps == set(range(1, 251))


def test_a_folder_stays_claimed_until_the_last_of_its_files_was_looked_at(
    make: Making, tmp_path: Path
) -> None:
    first = make(None)
    for step in range(150, 0, -1):
        first.passed("ring", step, gpus=3)
    first.close(30)
    (folder,) = (tmp_path / "spool").iterdir()
    spool = Spool(tmp_path / "spool", Limits(), Health())
    steps = spool.adopting()
    found = next(steps)
    assert len(found) == 100
    for entry in found:
        spool.remove(entry)
    assert claims.take(folder) is None
    rest = [entry for step in steps for entry in step]
    assert len(rest) == 50
    for entry in rest:
        spool.remove(entry)
    assert not folder.exists()


def test_what_is_settled_does_not_pile_up_in_memory() -> None:
    outbox = Outbox()
    for order in range(10_000):
        entry = Entry("passes", order)
        outbox.add([entry])
        outbox.settle(entry, "accepted")
    assert len(outbox._entries) <= 2 * 100 + 1


def test_a_document_that_cannot_be_written_stops_nothing(make: Making) -> None:
    class Odd(dict):
        def items(self) -> Any:
            raise RuntimeError("no items today")

    with HostileServer(accepting) as server:
        reporter = make(server.url)
        reporter.checkpoint(20, None, Odd(last_audit_pass=20))
        reporter.rank_map([{"rank": Odd(a=1)}], 3)
        reporter.alarm(alarm())
        until(lambda: reporter.status().get("posted") == 1, "the alarm is posted")
        assert sum(reporter.status()["failures"].values()) == 2


def test_a_step_time_that_is_none_does_not_cost_the_beat(make: Making) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url)
        for step, seconds in enumerate((float("nan"), 0.5, -1.0, float("inf"), None, 1.5)):
            reporter.passed("ring", step, gpus=3, step_time_s=seconds)
        reporter.close()
        (beat,) = server.documents()
    assert (beat["count"], beat["step_time_s"]) == (6, 1.0)


def test_a_spool_in_a_shared_temporary_folder_is_one_s_own_or_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = default_spool()
    assert usual.parent == tmp_path
    assert usual.stat().st_mode & 0o077 == 0
    assert default_spool() == usual
    usual.rmdir()
    usual.symlink_to(tmp_path)
    other = default_spool()
    assert other != usual
    assert other.stat().st_mode & 0o077 == 0


def test_limits_drop_passes_first_and_the_first_alarm_never(make: Making, tmp_path: Path) -> None:
    reporter = make(None, options={"limits": Limits(count=4)})
    reporter.rank_map(rows(), 3)
    reporter.alarm(alarm(30))
    reporter.passed("ring", 1, gpus=3)
    reporter._flush()
    reporter.checkpoint(20, None, None)
    _settled(reporter)
    assert _kinds(tmp_path / "spool") == ["rank_map", "alarm", "passes", "checkpoints"]
    for step in (40, 50, 60, 70):
        reporter.alarm(alarm(step))
    _settled(reporter)
    kept = [json.loads(one.read_bytes()) for one in (tmp_path / "spool").glob("run-*/*.json")]
    assert sorted(one["alarm"]["step"] for one in kept) == [30, 40, 50, 60]
    status = reporter.status()
    assert status["spool_documents"] == 4
    assert status["failures"]["keeping the spool within its limits"] == 4


def test_a_limit_in_bytes_is_kept(make: Making, tmp_path: Path) -> None:
    reporter = make(None, options={"limits": Limits(size=4_000)})
    for step in range(100, 0, -1):
        reporter.passed("ring", step, gpus=3)
    reporter._flush()
    _settled(reporter)
    files = list((tmp_path / "spool").glob("run-*/*.json"))
    assert 0 < sum(one.stat().st_size for one in files) <= 4_000
    steps = sorted(json.loads(one.read_bytes())["first_step"] for one in files)
    assert steps[0] == 1  # the newest are kept
    assert reporter.alarm(alarm())


def test_memory_is_bounded_while_neither_disk_nor_server_takes_anything(
    make: Making, disk: dict[str, OSError | None]
) -> None:
    disk["error"] = OSError(errno.EIO, "the disk fails")
    with HostileServer(answer(500)) as server:
        reporter = make(server.url, options={"in_memory": 5})
        reporter.alarm(alarm(30))
        for step in range(50):
            reporter.checkpoint(step, None, None)
        _settled(reporter)
        status = reporter.status()
        assert status["waiting"] <= 6
        assert status["waiting_alarms"] == 1
        assert status["failures"]["keeping within memory"] >= 44


def test_a_clock_that_jumps_changes_neither_order_nor_delivery(
    make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(None)
    first.alarm(alarm(30))
    monkeypatch.setattr(time, "time", lambda: 1.0)
    first.alarm(alarm(40))
    first.close()
    with HostileServer(accepting) as server:
        second = make(server.url)
        until(lambda: second.status().get("posted") == 2, "both are posted")
        assert [one["alarm"]["step"] for one in server.documents()] == [30, 40]


def test_a_failure_is_logged_once_and_counted_each_time(
    make: Making, disk: dict[str, OSError | None], caplog: pytest.LogCaptureFixture
) -> None:
    disk["error"] = OSError(errno.EIO, "the disk fails")
    reporter = make(None)
    with caplog.at_level(logging.WARNING, logger="witness.report"):
        for step in range(5):
            reporter.alarm(alarm(step + 10))
    assert len(caplog.records) == 1
    assert "The job goes on" in caplog.text
    assert reporter.status()["failures"]["writing to the spool"] == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda reporter: reporter.alarm(None),
        lambda reporter: reporter.alarm({"step": object()}),
        lambda reporter: reporter.rank_map(None, "many"),
        lambda reporter: reporter.checkpoint(object(), 5, 7),
        lambda reporter: reporter.passed(["unhashable"], "x", gpus={}),
        lambda reporter: reporter.replays(1, 2, None, "x", None),
        lambda reporter: reporter.adopt(object(), object()),
        lambda reporter: reporter.close("soon"),
    ],
)
def test_nothing_that_is_passed_in_makes_a_call_raise(call: object, make: Making) -> None:
    assert callable(call)
    reporter = make(None)
    call(reporter)
    reporter.close()
