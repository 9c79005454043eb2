"""Does a fleet of ranks give every result, say how a rank ended, and leave nothing behind?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from witness.simulate import fleet

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "NODE_NAME", "COLOUR", "SHARED")


def add_up(start: int) -> tuple[torch.Tensor, dict[str, str], int, int]:
    total = torch.tensor([start + dist.get_rank()])
    dist.all_reduce(total)
    told = {name: os.environ.get(name, "") for name in NAMES}
    return total, told, os.getpid(), torch.get_num_threads()


def misbehave(rank: int, how: str, note: str) -> str:
    """Do something bad on one rank while the others wait for it, or finish."""
    Path(note, str(os.getpid())).write_text("")
    if dist.get_rank() == rank:
        child = subprocess.Popen(["sleep", "600"])
        Path(note, str(child.pid)).write_text("")
        if how == "raise":
            raise ValueError("a wrong number")
        if how == "exit":
            sys.exit(3)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hang":
            time.sleep(600)
        if how == "unpicklable":
            return lambda: None  # type: ignore[return-value]
    return "fine"


def wait_for_a_rank_that_died() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def many_bytes() -> bytes:
    return b"x" * 3_000_000


def speak() -> None:
    os.write(1, b"rank speaks\n")


def alive(folder: Path) -> list[int]:
    """Find processes of the noted ids that still run."""
    found = []
    for note in folder.iterdir():
        try:
            state = Path(f"/proc/{note.name}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            continue
        if state != "Z":
            found.append(int(note.name))
    return found


def nothing_left(folder: Path) -> bool:
    deadline = time.monotonic() + 5
    while alive(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive(folder) == []


def test_every_rank_has_its_place_and_gives_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARED", "yes")
    environments = [{}, {"COLOUR": "red"}, {"NODE_NAME": "elsewhere"}, {}]
    results = fleet.run(4, 2, add_up, 10, environments=environments)
    assert [total.item() for total, *_ in results] == [46] * 4
    assert len({pid for _, _, pid, _ in results}) == 4
    assert [threads for *_, threads in results] == [1] * 4
    told = [one for _, one, *_ in results]
    assert told[1] == {
        "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "GROUP_RANK": "0",
        "NODE_NAME": "node-0", "COLOUR": "red", "SHARED": "yes",
    }  # fmt: skip
    assert [one["NODE_NAME"] for one in told] == ["node-0", "node-0", "elsewhere", "node-1"]
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1", "0", "1"]


@pytest.mark.parametrize(
    ("how", "reason", "code"),
    [
        ("raise", "raised ValueError: a wrong number", 1),
        ("exit", "ended with exit code 3 and no result", 3),
        ("kill", "was killed by SIGKILL", -9),
    ],
)
def test_a_rank_that_ends_badly_is_named_and_the_others_keep_their_results(
    how: str, reason: str, code: int, tmp_path: Path
) -> None:
    with pytest.raises(fleet.FleetError) as caught:
        fleet.run(3, 1, misbehave, 1, how, str(tmp_path), grace_s=20)
    assert set(caught.value.failures) == {1}
    failure = caught.value.failures[1]
    assert (failure.reason, failure.exit_code) == (reason, code)
    assert ("in misbehave" in failure.detail) == (how == "raise")
    assert caught.value.results == {0: "fine", 2: "fine"}
    assert nothing_left(tmp_path)


def test_a_result_that_cannot_be_sent_is_an_error_of_its_rank(tmp_path: Path) -> None:
    with pytest.raises(fleet.FleetError, match=r"rank 2 raised .*lambda"):
        fleet.run(3, 1, misbehave, 2, "unpicklable", str(tmp_path))


def test_a_hanging_rank_is_ended_in_time_and_its_stack_is_told(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(fleet.FleetError, match=r"rank 2 gave no result within 1\.5 s") as caught:
        fleet.run(3, 1, misbehave, 2, "hang", str(tmp_path), timeout_s=1.5)
    assert time.monotonic() - began < 20
    assert "in misbehave" in caught.value.failures[2].detail
    assert nothing_left(tmp_path)


def test_ranks_that_wait_for_a_dead_one_are_ended_with_it() -> None:
    began = time.monotonic()
    with pytest.raises(fleet.FleetError) as caught:
        fleet.run(3, 1, wait_for_a_rank_that_died, grace_s=1)
    assert time.monotonic() - began < 20
    assert set(caught.value.failures) == {0, 1, 2}
    assert next(iter(caught.value.failures.values())).reason == "was killed by SIGKILL"


def test_large_results_and_words_arrive(capfd: pytest.CaptureFixture[str]) -> None:
    assert [len(one) for one in fleet.run(2, 1, many_bytes)] == [3_000_000] * 2
    fleet.run(2, 1, speak)
    assert capfd.readouterr().out.count("rank speaks\n") == 2


def test_callers_with_threads_take_turns() -> None:
    sums: list[int] = []

    def one(start: int) -> None:
        sums.append(fleet.run(2, 1, add_up, start)[0][0].item())

    callers = [threading.Thread(target=one, args=(start,)) for start in (0, 100)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(sums) == [1, 201]


def test_when_the_caller_is_killed_its_ranks_die(tmp_path: Path) -> None:
    call = (
        "from tests.witness_simulate.test_fleet import misbehave\n"
        "from witness.simulate import fleet\n"
        f"fleet.run(3, 1, misbehave, 0, 'hang', {str(tmp_path)!r})"
    )
    with subprocess.Popen([sys.executable, "-c", call]) as caller:
        try:
            deadline = time.monotonic() + 90
            while len(alive(tmp_path)) < 4 and time.monotonic() < deadline:
                time.sleep(0.05)
            started = len(alive(tmp_path))
        finally:
            caller.kill()
    assert started == 4
    assert nothing_left(tmp_path)


def test_a_target_that_ranks_cannot_import_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be imported by the ranks"):
        fleet.run(2, 1, lambda: None)
    with pytest.raises(ValueError, match="3 environments for 2 ranks"):
        fleet.run(2, 1, speak, environments=[{}] * 3)


def test_a_target_that_is_gone_is_said_to_be() -> None:
    def ghost() -> None:
        """Pretend to be a function of a module that has no such function."""

    ghost.__qualname__ = "ghost"
    with pytest.raises(RuntimeError, match="no attribute 'ghost'"):
        fleet.run(2, 1, ghost)
