"""How does one function run on many gloo ranks of this machine, quickly and leaving nothing behind?

`run` sends a job to a fork server: one clean process without threads that has imported torch
already. For every job the server forks a supervisor, the supervisor loads the function and forks
the ranks (`witness.simulate.ranks`). So a caller may have threads, warnings that are errors and a
captured standard output, and 32 ranks still start in seconds. This module itself needs no torch.
"""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

START_S = 120.0  # The first import of torch on a machine whose disk and cores are busy.
MARGIN_S = 15.0  # What the supervisor may take beyond the job's own time before we give up on it.


@dataclass(frozen=True)
class Failure:
    """Say how one rank ended without a result.

    `exit_code` is negative for a signal, and None for a rank that was ended together with the
    others. `detail` is a traceback, or the stack at which a hanging rank stood.
    """

    rank: int
    reason: str
    detail: str = ""
    exit_code: int | None = None


class FleetError(RuntimeError):
    """Some rank gave no result; `failures` has the first cause first, `results` what came."""

    def __init__(self, failures: Sequence[Failure], results: Mapping[int, Any]) -> None:
        self.failures = {one.rank: one for one in failures}
        self.results = dict(results)
        parts = [f"rank {one.rank} {one.reason}\n{one.detail}".rstrip() for one in failures]
        super().__init__("\n".join(parts))


class _Server:
    """The fork server of this process and the one channel to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 ourselves
                [sys.executable, "-m", "witness.simulate.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
            )
        self.owner = os.getpid()
        self.socket = ours
        self.channel = Connection(os.dup(ours.fileno()))

    def ask(self, request: dict[str, Any], wait_s: float) -> dict[str, Any]:
        """Send a job with our standard output and error, and wait for its answer."""
        socket.send_fds(self.socket, [b"j"], [1, 2])
        self.channel.send_bytes(pickle.dumps(request))
        if not self.channel.poll(wait_s):
            raise TimeoutError(f"the fork server did not answer within {wait_s:.0f} s")
        answer: dict[str, Any] = pickle.loads(self.channel.recv_bytes())  # noqa: S301 our own child
        return answer

    def close(self) -> None:
        """Hang up: the server then ends its ranks and itself."""
        self.channel.close()
        self.socket.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_lock = threading.Lock()
_running: list[_Server] = []


def _server() -> _Server:
    if _running and _running[0].owner != os.getpid():
        _running.clear()  # We are a fork of the owner: its channel is not ours to use.
    if _running and _running[0].process.poll() is not None:
        close()
    if not _running:
        _running.append(_Server())
    return _running[0]


def close() -> None:
    """End the fork server and whatever it still runs; the next `run` starts another one."""
    while _running:
        server = _running.pop()
        if server.owner == os.getpid():
            server.close()


atexit.register(close)


def run(
    world_size: int,
    gpus_per_node: int,
    target: Callable[..., Any],
    *args: Any,
    timeout_s: float = 60.0,
    grace_s: float = 2.0,
    environments: Sequence[Mapping[str, str]] | None = None,
) -> list[Any]:
    """Run `target(*args)` on every rank of one gloo process group; give the results by rank.

    Each rank is a process of its own with one torch thread, an initialised process group over
    loopback, and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, NODE_NAME
    (`node-<i>`), MASTER_ADDR and MASTER_PORT in its environment, which otherwise is the caller's;
    `environments` adds variables rank by rank. `target` must be a module's own function or a
    method reachable by name, importable elsewhere; arguments and results must be picklable.

    Raises FleetError where a rank raises, exits, is killed, or has given no result after
    `timeout_s` seconds (the start of the ranks included, the first start of the server not).
    The other ranks get `grace_s` seconds to end by themselves and are then killed, with
    everything they started. Exit handlers of `atexit` do not run in the ranks.
    """
    name = f"{target.__module__}:{target.__qualname__}"
    if target.__module__ == "__main__" or "<" in target.__qualname__:
        raise ValueError(f"{name} cannot be imported by the ranks: it must be a module's own")
    if environments is not None and len(environments) != world_size:
        raise ValueError(f"{len(environments)} environments for {world_size} ranks")
    request = {
        "world_size": world_size,
        "gpus_per_node": gpus_per_node,
        "target": name,
        "args": pickle.dumps(args),
        "timeout_s": timeout_s,
        "grace_s": grace_s,
        "environments": [dict(one) for one in environments or [{}] * world_size],
        "environ": dict(os.environ),
        "path": list(sys.path),
        "folder": os.getcwd(),  # noqa: PTH109 the server changes into it
    }
    return _results(_ask(request, timeout_s + grace_s + MARGIN_S + START_S), world_size)


def _ask(request: dict[str, Any], wait_s: float) -> dict[str, Any]:
    with _lock:
        try:
            return _server().ask(request, wait_s)
        except (EOFError, ConnectionError) as error:
            close()
            raise RuntimeError("the fork server ended; its own words are above") from error
        except BaseException:
            # Whatever cut us short (a test's time limit, Ctrl-C): the ranks end with the channel.
            close()
            raise


def _results(answer: dict[str, Any], world_size: int) -> list[Any]:
    if answer["broken"]:
        raise RuntimeError(f"the ranks could not be started\n{answer['broken']}")
    results = {
        rank: pickle.loads(data)  # noqa: S301 our own child
        for rank, data in answer["results"].items()
    }
    if answer["failures"]:
        raise FleetError([Failure(*one) for one in answer["failures"]], results)
    return [results[rank] for rank in range(world_size)]
