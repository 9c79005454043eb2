"""In which words does a preview say what it looked at and what it found?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# True; false and in the way, or a hazard; unknown; a plain fact.
State = Literal["t", "x", "u", "f"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that would be gone; `certain` False: whether it would be is not known."""

    words: str
    certain: bool = True


def listed(names: tuple[str, ...] | list[str], most: int = 4) -> str:
    """Write names in a row: "a, b and 3 more"."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def counted(number: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
