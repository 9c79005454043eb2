"""Does no restart resume inside a suspect window, whoever wrote the marker, and however often?"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.witness_report.conftest import Making, alarm
from witness.report import (
    HoldUnreadableError,
    ResumeFloor,
    choose,
    latest_safe,
    leave_behind,
    read_holds,
    release,
    write_hold,
)
from witness.report.hold import FACTS, SUMMARY, window_of
from witness.rules.resume import Checkpoint
from witness.wire import Envelope

ENVELOPE = Envelope("alpine", "research", "llm", 1)
EVERY_FIVE = [Checkpoint(step, f"/c/{step}", committed=True) for step in range(0, 60, 5)]
PAST = datetime.now(UTC) - timedelta(hours=1)
FUTURE = datetime.now(UTC) + timedelta(hours=1)


def _step(found: Checkpoint | None) -> int | None:
    return None if found is None else found.step


def _summary(directory: Path) -> Any:
    return json.loads((directory / SUMMARY).read_text())


def test_without_a_marker_the_newest_complete_checkpoint_is_given(tmp_path: Path) -> None:
    torn = Checkpoint(60, "/c/60", committed=False)
    assert _step(latest_safe([*EVERY_FIVE, torn], tmp_path / "not there yet")) == 55
    assert latest_safe([], tmp_path) is None


def test_a_checkpoint_strictly_before_the_window_is_given(tmp_path: Path) -> None:
    assert write_hold(tmp_path, alarm(40), ENVELOPE, "rank 0") == 31
    found = choose(EVERY_FIVE, tmp_path)
    assert _step(found.checkpoint) == 30
    assert "before step 31" in found.why
    assert write_hold(tmp_path, alarm(39), ENVELOPE) == 30
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 25
    assert write_hold(tmp_path, alarm(59), ENVELOPE) == 50
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 25  # the lowest start wins
    assert _summary(tmp_path)["resume_before_step"] == 30


def test_a_window_from_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(9), ENVELOPE)
    found = choose(EVERY_FIVE, tmp_path)
    assert found.checkpoint is None
    assert "no checkpoint that may be used" in found.why


@pytest.mark.parametrize(
    ("document", "window"),
    [
        ({"check": "compute", "step": 30, "last_audit_pass": 20}, (21, 30)),
        ({"check": "compute", "step": 30, "schedule": {"start_step": 5}}, (5, 30)),
        ({"check": "weights", "step": 30, "last_weight_check_pass": 10}, (11, 30)),
        ({"check": "reduced gradient", "step": 30}, (30, 30)),
        ({"check": "something new", "step": 30}, (30, 30)),
        ({"check": "weights", "step": 30, "suspect_window": [25, 30]}, (25, 30)),
    ],
)
def test_an_alarm_without_a_window_is_held_by_what_it_says(
    document: dict[str, Any], window: tuple[int, int]
) -> None:
    assert window_of(document) == window


def test_equal_alarms_of_many_ranks_leave_one_file(tmp_path: Path) -> None:
    for rank in range(4):
        write_hold(tmp_path, alarm(40), ENVELOPE, f"rank {rank}")
    assert len(read_holds(tmp_path)) == 1
    assert len(list((tmp_path / FACTS).iterdir())) == 1


def _write(directory: str, steps: list[int]) -> None:
    for step in steps:
        write_hold(directory, alarm(step), ENVELOPE, "a process")


def test_processes_that_write_at_once_lose_nothing_and_the_lowest_start_wins(
    tmp_path: Path,
) -> None:
    context = multiprocessing.get_context("fork")
    shares = [list(range(100 + first, 200, 4)) for first in range(4)]
    started = [context.Process(target=_write, args=(str(tmp_path), one)) for one in shares]
    for one in started:
        one.start()
    for one in started:
        one.join(60)
        assert one.exitcode == 0
    assert [one.first for one in read_holds(tmp_path)] == [step - 9 for step in range(100, 200)]
    assert _summary(tmp_path)["resume_before_step"] == 91
    assert len(_summary(tmp_path)["facts"]) == 100
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_release_lifts_the_hold_and_keeps_the_history(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    write_hold(tmp_path, alarm(40), ENVELOPE)
    first, second = read_holds(tmp_path)
    assert release(tmp_path, "a wrong fan speed reading", "ana", keys=[first.key]) == [first.key]
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 30
    assert release(tmp_path, "software, see the incident", "ana") == [second.key]
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 55
    assert release(tmp_path, "again", "ana") == []
    assert [one.released for one in read_holds(tmp_path)] == [True, True]
    said = [one for one in _summary(tmp_path)["facts"].values() if one["kind"] == "release"]
    assert sorted(one["reason"] for one in said) == [
        "a wrong fan speed reading",
        "software, see the incident",
    ]
    assert all(one["by"] == "ana" and one["time"] for one in said)


def test_a_released_alarm_that_is_raised_again_stays_released(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE, "rank 0")
    release(tmp_path, "harmless", "ana")
    write_hold(tmp_path, alarm(30), ENVELOPE, "rank 8, late")
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 55
    next_start = Envelope("alpine", "research", "llm", 2)
    write_hold(tmp_path, alarm(30), next_start)  # another alarm, though it reads the same
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 20


def test_a_run_that_went_back_and_passed_beyond_the_window_is_not_sent_back_again(
    tmp_path: Path,
) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)  # 21 to 30
    assert leave_behind(tmp_path, resumed_from=25, saved=40, by="attempt 2") == []
    assert leave_behind(tmp_path, resumed_from=20, saved=30, by="attempt 2") == []
    assert len(leave_behind(tmp_path, resumed_from=20, saved=35, by="attempt 2")) == 1
    old = [Checkpoint(step, f"/c/{step}", PAST, True) for step in (15, 20, 25, 30)]
    new = [Checkpoint(step, f"/n/{step}", FUTURE, True) for step in (25, 35)]
    assert _step(latest_safe(old + new, tmp_path)) == 35
    found = latest_safe(old + new[:1], tmp_path)
    assert found is not None
    assert found.uri == "/n/25"  # saved by the run that went back
    heir = Checkpoint(28, "/h/28", FUTURE, True, parent="/c/25")
    assert _step(latest_safe([*old, heir], tmp_path)) == 20
    unknown = Checkpoint(25, "/u/25", None, True)
    assert _step(latest_safe([*old, unknown], tmp_path)) == 20


def test_a_marker_that_was_copied_without_its_folder_still_holds(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    shutil.rmtree(tmp_path / FACTS)
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 20
    write_hold(tmp_path, alarm(50), ENVELOPE)
    assert [one.first for one in read_holds(tmp_path)] == [21, 41]
    assert len(_summary(tmp_path)["facts"]) == 2


def test_a_folder_that_was_copied_without_the_summary_still_holds(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    (tmp_path / SUMMARY).unlink()
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 20


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": "hold"}'])
def test_a_marker_that_cannot_be_read_is_not_taken_for_none(content: bytes, tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    (file,) = (tmp_path / FACTS).iterdir()
    file.write_bytes(content)
    with pytest.raises(HoldUnreadableError):
        latest_safe(EVERY_FIVE, tmp_path)


def test_a_summary_that_cannot_be_read_counts_only_where_it_is_all_there_is(
    tmp_path: Path,
) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    (tmp_path / SUMMARY).write_text("{")
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 20
    shutil.rmtree(tmp_path / FACTS)
    with pytest.raises(HoldUnreadableError):
        latest_safe(EVERY_FIVE, tmp_path)


def test_a_release_that_cannot_be_read_releases_nothing(tmp_path: Path) -> None:
    write_hold(tmp_path, alarm(30), ENVELOPE)
    release(tmp_path, "harmless", "ana")
    (file,) = (tmp_path / FACTS).glob("release-*")
    file.write_text("{")
    (tmp_path / SUMMARY).unlink()
    assert _step(latest_safe(EVERY_FIVE, tmp_path)) == 20


@pytest.mark.parametrize(
    ("floor", "wanted"),
    [
        (ResumeFloor(True, None, "nothing"), 30),
        (ResumeFloor(True, 22, "an alarm"), 20),
        (ResumeFloor(True, 20, "an alarm"), 20),
        (ResumeFloor(True, 50, "an alarm"), 30),
        (ResumeFloor(True, -1, "an alarm"), None),
        (ResumeFloor(True, 0, "an alarm"), 0),
        (ResumeFloor(False, None, "timed out"), 30),
    ],
)
def test_the_service_s_floor_counts_beside_the_hold(
    floor: ResumeFloor, wanted: int | None, tmp_path: Path
) -> None:
    write_hold(tmp_path, alarm(40), ENVELOPE)
    found = choose(EVERY_FIVE, tmp_path, floor)
    assert _step(found.checkpoint) == wanted
    assert ("is not known (timed out)" in found.why) is not floor.known


def test_the_service_s_floor_counts_without_a_hold(tmp_path: Path) -> None:
    floor = ResumeFloor(True, 22, "an alarm of a disk that is gone")
    assert _step(latest_safe(EVERY_FIVE, tmp_path, floor)) == 20


WINDOWS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 10)).map(lambda one: (one[0], one[0] + one[1])),
    max_size=4,
)


@given(windows=WINDOWS, floor=st.none() | st.integers(-1, 60))
@settings(max_examples=40, deadline=None)
def test_what_is_given_lies_before_every_window_and_under_the_floor(
    windows: list[tuple[int, int]], floor: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("held")
    for first, last in windows:
        write_hold(directory, {"check": "x", "step": last, "suspect_window": [first, last]})
    bounds = [first for first, _ in windows] + ([] if floor is None else [floor + 1])
    bound = min(bounds, default=99)
    wanted = max((one.step for one in EVERY_FIVE if one.step < bound), default=None)
    asked = ResumeFloor(True, floor, "")
    assert _step(latest_safe(EVERY_FIVE, directory, asked)) == wanted


def test_a_reporter_leaves_the_hold_with_the_alarm(make: Making, tmp_path: Path) -> None:
    saved = tmp_path / "checkpoints"
    reporter = make(None, options={"hold_directory": saved})
    reporter.alarm(alarm(40))
    assert _step(latest_safe(EVERY_FIVE, saved)) == 30
    (hold,) = read_holds(saved)
    assert hold.document["job"] == reporter.envelope.job
    assert hold.document["by"] == "rank 0"
    second = make(None, rank=1, local_rank=1, options={"hold_directory": saved / "other"})
    second.alarm(alarm(40))
    assert not (saved / "other").exists()


def test_checkpoints_that_hang_hold_up_an_alarm_for_a_bounded_time(
    make: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("witness.report.announcing.write_hold", lambda *_, **__: time.sleep(3))
    reporter = make(None, options={"hold_directory": tmp_path, "spool_wait_s": 0.3})
    began = time.monotonic()
    assert reporter.alarm(alarm(40))  # the spool is another disk
    assert time.monotonic() - began < 1.0
    assert "writing the hold in time" in reporter.status()["failures"]


def test_a_hold_that_cannot_be_written_is_counted(make: Making, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    reporter = make(None, options={"hold_directory": tmp_path / "file"})
    assert reporter.alarm(alarm(40))
    assert reporter.status()["failures"] == {"writing the hold": 1}
