"""How is what a server says made fit to be kept and shown?"""

from __future__ import annotations

import re

LONGEST = 300

_SECRET = re.compile(
    r"the canonical string.*"
    r"|(bearer|basic)\s+[\w.~+/=-]{8,}"
    r"|(x-amz-security-token|authorization|credential|signature)\s*[:=]\s*((bearer|basic)\s+)?\S+",
    re.IGNORECASE,
)
"""What a front may repeat of a request it refuses: AWS names the token among what was signed."""


def one_line(text: str) -> str:
    """Make one short line: no secrets of ours, nothing that a database or a page cannot hold."""
    # A NUL or half of a pair of surrogates is no text to PostgreSQL and would lose the whole note.
    shown = "".join(one if one.isprintable() else " " for one in text[: 20 * LONGEST])
    return _SECRET.sub("…", " ".join(shown.split()))[:LONGEST]
