"""How is an answer read so that it can neither grow nor take for ever?

The pool's time limit is for each reading of the socket: a source that drips would hold a thread for
ever. What comes compressed, though nobody asked, is unpacked here in small pieces.
"""

from __future__ import annotations

import time
import zlib

import urllib3
from urllib3.exceptions import ReadTimeoutError

from app.sources.ports import Refused, SourceError
from app.sources.watched import cut, socket_of

PIECE = 1 << 16
ANSWER_LIMIT = 64 << 20  # more is asked for in smaller pieces
PACKED = frozenset({"gzip", "x-gzip", "deflate"})
EITHER_HEADER = zlib.MAX_WBITS | 32


class TooMuch(SourceError):
    """The source will not give so much in one answer; `received` bytes came all the same."""

    def __init__(self, message: str, received: int = 0) -> None:
        super().__init__(message)
        self.received = received


def read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Read an answer up to the limit and the deadline (monotonic); half an answer raises.

    Raises `TooMuch` above the limit, `Refused` for an encoding that cannot be read, urllib3's
    `HTTPError` for what breaks off or takes too long.
    """
    try:
        with cut(socket_of(response), max(deadline - time.monotonic(), 0.0)):
            return _read(response, deadline)
    except SourceError:
        response.close()  # what is still to come must not be read by whoever has it next
        raise
    except TimeoutError:
        response.close()
        raise _too_slow() from None


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    promised = response.headers.get("Content-Length", "")
    if promised.isascii() and promised.isdigit() and int(promised[:20]) > ANSWER_LIMIT:
        raise TooMuch(_too_large())
    unpack = _unpacker(response.headers.get("Content-Encoding"))
    parts, size, came = [], 0, 0
    while piece := response.read1(PIECE, decode_content=False):
        came += len(piece)
        if time.monotonic() > deadline:
            response.close()
            raise _too_slow()
        for part in [piece] if unpack is None else unpack.parts(piece):
            size += len(part)
            if size > ANSWER_LIMIT:
                raise TooMuch(_too_large(), came)
            parts.append(part)
        if came > ANSWER_LIMIT:
            raise TooMuch(_too_large(), came)
    if unpack is not None and not unpack.is_whole:
        raise Refused("The source's answer is compressed and breaks off.")
    return b"".join(parts)


def _too_slow() -> ReadTimeoutError:
    return ReadTimeoutError(None, None, "the answer takes too long")  # type: ignore[arg-type]


def _too_large() -> str:
    return f"The answer is larger than {ANSWER_LIMIT >> 20} MiB."


class _Unpacker:
    """Unpacks gzip or zlib in pieces of bounded size."""

    def __init__(self) -> None:
        self._packed = zlib.decompressobj(EITHER_HEADER)

    @property
    def is_whole(self) -> bool:
        return self._packed.eof

    def parts(self, data: bytes) -> list[bytes]:
        """Unpack what came; no more at once than would be refused anyway."""
        found, size = [], 0
        while data and size <= ANSWER_LIMIT:
            try:
                part = self._packed.decompress(data, PIECE)
            except zlib.error:
                raise Refused("The source's answer is compressed and cannot be unpacked.") from None
            data = self._packed.unconsumed_tail
            found.append(part)
            size += len(part)
        return found


def _unpacker(encoding: str | None) -> _Unpacker | None:
    named = (encoding or "identity").strip().lower()
    if named == "identity":
        return None
    if named not in PACKED:
        raise Refused("The source's answer is encoded in a way that was not asked for.")
    return _Unpacker()
