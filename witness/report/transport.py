"""How is one HTTP request sent so that it ends by a deadline, whatever the other side does?

A timeout of a socket begins anew with every byte, so a server that drips would hold a connection
for ever. Here each operation gets what is left until one deadline. Redirects are answers, not
followed: the token is for one host. Resolving the host's name is the one step that cannot be cut
short, so requests belong into a thread of their own.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

# No answer that we ask for is longer.
LONGEST_ANSWER = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def retry_after_s(self, now: float) -> float | None:
        """Read Retry-After as seconds from `now` (Unix time); None if absent."""
        value = self.headers.get("retry-after", "").strip()
        if value.isdecimal():
            return float(value)
        try:
            return max(parsedate_to_datetime(value).timestamp() - now, 0.0) if value else None
        except (ValueError, TypeError, OverflowError):
            return None


def request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout_s: float,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """Send a request and read its answer within `timeout_s`.

    Raises OSError (refused, reset, timed out, TLS), http.client.HTTPException (an answer that is
    none), ValueError (a URL that is none).
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http or https address")
    deadline = time.monotonic() + timeout_s
    tls = (context or ssl.create_default_context()) if parts.scheme == "https" else None
    with closing(_Connection(parts.hostname, parts.port, tls, deadline)) as connection:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered early
            connection.request(method, path, body, {**headers, "Connection": "close"})
        with closing(connection.getresponse()) as answer:
            read = answer.read(LONGEST_ANSWER + 1)
            if len(read) > LONGEST_ANSWER:
                raise http.client.HTTPException("the answer does not end")
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, read)


class _Connection(http.client.HTTPConnection):
    """A connection all of whose operations share a deadline."""

    def __init__(
        self, host: str, port: int | None, tls: ssl.SSLContext | None, deadline: float
    ) -> None:
        super().__init__(host, port or (443 if tls else 80))
        self._tls, self._deadline = tls, deadline

    def connect(self) -> None:
        plain = _connected(self.host, self.port, self._deadline)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(_left(self._deadline))
            secured = plain if self._tls is None else self._wrapped(plain)
        except BaseException:
            plain.close()
            raise
        self.sock = _Bounded(secured, self._deadline)

    def _wrapped(self, plain: socket.socket) -> socket.socket:
        assert self._tls is not None
        return self._tls.wrap_socket(plain, server_hostname=self.host)


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """Connect to the first address that answers; all of them share the deadline."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem: OSError = OSError(f"{host} has no address")
    for place, (family, kind, protocol, _, address) in enumerate(found):
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:
            problem = error
            continue
        try:
            made.settimeout(_left(deadline) / (len(found) - place))
            made.connect(address)
        except OSError as error:
            made.close()
            problem = error
        else:
            return made
    raise problem


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no complete answer in time")
    return left


class _Bounded:
    """As much of a socket as `http.client` uses, with a deadline.

    The client lets go of the connection before it reads an answer: the answer then closes it.
    """

    def __init__(self, under: socket.socket, deadline: float) -> None:
        self._under, self._deadline = under, deadline
        self._read_by: _Reading | None = None

    def sendall(self, data: Any) -> None:
        self._under.settimeout(_left(self._deadline))
        self._under.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        self._read_by = _Reading(self._under, self._deadline)
        return io.BufferedReader(self._read_by)

    def close(self) -> None:
        if self._read_by is None:
            self._under.close()


class _Reading(io.RawIOBase):
    def __init__(self, under: socket.socket, deadline: float) -> None:
        self._under, self._deadline = under, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._under.settimeout(_left(self._deadline))
        return self._under.recv_into(buffer)

    def close(self) -> None:
        self._under.close()
        super().close()
