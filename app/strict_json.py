"""Which JSON may leave the service, so that no reader loses a digit or meets a bare NaN?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

SAFE_INTEGER = 2**53
"""From here on readers that keep numbers as doubles (browsers) lose digits."""


def strict(value: Any) -> Any:
    """Give the value with only what strict JSON and every reader can hold.

    NaN and infinities become the strings "NaN", "Infinity" and "-Infinity"; integers from 2^53 on
    become strings of their digits; datetimes become RFC 3339 in UTC; tuples become lists.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -SAFE_INTEGER < value < SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return {str(key): strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [strict(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def rfc3339(moment: datetime) -> str:
    """Write an aware datetime in UTC with a Z; a fraction only where there is one."""
    text = moment.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"


def dumps(value: Any) -> str:
    """Write a value as strict JSON."""
    return json.dumps(strict(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


class StrictJSON(Response):
    """An answer in strict JSON.

    Lone surrogates, which JSON text can carry and UTF-8 cannot, are written as escapes.
    """

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the content, strict."""
        text = dumps(content)
        try:
            return text.encode()
        except UnicodeEncodeError:
            return json.dumps(strict(content), allow_nan=False, separators=(",", ":")).encode()


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
