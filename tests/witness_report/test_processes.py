"""What of forks, threads, signals, calls after the end, and the end of the interpreter?"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.witness_report.conftest import Making, alarm, rows, spooled, until
from tests.witness_report.hostile import HostileServer, accepting, silent
from witness.report import Reporter

SCRIPT = """
import sys, atexit, os, threading, time
EARLY
from witness.report import Reporter, Envelope
def late():
    reporter.alarm({"check": "compute", "step": 99, "culprits": [1]})
reporter = Reporter(Envelope("alpine", "research", "llm", 1), url=sys.argv[1] or None,
                    token=None, spool=sys.argv[2])
BODY
"""


def _script(root: Path, url: str, spool: Path, body: str, early: str = "") -> tuple[int, float]:
    """Run a script that has a reporter; give its exit code and how long it took."""
    began = time.monotonic()
    text = SCRIPT.replace("EARLY", early).replace("BODY", body)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text, url, str(spool)],
        cwd=root, timeout=60, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, time.monotonic() - began


ALARM = 'reporter.alarm({"check": "compute", "step": 30, "culprits": [1]})\n'


def test_what_waits_is_sent_at_the_end_of_a_process_that_closes_nothing(
    root: Path, tmp_path: Path
) -> None:
    with HostileServer(accepting) as server:
        body = ALARM + 'reporter.passed("ring", 20, gpus=3)\nsys.exit(3)'
        assert _script(root, server.url, tmp_path, body)[0] == 3
        assert sorted(one["kind"] for one in server.documents()) == ["alarm", "passes"]
    assert spooled(tmp_path) == []


def test_a_call_from_an_exit_function_is_not_lost(root: Path, tmp_path: Path) -> None:
    # Registered before the reporter's own, so it runs after that one closed the reporter.
    early = "atexit.register(lambda: late())"
    assert _script(root, "", tmp_path, ALARM, early)[0] == 0
    assert len(spooled(tmp_path)) == 2


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])
def test_a_call_from_a_destructor_at_the_very_end_neither_hangs_nor_is_lost(
    url: str, root: Path, tmp_path: Path
) -> None:
    # A circle is taken apart only when modules are: threads have stopped wherever they were then.
    body = f"{ALARM}class Late:\n    def __del__(self): late()\nkept = Late()\nkept.me = kept\n"
    code, _ = _script(root, url, tmp_path, body + "sys.exit(5)")
    assert code == 5
    assert len(spooled(tmp_path)) == 2


def test_a_silent_server_holds_up_the_end_for_about_two_seconds(root: Path, tmp_path: Path) -> None:
    _, without = _script(root, "", tmp_path / "a", ALARM)
    with HostileServer(accepting) as server:
        server.behaviour = silent(server)
        _, with_it = _script(root, server.url, tmp_path / "b", ALARM)
    assert with_it - without < 4.0  # two seconds on a machine that does other work as well
    assert len(spooled(tmp_path / "b")) == 1


def test_a_forked_child_reports_its_own_and_not_its_parent_s(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url)
        reporter.passed("ring", 1, gpus=3)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if reporter.alarm(alarm(40)):
                    reporter.close()
                    status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        reporter.alarm(alarm(30))
        reporter.close()
        found = server.documents()
    assert sorted(one["alarm"]["step"] for one in found if one["kind"] == "alarm") == [30, 40]
    assert [one["kind"] for one in found].count("passes") == 1
    assert spooled(tmp_path / "spool") == []


def test_an_orphan_of_a_dead_process_does_not_keep_its_spool(
    root: Path, make: Making, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    body = (
        ALARM + "child = os.fork()\n"
        "if child == 0:\n    time.sleep(30)\n    os._exit(0)\n"
        "print(child, flush=True)\nos.kill(os.getpid(), 9)"
    )
    text = SCRIPT.replace("EARLY", "").replace("BODY", body)
    orphan = int(_killed(root, text, spool))
    try:
        with HostileServer(accepting) as server:
            make(server.url)
            until(lambda: spooled(spool) == [], "what was left is delivered")
            assert len(server.documents()) == 1
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_a_spool_of_a_living_process_is_left_alone_until_that_one_is_dead(
    root: Path, make: Making, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    body = ALARM + "print('spooled', flush=True)\ntime.sleep(60)"
    text = SCRIPT.replace("EARLY", "").replace("BODY", body)
    command = [sys.executable, "-c", text, "", str(spool)]
    with (
        HostileServer(accepting) as server,
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as living,
    ):
        assert living.stdout is not None
        assert living.stdout.readline() == b"spooled\n"
        reporter = make(server.url, options={"adopt_every_s": 0.1, "beat_s": 1.0})
        time.sleep(0.6)
        assert server.bodies == []
        assert len(spooled(spool)) == 1
        living.kill()
        until(lambda: reporter.status().get("posted") == 1, "what it left is posted")
        assert len(server.documents()) == 1


def _killed(root: Path, text: str, spool: Path) -> str:
    """Run a script that kills itself; give the first line of its output."""
    with subprocess.Popen(
        [sys.executable, "-c", text, "", str(spool)],
        cwd=root, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        line = running.stdout.readline()
        running.wait(30)
    return line


def test_reporters_of_one_process_share_the_bound_at_its_end(root: Path, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        server.behaviour = silent(server)
        body = (
            "more = [Reporter(reporter.envelope, url=sys.argv[1], token=None,"
            " spool=f'{sys.argv[2]}/{n}') for n in range(4)]\n"
            "for reporter in [reporter, *more]:\n    " + ALARM
        )
        began = time.monotonic()
        _script(root, server.url, tmp_path, body)
        assert time.monotonic() - began < 8.0  # five times two seconds would be ten
    assert len(list(tmp_path.rglob("*.alarm.json"))) == 5


def _report_in_child(reporter: Reporter) -> None:
    reporter.passed("ring", 7, gpus=3)


def test_a_rank_that_multiprocessing_forked_sends_what_waits_at_its_end(
    make: Making, tmp_path: Path
) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url)
        child = multiprocessing.get_context("fork").Process(
            target=_report_in_child, args=(reporter,)
        )
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert [one["first_step"] for one in server.documents()] == [7]
    assert spooled(tmp_path / "spool") == []


def test_many_threads_report_at_once(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url)

        def work(number: int) -> None:
            for step in range(20):
                reporter.passed("ring", step, gpus=number + 1)
                reporter.checkpoint(step, f"{number}", None)
            assert reporter.alarm(alarm(100 + number))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        until(lambda: reporter.status().get("posted", 0) >= 8 + 160, "everything is posted")
        reporter.close()
        found = server.documents()
    alarms = [one["alarm"]["step"] for one in found if one["kind"] == "alarm"]
    assert sorted(alarms) == [100 + number for number in range(8)]
    counted = sum(one["count"] for one in found if one["kind"] == "passes")
    assert counted == 8 * 20
    assert spooled(tmp_path / "spool") == []


def test_a_signal_in_the_middle_of_a_call_does_not_lock_up(make: Making) -> None:
    reporter = make(None, options={"beat_s": 0.5})
    done = threading.Event()

    def handler(*_: object) -> None:
        reporter.passed("ring", 1, gpus=1)
        reporter.alarm(alarm(50))
        reporter.close(0.2)
        done.set()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(5):
            done.clear()
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            step = 0
            while not done.is_set():
                reporter.passed("ring", step, gpus=3)
                reporter.status()
                step += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_calls_after_close_begin_anew(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        reporter = make(server.url)
        reporter.alarm(alarm(30))
        reporter.close()
        reporter.close()
        assert reporter.alarm(alarm(40))
        reporter.passed("ring", 40, gpus=3)
        reporter.close()
        steps = [one["alarm"]["step"] for one in server.documents() if one["kind"] == "alarm"]
        assert steps == [30, 40]
    assert spooled(tmp_path / "spool") == []
    assert list((tmp_path / "spool").iterdir()) == []


def test_two_reporters_of_one_process_share_a_spool(make: Making, tmp_path: Path) -> None:
    with HostileServer(accepting) as server:
        one = make(None)
        other = make(server.url, options={"adopt_every_s": 0.05, "beat_s": 0.5})
        one.alarm(alarm(30))
        other.alarm(alarm(40))
        time.sleep(0.3)
        assert [one["alarm"]["step"] for one in server.documents()] == [40]
        one.close()
        until(lambda: len(server.documents()) == 2, "the first one's is taken over")
        other.close()
    assert spooled(tmp_path / "spool") == []


@pytest.mark.parametrize("rank", [1, 8])
def test_ranks_that_have_nothing_to_write_start_no_thread_and_make_no_file(
    rank: int, make: Making, tmp_path: Path
) -> None:
    before = threading.active_count()
    reporter = make("http://127.0.0.1:1", rank=rank, local_rank=1)
    reporter.rank_map(rows(), 3)
    reporter.passed("ring", 1, gpus=3)
    reporter.checkpoint(1, None, None)
    reporter.replays(1, 1, [0], 1, 1)
    assert not reporter.alarm(alarm())
    assert threading.active_count() == before
    assert not (tmp_path / "spool").exists()
