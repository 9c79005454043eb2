"""What is one piece of evidence on a page?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """One piece of evidence; kind is hit, half, found, unknown or ""."""

    label: str
    value: str
    kind: str = ""
