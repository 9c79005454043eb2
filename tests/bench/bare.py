"""How fast does this machine read the same answers from the source, with nothing done to them?"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

from app.sources.prometheus import ALWAYS, selector


def read(url: str, questions: Iterable[tuple[tuple[str, ...], float, float]]) -> tuple[float, int]:
    """Post the queries of questions (GPUs, start, end) one after the other; seconds and bytes."""
    place, size = urlsplit(url).netloc, 0
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    with closing(HTTPConnection(place, timeout=300)) as line:
        began = time.perf_counter()
        for uuids, start, end in questions:
            for label in ALWAYS:
                form = {"query": selector(label, uuids, start, end), "time": f"{end:.3f}"}
                line.request("POST", "/api/v1/query", urlencode(form), headers)
                answer = line.getresponse()
                size += len(answer.read())
                assert answer.status == 200, answer.status
        return time.perf_counter() - began, size
