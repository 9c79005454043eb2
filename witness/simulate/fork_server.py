"""What runs between a caller and its ranks: a process that is ready to fork?

Started by `witness.simulate.fleet`, never by hand. It has one thread, so that forking is safe, and
has imported what every rank imports: DistributedDataParallel alone brings more than a second of
imports, which 32 ranks would each pay.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from witness.simulate import ranks


def serve(descriptor: int) -> None:
    """Answer jobs from the channel until the caller hangs up or dies."""
    channel = socket.socket(fileno=descriptor)
    messages = Connection(os.dup(descriptor))
    _preload()
    while True:
        mark, stdio, _, _ = socket.recv_fds(channel, 1, 2)
        if not mark:
            return
        request = messages.recv_bytes()
        answer = _in_supervisor(request, stdio, channel)
        for one in stdio:
            os.close(one)
        if answer is None:
            return
        messages.send_bytes(answer)


def _preload() -> None:
    import torch
    import torch._dynamo
    import torch.distributed
    import torch.nn.parallel
    import torch.profiler

    torch.set_num_threads(1)
    # A collection in a child would touch, and so copy, every page of these objects.
    gc.collect()
    gc.freeze()


def _in_supervisor(request: bytes, stdio: list[int], channel: socket.socket) -> bytes | None:
    """Fork the supervisor of one job and wait for its answer; None if the caller hung up."""
    reading, writing = os.pipe()
    server = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(reading)
        _supervisor(request, stdio, server, Connection(writing, readable=False))
    os.close(writing)
    try:
        with Connection(reading, writable=False) as answers:
            ready, _, _ = select.select([answers.fileno(), channel.fileno()], [], [])
            if answers.fileno() not in ready:
                return None
            try:
                return answers.recv_bytes()
            except EOFError:
                return _broken("the supervisor of the ranks ended without an answer")
    finally:
        # The supervisor leads a process group of its own: this ends every rank and its children.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(supervisor, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGKILL)
        os.waitpid(supervisor, 0)


def _broken(text: str) -> bytes:
    return pickle.dumps({"broken": text, "results": {}, "failures": []})


def _supervisor(request: bytes, stdio: list[int], server: int, answers: Connection) -> None:
    try:
        os.setsid()
        ranks.die_with(server)
        os.dup2(stdio[0], 1)
        os.dup2(stdio[1], 2)
        answer = pickle.dumps(_run(pickle.loads(request)))  # noqa: S301 our own parent
    except BaseException:
        answer = _broken(traceback.format_exc())
    with contextlib.suppress(OSError):
        answers.send_bytes(answer)
    os._exit(0)


def _run(job: dict[str, Any]) -> dict[str, Any]:
    os.environ.clear()
    os.environ.update(job["environ"])
    os.chdir(job["folder"])
    sys.path[:] = job["path"]
    return ranks.supervise(job)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
