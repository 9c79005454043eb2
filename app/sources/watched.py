"""How does a connection end whose server never comes to the end of its headers?

A time limit of a socket is for each reading of it: a server that sends a byte now and then, or one
“100 Continue” after another, holds the thread that waits for the answer's first line for ever.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse


def watched(limit_s: float) -> dict[str, type[HTTPConnectionPool]]:
    """Make pools, by scheme, whose connections are cut where the headers take longer."""

    class Plain(HTTPConnection):
        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            with _cut(self.sock, limit_s):
                return super().getresponse()

    class Tls(HTTPSConnection):
        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            with _cut(self.sock, limit_s):
                return super().getresponse()

    class PlainPool(HTTPConnectionPool):
        ConnectionCls: Any = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls: Any = Tls

    return {"http": PlainPool, "https": TlsPool}


@contextmanager
def _cut(connected: socket.socket | None, limit_s: float) -> Iterator[None]:
    is_cut = threading.Event()

    def cut() -> None:
        is_cut.set()
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # Headers that end with the connection would pass for complete ones.
        if is_cut.is_set():
            raise TimeoutError
