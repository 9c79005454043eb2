"""How does CloudWatch get every step of every action, and a metric of it?

One line an audit entry, in the embedded metric format: the log group keeps the entry, and
CloudWatch counts it by verb without a call for metrics. Lines can come twice after a crash; each
carries the entry's id and hash.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.cluster.errors import ClusterError, ClusterFailed, ClusterNotConfigured, ClusterRefused

KEYS = frozenset({"region", "log_group", "stream", "namespace", "endpoint_url"})
NAMESPACE = "SilentWitness"
STREAM = "audit"
METRIC = "steps"
EVENTS = 1_000  # in one call; the service takes 10,000
BYTES = 1_000_000  # in one call; the service takes 1,048,576
OVERHEAD = 26  # bytes that the service adds to each line
LONGEST_LINE = 200_000  # bytes; the service takes 256 KiB
DAY_MS = 24 * 3600 * 1000  # lines of one call may lie no further apart
TIMEOUT_S = 10.0
_GROUP = re.compile(r"[.\-_/#A-Za-z0-9]{1,512}")
_STREAM = re.compile(r"[^:*]{1,512}")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}")


@dataclass(frozen=True, slots=True)
class Step:
    """One audit entry on its way; `at_ms` are milliseconds since 1970."""

    at_ms: int
    verb: str
    entry: Mapping[str, Any]


class StepLog(Protocol):
    """Where steps are sent to."""

    def put(self, steps: Sequence[Step]) -> int:
        """Send steps; give how many were too old to be kept. Raises ClusterError."""
        ...


def step_log(entry: Mapping[str, Any]) -> StepLog | None:
    """Set up what the setting names; None where it names nothing."""
    if not entry:
        return None
    wrong = wrong_with(entry)
    return _Broken(wrong) if wrong else CloudWatchSteps(entry)


def wrong_with(entry: Mapping[str, Any]) -> str | None:
    """Find what is wrong with the setting; None: nothing that can be seen without asking."""
    unknown = sorted(set(entry) - KEYS)
    if unknown:
        return f"it has unknown keys: {', '.join(unknown)}"
    if any(not isinstance(text, str) for text in entry.values()):
        return "one of its values is no text"
    rules = (
        (_REGION, entry.get("region", ""), "it names no region"),
        (_GROUP, entry.get("log_group", ""), "it names no log group"),
        (_STREAM, entry.get("stream", STREAM), "its stream is none"),
    )
    return next((words for rule, text, words in rules if not rule.fullmatch(text)), None)


def line(step: Step, namespace: str) -> str:
    """Write one step as a line that is a metric as well."""
    metric = {
        "Namespace": namespace,
        "Dimensions": [["verb"]],
        "Metrics": [{"Name": METRIC, "Unit": "Count"}],
    }
    document = {
        "_aws": {"Timestamp": step.at_ms, "CloudWatchMetrics": [metric]},
        "verb": step.verb,
        METRIC: 1,
        "entry": step.entry,
    }
    text = json.dumps(document, ensure_ascii=True)
    if len(text) <= LONGEST_LINE:
        return text
    # The whole entry stays in the audit; its hash says which one this was.
    kept = {key: step.entry.get(key) for key in ("id", "at", "actor", "verb", "hash")}
    return json.dumps({**document, "entry": {**kept, "cut": True}}, ensure_ascii=True)


def batches(steps: Sequence[Step], namespace: str) -> Iterator[list[dict[str, Any]]]:
    """Cut steps into calls that the service takes: in order of time, not too many, not too far."""
    held: list[dict[str, Any]] = []
    size = 0
    for step in sorted(steps, key=lambda one: one.at_ms):
        text = line(step, namespace)
        far = held and step.at_ms - held[0]["timestamp"] >= DAY_MS
        if far or len(held) >= EVENTS or size + len(text) + OVERHEAD > BYTES:
            yield held
            held, size = [], 0
        held.append({"timestamp": step.at_ms, "message": text})
        size += len(text) + OVERHEAD
    if held:
        yield held


class _Broken:
    """A setting that cannot be used: it says so at every try, and stops nothing."""

    def __init__(self, why: str) -> None:
        self._words = f"WITNESS_STEP_LOG cannot be used: {why}."

    def put(self, steps: Sequence[Step]) -> int:
        """Raise: there is nothing to send to."""
        raise ClusterNotConfigured(self._words)


class CloudWatchSteps:
    """One stream of a log group of CloudWatch Logs."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        """Keep where to; the client is made at first use."""
        self._region, self._group = entry["region"], entry["log_group"]
        self._stream = entry.get("stream", STREAM)
        self._namespace = entry.get("namespace") or NAMESPACE
        self._url = entry.get("endpoint_url") or None
        self._lock = threading.Lock()
        self._made: Any = None

    def put(self, steps: Sequence[Step]) -> int:
        """Send steps, and make the stream where it is missing; the group must be there."""
        refused = 0
        for events in batches(steps, self._namespace):
            refused += self._put(events)
        return refused

    def _put(self, events: list[dict[str, Any]]) -> int:
        where = {"logGroupName": self._group, "logStreamName": self._stream}
        try:
            answer = self._client().put_log_events(**where, logEvents=events)
        except Exception as error:
            if _code(error) != "ResourceNotFoundException":
                raise _meant(error) from error
            answer = self._after_making_the_stream(where, events)
        told = answer.get("rejectedLogEventsInfo") or {}
        expired = max(told.get("tooOldLogEventEndIndex", 0), told.get("expiredLogEventEndIndex", 0))
        new_from = told.get("tooNewLogEventStartIndex", len(events))
        return int(expired + len(events) - new_from)

    def _after_making_the_stream(self, where: dict[str, str], events: list[dict[str, Any]]) -> Any:
        try:
            self._client().create_log_stream(**where)
        except Exception as error:
            if _code(error) != "ResourceAlreadyExistsException":
                raise _meant(error) from error
        try:
            return self._client().put_log_events(**where, logEvents=events)
        except Exception as error:
            raise _meant(error) from error

    def _client(self) -> Any:
        from botocore.config import Config
        from botocore.session import Session

        with self._lock:
            if self._made is None:
                config = Config(connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S)
                self._made = Session().create_client(
                    "logs", self._region, endpoint_url=self._url, config=config
                )
            return self._made


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _meant(error: Exception) -> ClusterError:
    words = f"CloudWatch Logs: {' '.join(str(error).split())[:300]}"
    return ClusterRefused(words) if _code(error) else ClusterFailed(words)
