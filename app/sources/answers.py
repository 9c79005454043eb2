"""What does an answer of the query API say: samples, a refusal, or that less must be asked for?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.sources.bodies import TooMuch
from app.sources.ports import Refused
from app.sources.texts import one_line
from app.sources.transport import Answer, asks_for_less
from witness.rules.samples import RawSeries, from_prometheus

MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Matrix:
    """Samples by series, with the source's warnings, and whether it called itself incomplete."""

    series: list[RawSeries]
    warnings: list[str]
    partial: bool


def read(answer: Answer) -> Matrix:
    """Read an answer of `/api/v1/query` for a range; raises `TooMuch` or `Refused`."""
    document = _document(answer)
    if answer.status != 200 or document.get("status") != "success":
        _fail(answer, document)
    data = document.get("data")
    if not isinstance(data, Mapping) or data.get("resultType") != "matrix":
        raise Refused("The source answered with something else than samples over a time.")
    found = data.get("result")
    if not isinstance(found, list):
        raise Refused("The source's list of series cannot be read.")
    warnings = [*_told(document.get("warnings")), *_told(document.get("infos"))]
    return Matrix([_series(one) for one in found], warnings, _is_partial(document, warnings))


def _series(entry: Any) -> RawSeries:
    try:
        series = from_prometheus(entry["metric"], entry.get("values") or ())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Refused(f"A series of the source cannot be read: {one_line(str(error))}.") from None
    if not all(isinstance(one, str) for pair in series.labels.items() for one in pair):
        raise Refused("A series of the source cannot be read: a label is no text.")
    return series


def _told(listed: Any) -> list[str]:
    """Read what a source says beside its samples; what is no list says nothing."""
    found = listed if isinstance(listed, list) else []
    return [one_line(str(one)) for one in found[:MOST_WARNINGS]]


def _document(answer: Answer) -> Mapping[str, Any]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, Mapping):
        return document
    if asks_for_less(answer):
        raise TooMuch("The source will not give so much in one answer.")
    if answer.status == 200:
        raise Refused("The source answered with something that is not of its query API.")
    raise Refused(_refusal(answer.status, answer.body[:300].decode("utf-8", "replace")))


def _fail(answer: Answer, document: Mapping[str, Any]) -> None:
    text = str(document.get("error") or document.get("message") or document.get("errorType") or "")
    if asks_for_less(answer):
        raise TooMuch(one_line(text))
    raise Refused(_refusal(answer.status, text))


def _refusal(status: int, text: str) -> str:
    why = {
        401: "it does not know who asks",
        403: "it does not allow it",
        404: "its address does not speak the query API",
    }.get(status, f"it answered {status}")
    said = one_line(text)
    return f"The source refused: {why}." + (f" It says: “{said}”." if said else "")


def _is_partial(document: Mapping[str, Any], warnings: list[str]) -> bool:
    """VictoriaMetrics sets a flag; Thanos says it in a warning."""
    if document.get("isPartial") is True or document.get("partial") is True:
        return True
    return any("partial" in one.lower() for one in warnings)
