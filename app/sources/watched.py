"""How does a connection end whose server never comes to the end of a line?

A time limit of a socket is for each reading of it: a server that sends a byte now and then, or one
“100 Continue” after another, holds the thread that waits for the answer's first line for ever. So
does one that never ends the line with a chunk's size, or sends one trailer after another.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

_SOCKET = "_socket_of_the_answer"


def watched(limit_s: float) -> dict[str, type[HTTPConnectionPool]]:
    """Make pools, by scheme, whose connections are cut where the headers take longer."""

    class Plain(HTTPConnection):
        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            return _answer(self.sock, limit_s, super().getresponse)

    class Tls(HTTPSConnection):
        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            return _answer(self.sock, limit_s, super().getresponse)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls: Any = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls: Any = Tls

    return {"http": PlainPool, "https": TlsPool}


def _answer(
    connected: socket.socket | None, limit_s: float, get: Callable[[], HTTPResponse]
) -> HTTPResponse:
    with cut(connected, limit_s):
        response = get()
    response.__dict__[_SOCKET] = connected
    return response


def socket_of(response: object) -> socket.socket | None:
    """Give the socket that an answer comes from, also where its connection is let go of."""
    found = getattr(response, _SOCKET, None)
    return found if isinstance(found, socket.socket) else None


@contextmanager
def cut(connected: socket.socket | None, limit_s: float) -> Iterator[None]:
    """Cut a connection off after so many seconds; raises `TimeoutError` where that was done."""
    is_cut = threading.Event()

    def end() -> None:
        is_cut.set()
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # Headers that end with the connection would pass for complete ones.
        if is_cut.is_set():
            raise TimeoutError
