"""How is a row named, so that the same content always gets the same name?

Ids are the first 63 bits of a hash over what the row is about.  Nothing has to be read back after
an insert, two processes give one job one id, and a repeated document meets its own row.  At ten
million rows of one kind the chance of any collision is about 5e-6; the intake compares full keys
and salts again, so a collision costs a retry and never a document.
"""

from __future__ import annotations

import hashlib

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {letter: number for number, letter in enumerate(_ALPHABET)}
_LENGTH = 13
_LARGEST = (1 << 63) - 1


def digest(*parts: object) -> str:
    """Hash the parts to 32 hexadecimal digits; None and the empty string differ."""
    text = "\x1f".join(["\x00" if part is None else str(part) for part in parts])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def derive(*parts: object) -> int:
    """Derive a 63-bit id; the first part names the kind of row."""
    return int(digest(*parts)[:16], 16) >> 1


def show(row_id: int) -> str:
    """Write an id as the 13 letters used in addresses and JSON."""
    letters = []
    for _ in range(_LENGTH):
        row_id, rest = divmod(row_id, 32)
        letters.append(_ALPHABET[rest])
    return "".join(reversed(letters))


def read(text: str) -> int:
    """Read an id back; raise ValueError when the text is none of ours."""
    if len(text) != _LENGTH:
        raise ValueError("an id has 13 letters")
    number = 0
    for letter in text:
        if letter not in _VALUE:
            raise ValueError(f"an id has no letter {letter!r}")
        number = number * 32 + _VALUE[letter]
    if number > _LARGEST:
        raise ValueError("an id is smaller than 2^63")
    return number
