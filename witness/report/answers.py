"""What does an answer to a batch mean for each of its documents?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from witness.report.transport import Answer

# These say nothing against the document: the token, the limits or the server may be put right.
_TOKEN = {401, 403}
_PASSING = {408, 409, 423, 425, 429}
_BATCH_AT_FAULT = {400, 413, 415, 422}


@dataclass(slots=True)
class Meaning:
    """What becomes of the lines of a batch, by their place from 0; the others are sent again.

    `problem` is None where the whole batch was dealt with. `divide` says that the batch as a whole
    was refused, so that its lines have to be sent in smaller batches. `not_now` are lines to come
    back to much later: the token does not fit them, or a proxy does not let them through.
    """

    accepted: list[int] = field(default_factory=list)
    rejected: dict[int, dict[str, Any]] = field(default_factory=dict)
    not_now: list[int] = field(default_factory=list)
    problem: str | None = None
    divide: bool = False


def read_answer(answer: Answer, lines: int) -> Meaning:
    """Say what an answer to a batch of `lines` lines means."""
    if answer.status == 200:
        return _results(answer.body, lines)
    said = _message(answer.body)
    problem = f"the service answered {answer.status}" + (f": {said}" if said else "")
    if answer.status in _BATCH_AT_FAULT:
        if lines > 1:
            return Meaning(problem=problem, divide=True)
        if said is None:  # nobody who knows documents said this
            return Meaning(problem=problem, not_now=[0])
        return Meaning(problem=problem, rejected={0: {"status": answer.status, "message": said}})
    return Meaning(problem=problem)


def _results(body: bytes, lines: int) -> Meaning:
    meaning = Meaning()
    try:
        results = json.loads(body)["results"]
        for result in results:
            _one(meaning, result, lines)
    except (ValueError, KeyError, TypeError, RecursionError):
        meaning.problem = "the answer is not one of this service"
        return meaning
    done = len(set(meaning.accepted) | meaning.rejected.keys() | set(meaning.not_now))
    if done < lines and meaning.problem is None:
        meaning.problem = f"the answer says nothing of {lines - done} of {lines} documents"
    return meaning


def _one(meaning: Meaning, result: dict[str, Any], lines: int) -> None:
    place, status = result["line"] - 1, result["status"]
    if type(place) is not int or type(status) is not int or not 0 <= place < lines:
        raise ValueError(f"no result of a line: {result!r}"[:200])
    if 200 <= status < 300:
        meaning.accepted.append(place)
    elif status in _TOKEN:
        meaning.not_now.append(place)
    elif status >= 500 or status in _PASSING or status < 400:
        meaning.problem = f"the service answered {status} to a line"
    else:
        meaning.rejected[place] = {"status": status, "error": result.get("error")}


def _message(body: bytes) -> str | None:
    """Read the words of a refusal; None where they are not the service's."""
    try:
        return str(json.loads(body)["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
