"""How is a document shown as it came: every digit, every NaN, and never through a number?

The text is cut into pieces and laid out anew; nothing is parsed into numbers, so that no digit
can be lost, and nothing recurses, so that no nesting is too deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.strict_json import SAFE_INTEGER

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_INTEGER = re.compile(r"-?\d+")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
LINE = 78
LONGEST_LINE = 2_000
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Laid:
    """A document in lines; `left_out` counts the lines that were not kept."""

    text: str
    left_out: int


def laid_out(body: str, most_lines: int = 400) -> Laid:
    """Lay a JSON text out: short lists and objects on one line, the rest a line an entry."""
    lines = _Layout(_PIECE.findall(body)).lines()
    kept = [_cut(line) for line in lines[:most_lines]]
    return Laid("\n".join(kept), len(lines) - len(kept))


def strict_text(body: str) -> str:
    """Give the document as strict JSON: NaN, infinities and integers from 2^53 on as strings."""
    pieces = [_strict_piece(piece) for piece in _PIECE.findall(body)]
    return "".join(", " if one == "," else ": " if one == ":" else one for one in pieces)


def strict_value(body: str) -> Any:
    """Give the document as a value for a strict JSON answer."""
    return json.loads(strict_text(body))


def _strict_piece(piece: str) -> str:
    if piece in _NOT_FINITE:
        return f'"{piece}"'
    if _INTEGER.fullmatch(piece) and len(piece) >= 16 and abs(int(piece)) >= SAFE_INTEGER:
        return f'"{piece}"'
    return piece


def _cut(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE:,} more characters)"


class _Layout:
    """Walks the pieces of a JSON text once and breaks them into lines."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces
        self._closings = _closings(pieces)
        self._lengths = [0]
        for piece in pieces:
            self._lengths.append(self._lengths[-1] + len(_spaced(piece)))
        self._lines: list[str] = []
        self._current = ""
        self._depth = 0

    def lines(self) -> list[str]:
        place = 0
        while place < len(self._pieces):
            place = self._take(place)
        self._break()
        return self._lines

    def _take(self, place: int) -> int:
        """Write one piece, or a whole list or object that fits on the line; give the next place."""
        piece = self._pieces[place]
        end = self._closings.get(place)
        if end is not None:
            if self._lengths[end + 1] - self._lengths[place] + len(self._current) <= LINE:
                self._current += "".join(map(_spaced, self._pieces[place : end + 1]))
                return end + 1
            self._current += piece
            self._break(deeper=1)
        elif piece in ("]", "}"):
            self._break(deeper=-1)
            self._current += piece
        elif piece == ",":
            self._comma(place)
        else:
            self._current += _spaced(piece)
        return place + 1

    def _comma(self, place: int) -> None:
        """A long list of plain values fills its lines; other entries get a line each."""
        self._current += ","
        following = self._pieces[place + 1] if place + 1 < len(self._pieces) else ""
        room = len(self._current) + len(following) + 2 <= LINE
        if room and _plain_pair(self._pieces, place):
            self._current += " "
        else:
            self._break()

    def _break(self, deeper: int = 0) -> None:
        if self._current.strip():
            self._lines.append(self._current.rstrip())
        self._depth = max(self._depth + deeper, 0)
        self._current = INDENT * self._depth


def _closings(pieces: Sequence[str]) -> dict[int, int]:
    """Give for each opening bracket the place of its closing one."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece in ("[", "{"):
            opened.append(place)
        elif piece in ("]", "}") and opened:
            closings[opened.pop()] = place
    return closings


def _spaced(piece: str) -> str:
    return f"{piece} " if piece in (",", ":") else piece


def _plain_pair(pieces: Sequence[str], comma: int) -> bool:
    """Tell whether a comma stands between two plain values of a list."""
    if comma < 2 or comma + 2 >= len(pieces):
        return False
    beside = (pieces[comma - 1], pieces[comma + 1])
    keyed = pieces[comma - 2] == ":" or pieces[comma + 2] == ":"
    return not keyed and not any(piece in ("[", "]", "{", "}") for piece in beside)
