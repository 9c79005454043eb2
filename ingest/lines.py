"""How is a batch of JSON lines read, so that one bad line never costs the others?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.auth import Sender
from app.errors import Problem
from ingest.documents import Post
from ingest.json_text import decode
from ingest.parse import KINDS, Arrival, read_post
from ingest.refusal import Refused


@dataclass(frozen=True, slots=True)
class LineResult:
    """One line: a document, or what is wrong with it."""

    number: int
    kind: str
    post: Post | None
    problem: Problem | None


def read_lines(raw: bytes, now: datetime, by: Sender) -> list[LineResult]:
    """Read every line that is not blank."""
    return [
        _read_line(number, line, now, by)
        for number, line in enumerate(raw.split(b"\n"), 1)
        if line.strip()
    ]


def _read_line(number: int, line: bytes, now: datetime, by: Sender) -> LineResult:
    kind = "unknown"
    try:
        document, text = decode(line.strip())
        if not isinstance(document, dict):
            raise Refused(422, "invalid_document", "expected a JSON object")
        given = document.get("kind")
        if not isinstance(given, str) or given not in KINDS:
            raise Refused(422, "invalid_field", "kind: expected one of " + ", ".join(KINDS), "kind")
        kind = given
        post = read_post(kind, document, Arrival(now, by.token_id, text))
        by.check(post.envelope.cluster, post.envelope.namespace)
    except Problem as problem:
        return LineResult(number, kind, None, problem)
    return LineResult(number, kind, post, None)
