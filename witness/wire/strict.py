"""How does any value of a training script become JSON that every reader takes?

A reporter must not fail because a step is a numpy integer or a loss is NaN, so nothing here raises
for a value: what JSON cannot hold is written as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

# Deeper than any document; ends values that contain themselves.
DEEPEST = 40

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_canonical = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode


def to_json(value: object) -> str:
    """Write any value as strict JSON on one line; see `plain` for what becomes of it."""
    return _encode(plain(value))


def to_line(document: Mapping[str, Any]) -> bytes:
    """Write a document as one line, without the line's end."""
    return to_json(document).encode("ascii")


def canonical(value: object) -> str:
    """Write a value in one spelling: keys sorted, no white space."""
    return _canonical(plain(value))


def plain(value: object, depth: int = 0) -> Any:
    """Turn a value into what JSON holds: dicts with text keys, lists, texts, numbers, None.

    NaN and infinities become "NaN", "Infinity" and "-Infinity". Scalars of numpy and torch become
    numbers (a tensor on a device is waited for), sets become sorted lists, times RFC 3339, bytes
    hexadecimal. NUL and lone surrogates, which no database holds, are replaced.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, str):
        return _text(value)
    if depth >= DEEPEST:
        return _text(f"nested deeper than {DEEPEST}")
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return _other(value, depth)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: str) -> str:
    clean = value.replace("\x00", "\ufffd")
    try:
        clean.encode("utf-8")
    except UnicodeEncodeError:
        return clean.encode("utf-8", "backslashreplace").decode("utf-8")
    return clean


def _key(key: object) -> str:
    if isinstance(key, str):
        return _text(key)
    said = plain(key, DEEPEST)
    return said if isinstance(said, str) else _encode(said)


def _other(value: object, depth: int) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set | frozenset):
        return sorted((plain(item, depth + 1) for item in value), key=_canonical)
    for name in ("item", "tolist"):  # a scalar of numpy or torch, then an array of either
        method: Callable[[], object] | None = getattr(value, name, None)
        if method is not None:
            try:
                return plain(method(), depth + 1)
            except (TypeError, ValueError, RuntimeError):
                continue
    return _text(str(value))
