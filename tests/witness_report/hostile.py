"""How does a test stand up a server that behaves as badly as networks and servers do?"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self

Behaviour = Callable[[socket.socket, bytes], None]


class HostileServer:
    """A TCP server on the loopback; each request is handled by `behaviour`, which may be changed.

    `bodies` are those of complete requests in order of arrival, `requests` their heads.
    """

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.behaviour, self._tls = behaviour, tls
        self.bodies: list[bytes] = []
        self.heads: list[bytes] = []
        self.stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        # Closing alone does not wake a thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def documents(self) -> list[dict[str, Any]]:
        """Give every document that came in whole, repeats included."""
        lines = [line for body in self.bodies for line in body.split(b"\n") if line]
        return [json.loads(line) for line in lines]

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(taken,), daemon=True).start()

    def _serve(self, taken: socket.socket) -> None:
        try:
            with taken if self._tls is None else self._tls.wrap_socket(taken, True) as line:
                line.settimeout(20)
                head, body = read_request(line)
                self.heads.append(head)
                self.bodies.append(body)
                self.behaviour(line, body)
        except OSError:
            return


def read_request(line: socket.socket) -> tuple[bytes, bytes]:
    """Read one request with a Content-Length, or without a body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(line)
    head, _, body = got.partition(b"\r\n\r\n")
    length = 0
    for field in head.split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += _more(line)
    return head, body


def _more(line: socket.socket) -> bytes:
    got = line.recv(65536)
    if not got:
        raise ConnectionError("the other side hung up")
    return got


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Answer the same to everything."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    whole = "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def behave(line: socket.socket, _: bytes) -> None:
        line.sendall(whole)

    return behave


def raw(content: bytes) -> Behaviour:
    """Answer bytes that need not be HTTP."""

    def behave(line: socket.socket, _: bytes) -> None:
        line.sendall(content)

    return behave


def accepting(line: socket.socket, body: bytes) -> None:
    """Accept every line, as the service does."""
    results = [
        {"line": number, "status": 201, "id": "x", "url": "/x"}
        for number, _ in enumerate(body.splitlines(), 1)
    ]
    said = {"results": results, "accepted": len(results), "refused": 0}
    answer(200, json.dumps(said).encode())(line, body)


def results(*statuses: int) -> Behaviour:
    """Answer with one result a line, with these statuses."""
    said = {
        "results": [
            {"line": number, "status": status, "error": {"message": "no", "field": "step"}}
            for number, status in enumerate(statuses, 1)
        ]
    }
    return answer(200, json.dumps(said).encode())


def silent(server: HostileServer) -> Behaviour:
    """Take requests and never answer."""

    def behave(_: socket.socket, __: bytes) -> None:
        server.stopping.wait(30)

    return behave


def dripping(server: HostileServer) -> Behaviour:
    """Answer one byte every now and then, for ever."""

    def behave(line: socket.socket, _: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not server.stopping.wait(0.05):
            line.sendall(b"x")

    return behave


class BlackHole:
    """An address whose connections are never completed: a listener with a full queue."""

    def __enter__(self) -> Self:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._fill: list[socket.socket] = []
        for _ in range(8):  # further SYNs are dropped
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", self.port))
            self._fill.append(one)
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self._fill, self._listener):
            one.close()
