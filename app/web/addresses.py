"""Which row does an address name?"""

from __future__ import annotations

from app.errors import not_found
from app.store import ids


def read_id(text: str, noun: str) -> int:
    """Read an id out of an address; raise 404 naming the noun when it is none of ours."""
    try:
        return ids.read(text)
    except ValueError:
        raise not_found(f"no {noun} with this id") from None
