"""How many documents does a server acknowledge, sent over many connections that stay open?

Run as a process of its own, so that the server's interpreter is not also the sender's:
`python -m tests.bench.client PORT TOKEN PATH CONNECTIONS FIRST COUNT BATCH`.  Prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from tests.bench.documents import alarm_bodies


class Sender(asyncio.Protocol):
    """One connection: sends the next request as soon as the answer is there."""

    def __init__(self, todo: list[bytes], took: list[float], bad: list[int]) -> None:
        """Share the list of requests with the other connections."""
        self.todo, self.took, self.bad = todo, took, bad
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self.read = bytearray()
        self.began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        """Collect one answer, then send the next request."""
        self.read += data
        head = self.read.find(b"\r\n\r\n")
        if head < 0:
            return
        low = bytes(self.read[:head]).lower()
        at = low.index(b"content-length:") + 15
        length = int(low[at : (low + b"\r\n").index(b"\r\n", at)])
        if len(self.read) < head + 4 + length:
            return
        status = int(self.read[9:12])
        self.took.append(time.perf_counter() - self.began)
        if status not in (200, 201):
            self.bad.append(status)
        self.read.clear()
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        """Say that a server hung up."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server hung up"))

    def _next(self) -> None:
        assert self.transport is not None
        if not self.todo:
            if not self.done.done():
                self.done.set_result(None)
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(self.todo.pop())


def requests(path: str, token: str, bodies: list[bytes], batch: int) -> list[bytes]:
    """Write whole requests in advance, the last one first."""
    whole = []
    for start in range(0, len(bodies), batch):
        body = b"\n".join(bodies[start : start + batch])
        head = (
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        whole.append(head.encode() + body)
    return whole[::-1]


async def send(port: int, todo: list[bytes], connections: int) -> dict[str, object]:
    """Send everything; give seconds, latencies and refusals."""
    loop = asyncio.get_running_loop()
    took: list[float] = []
    bad: list[int] = []
    began = time.perf_counter()
    senders = [
        (await loop.create_connection(lambda: Sender(todo, took, bad), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(sender.done for sender in senders))
    seconds = time.perf_counter() - began
    took.sort()
    return {
        "seconds": seconds,
        "requests": len(took),
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "refused": len(bad),
        "statuses": sorted(set(bad)),
    }


def main() -> None:
    """Build the requests, send them, print what was measured."""
    port, token, path, connections, first, count, batch = sys.argv[1:8]
    bodies = list(alarm_bodies(int(first), int(count)))
    todo = requests(path, token, bodies, int(batch))
    said = asyncio.run(send(int(port), todo, int(connections)))
    sys.stdout.write(json.dumps({**said, "bytes": len(bodies[0])}) + "\n")


if __name__ == "__main__":
    main()
