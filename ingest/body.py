"""How is a request's body read, within limits and whatever its encoding?"""

from __future__ import annotations

import zlib

from starlette.requests import ClientDisconnect, Request

from ingest.refusal import Refused

MIB = 1 << 20


async def read_body(request: Request, limit_mib: float) -> bytes:
    """Read a body of at most `limit_mib`, before and after unpacking; raise Refused otherwise."""
    limit = int(limit_mib * MIB)
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit_mib)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        words = f"Content-Encoding {encoding[:40]!a} is not known: send gzip or none"
        raise Refused(415, "unsupported_encoding", words)
    parts: list[bytes] = []
    size = 0
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ("gzip", "deflate") else None
    try:
        async for part in request.stream():
            piece = part if unpack is None else _unpacked(unpack, part, limit + 1 - size)
            size += len(piece)
            if size > limit or (unpack is not None and unpack.unconsumed_tail):
                raise _too_large(limit_mib)
            parts.append(piece)
    except ClientDisconnect:
        raise Refused(400, "incomplete", "the sender hung up in the middle of the body") from None
    if unpack is not None and not unpack.eof:
        raise Refused(400, "bad_encoding", "the compressed body ends in the middle")
    return b"".join(parts)


def _unpacked(unpack: zlib._Decompress, part: bytes, room: int) -> bytes:
    try:
        return unpack.decompress(part, max(room, 1))
    except zlib.error as error:
        words = f"the body is not compressed as declared: {error}"
        raise Refused(400, "bad_encoding", words) from None


def _too_large(limit_mib: float) -> Refused:
    return Refused(
        413,
        "too_large",
        f"a document may have at most {limit_mib:g} MiB; send several, or raise "
        "WITNESS_BODY_LIMIT_MIB (and the limit of a proxy in between)",
    )
