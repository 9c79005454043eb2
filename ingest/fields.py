"""How is one field of a document read, strictly and with the field named when it is wrong?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ingest.refusal import invalid

NAME_LIMIT = 8_192
TEXT_LIMIT = 65_536
STEP_LIMIT = 2**63
COUNT_LIMIT = 2**31


def name(document: Mapping[str, Any], field: str) -> str:
    """Read a name that must be there; any text but the empty one, however odd."""
    value = document.get(field)
    if not isinstance(value, str) or not value:
        raise invalid(field, "a text that is not empty", value)
    if len(value) > NAME_LIMIT:
        raise invalid(field, f"at most {NAME_LIMIT} letters", f"{len(value)} letters")
    return value


def text(document: Mapping[str, Any], field: str, path: str | None = None) -> str | None:
    """Read an optional text; None when absent or null."""
    value = document.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid(path or field, "a text", value)
    if len(value) > TEXT_LIMIT:
        raise invalid(path or field, f"at most {TEXT_LIMIT} letters", f"{len(value)} letters")
    return value


def integer(
    document: Mapping[str, Any],
    field: str,
    path: str | None = None,
    *,
    low: int = 0,
    limit: int = COUNT_LIMIT,
) -> int | None:
    """Read an optional integer from `low` to below `limit`; None when absent or null."""
    value = document.get(field)
    if value is None:
        return None
    if type(value) is not int or not low <= value < limit:
        raise invalid(path or field, f"an integer from {low} to {limit - 1}", value)
    return value


def required_integer(
    document: Mapping[str, Any],
    field: str,
    path: str | None = None,
    *,
    low: int = 0,
    limit: int = COUNT_LIMIT,
) -> int:
    """Read an integer that must be there."""
    value = integer(document, field, path, low=low, limit=limit)
    if value is None:
        raise invalid(path or field, f"an integer from {low} to {limit - 1}", None)
    return value


def step(document: Mapping[str, Any], field: str, path: str | None = None) -> int | None:
    """Read an optional step."""
    return integer(document, field, path, limit=STEP_LIMIT)


def required_step(document: Mapping[str, Any], field: str, path: str | None = None) -> int:
    """Read a step that must be there."""
    return required_integer(document, field, path, limit=STEP_LIMIT)


def number(document: Mapping[str, Any], field: str, path: str | None = None) -> float | None:
    """Read an optional number that is finite and not negative."""
    value = document.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(path or field, "a number", value)
    try:
        as_float = float(value)
    except OverflowError:
        raise invalid(path or field, "a number below 1e308", value) from None
    if not math.isfinite(as_float) or as_float < 0:
        raise invalid(path or field, "a finite number that is not negative", value)
    return as_float


def flag(document: Mapping[str, Any], field: str, path: str | None = None) -> bool | None:
    """Read an optional boolean."""
    value = document.get(field)
    if value is not None and not isinstance(value, bool):
        raise invalid(path or field, "true or false", value)
    return value


def moment(
    document: Mapping[str, Any], field: str, path: str | None = None
) -> tuple[datetime | None, bool]:
    """Read an optional RFC 3339 time; the second value says whether it carried a zone."""
    value = document.get(field)
    if value is None:
        return None, True
    expected = "a time like 2026-03-02T10:15:00Z"
    if not isinstance(value, str) or len(value) > 64:
        raise invalid(path or field, expected, value)
    try:
        parsed = datetime.fromisoformat(value.strip())
    except ValueError:
        raise invalid(path or field, expected, value) from None
    if parsed.tzinfo is None:
        return parsed.replace(tzinfo=UTC), False
    try:
        return parsed.astimezone(UTC), True
    except OverflowError:
        raise invalid(path or field, expected, value) from None


def texts(document: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Read an optional list of texts; empty when absent or null."""
    value = document.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise invalid(field, "a list of texts", value)
    return tuple(value)


def objects(document: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """Read a list of objects that must be there."""
    value = document.get(field)
    if not isinstance(value, list):
        raise invalid(field, "a list of objects", value)
    for place, item in enumerate(value):
        if not isinstance(item, dict):
            raise invalid(f"{field}[{place}]", "an object", item)
    return value
