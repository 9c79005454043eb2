"""How do documents get to a running server, and what does it say to them?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

BATCH = 200
TIMEOUT_S = 60.0


class NotSentError(Exception):
    """The server cannot be reached, or does not take the documents; the text says why."""


@dataclass(slots=True)
class Outcome:
    """What became of the documents, by kind; `refused` holds the first reasons."""

    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


def send(url: str, token: str, documents: Iterable[Mapping[str, Any]]) -> Outcome:
    """Post documents in batches to /api/v1/events; raise NotSentError when that is not possible."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise NotSentError(f"{url} is no address of the form http://host:port.")
    outcome = Outcome()
    for batch in _batches(documents):
        results = _post(f"{url.rstrip('/')}/api/v1/events", token, batch)
        for document, result in zip(batch, results, strict=True):
            _count(outcome, str(document.get("kind")), result)
    return outcome


def _batches(documents: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for document in documents:
        batch.append(document)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _post(address: str, token: str, batch: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    body = "\n".join(json.dumps(document) for document in batch).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    # The scheme was checked: nothing but a web address gets here.
    request = Request(address, data=body, headers=headers, method="POST")  # noqa: S310
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            results: list[dict[str, Any]] = json.load(answer)["results"]
            return results
    except HTTPError as error:
        raise NotSentError(f"The server answered {error.code}: {_said(error)}") from error
    except URLError as error:
        raise NotSentError(f"Nothing answers at {address}: {error.reason}.") from error
    except (OSError, ValueError, KeyError) as error:
        raise NotSentError(f"What answers at {address} is not this service: {error}.") from error


def _said(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def _count(outcome: Outcome, kind: str, result: Mapping[str, Any]) -> None:
    if result.get("status") == 201:
        outcome.new[kind] += 1
    elif result.get("status") == 200:
        outcome.known[kind] += 1
    else:
        error = result.get("error") or {}
        outcome.refused.append(f"line {result.get('line')}: {error.get('message', 'refused')}")
