"""Who forks the ranks of one job, watches them, and ends them all when one fails or hangs?"""

from __future__ import annotations

import ctypes
import datetime
import faulthandler
import gc
import importlib
import os
import pickle
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

TICK_S = 0.05
DUMP_S = 0.5  # What a hanging rank gets to write down where it stands.


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def load(name: str) -> Callable[..., Any]:
    """Import `module:qualified.name`."""
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name} cannot be called")
    target: Callable[..., Any] = found
    return target


def supervise(job: dict[str, Any]) -> dict[str, Any]:
    """Fork the ranks of a job, wait for them, and say what each one gave or how it ended."""
    target, args = load(job["target"]), pickle.loads(job["args"])  # noqa: S301 from our caller
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        watch = _Watch(job, Path(folder))
        watch.fork(target, args)
        watch.wait()
        watch.end()
    return {"broken": "", "results": watch.results, "failures": watch.failures}


class _Watch:
    """The ranks of one job: those that run, what they gave, how they failed."""

    def __init__(self, job: dict[str, Any], folder: Path) -> None:
        self.job = job
        self.folder = folder
        self.deadline = time.monotonic() + job["timeout_s"]
        self.pids: dict[int, int] = {}
        self.pipes: dict[Connection, int] = {}
        self.results: dict[int, bytes] = {}
        self.failures: list[tuple[int, str, str, int | None]] = []
        self.release = -1  # Writing end of a pipe whose closing lets finished ranks exit.

    def fork(self, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Fork one process a rank; rank 0 takes the socket that the store listens on."""
        supervisor = os.getpid()
        held, self.release = os.pipe()
        with socket.create_server(("127.0.0.1", 0), backlog=self.job["world_size"]) as listener:
            for rank in range(self.job["world_size"]):
                reading, writing = os.pipe()
                pid = os.fork()
                if pid == 0:
                    try:
                        os.close(self.release)
                        os.close(reading)
                        for pipe in self.pipes:
                            pipe.close()
                        die_with(supervisor)
                        answers = Connection(writing, readable=False)
                        _rank(rank, self, listener, held, answers, target, args)
                    finally:
                        os._exit(70)
                os.close(writing)
                self.pids[rank] = pid
                self.pipes[Connection(reading, writable=False)] = rank
        os.close(held)

    def wait(self) -> None:
        """Wait for every result, or until time is up: the job's, or the grace after a failure."""
        while self.pipes:
            for pipe in wait(list(self.pipes), TICK_S):
                self._read(pipe)  # type: ignore[arg-type]
            if self.failures:
                self.deadline = min(self.deadline, time.monotonic() + self.job["grace_s"])
                self.job["grace_s"] = float("inf")
            if time.monotonic() > self.deadline:
                self._give_up()

    def _read(self, pipe: Connection) -> None:
        rank = self.pipes.pop(pipe)
        with pipe:
            try:
                kind, payload, detail = pickle.loads(pipe.recv_bytes())  # noqa: S301 our own child
            except (EOFError, OSError):
                kind, payload, detail = "died", b"", ""
        if kind == "result":
            self.results[rank] = payload
            return
        code = self._exit_code(rank)
        if kind == "died":
            self.failures.append((rank, _ending(code), "", code))
        else:
            self.failures.append((rank, payload, detail, code))

    def _exit_code(self, rank: int) -> int | None:
        """Wait shortly for a rank that said it ends, or whose pipe broke."""
        for _ in range(int(2 / TICK_S)):
            pid, status = os.waitpid(self.pids[rank], os.WNOHANG)
            if pid:
                del self.pids[rank]
                return os.waitstatus_to_exitcode(status)
            time.sleep(TICK_S)
        return None

    def _give_up(self) -> None:
        late = sorted(self.pipes.values())
        first = not self.failures
        for rank in late:
            os.kill(self.pids[rank], signal.SIGUSR1)
        time.sleep(DUMP_S)
        limit = f"gave no result within {self.job['timeout_s']:g} s"
        for rank in late:
            stack = self.folder / f"stack-{rank}"
            detail = stack.read_text() if stack.exists() else ""
            reason = limit if first else "was ended with the others"
            self.failures.append((rank, reason, detail, None))
        for pipe in list(self.pipes):
            pipe.close()
        self.pipes.clear()

    def end(self) -> None:
        """Let the ranks that are done exit, and kill the others."""
        os.close(self.release)
        finished = {r for r in self.pids if r in self.results}
        for rank, pid in self.pids.items():
            if rank not in finished:
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 2
        for pid in self.pids.values():
            while not os.waitpid(pid, os.WNOHANG)[0]:
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.005)


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its channel and went on"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code} and no result"


def _rank(
    rank: int, watch: _Watch, listener: socket.socket, held: int, answers: Connection,
    target: Callable[..., Any], args: tuple[Any, ...],
) -> NoReturn:  # fmt: skip
    """Be one rank: join the group, call the target, send what it gave, leave when all are done."""
    code = 0
    message: tuple[str, bytes | str, str] | None = None
    try:
        stack = (watch.folder / f"stack-{rank}").open("w")
        faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)
        _join(rank, watch.job, listener)
        message = ("result", pickle.dumps(target(*args)), "")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1 if leaving.code else 0
    except BaseException as error:
        code = 1
        words = traceback.format_exception_only(error)[-1].strip()
        message = ("raised", f"raised {words}", traceback.format_exc())
    sys.stdout.flush()
    sys.stderr.flush()
    if message is not None:
        answers.send_bytes(pickle.dumps(message))
    answers.close()
    if code == 0 and message is not None:
        # Rank 0 serves the store: nobody leaves before everybody has finished.
        os.read(held, 1)
    os._exit(code)


def _join(rank: int, job: dict[str, Any], listener: socket.socket) -> None:
    import torch
    import torch.distributed as dist

    world_size, per_node = job["world_size"], job["gpus_per_node"]
    port = listener.getsockname()[1]
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world_size),
        LOCAL_RANK=str(rank % per_node),
        LOCAL_WORLD_SIZE=str(per_node),
        GROUP_RANK=str(rank // per_node),
        NODE_NAME=f"node-{rank // per_node}",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",
    )
    os.environ.update(job["environments"][rank])
    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=job["timeout_s"])
    # The socket was bound before the ranks were forked, so no other program can take its port.
    mine = listener.detach() if rank == 0 else None
    listener.close()
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", port, world_size, rank == 0, timeout=timeout, master_listen_fd=mine
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timeout)
