"""Does one field of an alarm document hold what it must?"""

from collections.abc import Mapping
from typing import NoReturn

Pair = tuple[int, int]

RANK_LIMIT = 2**31
"""Ranks are stored as 32-bit signed integers."""
STEP_LIMIT = 2**63
"""Steps are stored as 64-bit signed integers."""
SHOWN_LENGTH = 60
"""An answer quotes at most this many characters of what it refuses."""


class AlarmError(ValueError):
    """An alarm document that cannot be read: which field, what was expected, what was there."""

    def __init__(self, field: str, expected: str, got: str) -> None:
        super().__init__(f"{field}: expected {expected}, got {got}")
        self.field = field
        self.expected = expected
        self.got = got


def fail(field: str, expected: str, value: object) -> NoReturn:
    """Refuse a field, quoting what it holds."""
    raise AlarmError(field, expected, shown(value))


def shown(value: object) -> str:
    """Write a value the way JSON writes it, cut to a length that fits an answer."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    if isinstance(value, str):
        return f'"{value[:SHOWN_LENGTH]}{"…" if len(value) > SHOWN_LENGTH else ""}"'
    if isinstance(value, int):
        return str(value) if abs(value) < 10**40 else "an integer of more than 40 digits"
    if isinstance(value, Mapping):
        return "an object"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else type(value).__name__


def step(value: object, field: str) -> int:
    """Read a step; a float, a boolean and NaN are none."""
    if type(value) is int and 0 <= value < STEP_LIMIT:
        return value
    fail(field, "a step, an integer from 0 to 2^63 - 1", value)


def optional_step(value: object, field: str) -> int | None:
    """Read a step or null."""
    return None if value is None else step(value, field)


def rank(value: object, field: str) -> int:
    """Read a global rank."""
    if type(value) is int and 0 <= value < RANK_LIMIT:
        return value
    fail(field, "a rank, an integer from 0 to 2^31 - 1", value)


def optional_rank(value: object, field: str) -> int | None:
    """Read a global rank or null."""
    return None if value is None else rank(value, field)


def optional_count(value: object, field: str) -> int | None:
    """Read a number of ranks, at least one, or null."""
    if value is None or (type(value) is int and 0 < value < RANK_LIMIT):
        return value
    fail(field, "a count, an integer from 1 to 2^31 - 1", value)


def text(value: object, field: str) -> str:
    """Read a text that is not empty."""
    if isinstance(value, str) and value:
        return value
    fail(field, "a text that is not empty", value)


def optional_text(value: object, field: str) -> str | None:
    """Read a text that is not empty, or null."""
    return None if value is None else text(value, field)


def items(value: object, field: str, expected: str) -> list[object] | tuple[object, ...]:
    """Read a list; null and a missing key are an empty one."""
    if isinstance(value, list | tuple):
        return value
    if value is None:
        return ()
    fail(field, expected, value)


def ranks(value: object, field: str) -> tuple[int, ...]:
    """Read a list of global ranks in the order given."""
    listed = items(value, field, "a list of ranks")
    return tuple([rank(one, f"{field}[{place}]") for place, one in enumerate(listed)])


def pair(value: object, field: str) -> Pair:
    """Read one comparison, `[target, replayer]`."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return rank(value[0], f"{field}[0]"), rank(value[1], f"{field}[1]")
    fail(field, "two ranks, [target, replayer]", value)


def pairs(value: object, field: str) -> tuple[Pair, ...]:
    """Read a list of comparisons in the order given."""
    listed = items(value, field, "a list of [target, replayer]")
    return tuple([pair(one, f"{field}[{place}]") for place, one in enumerate(listed)])


def window(value: object, field: str) -> tuple[int, int] | None:
    """Read `[first, last]` in order, or null."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        fail(field, "two steps, [first, last]", value)
    first, last = step(value[0], f"{field}[0]"), step(value[1], f"{field}[1]")
    if first > last:
        raise AlarmError(field, "a first step that is not after the last", f"[{first}, {last}]")
    return first, last
