"""How are the lines of a node's health agent asked of CloudWatch Logs?

By `FilterLogEvents`, the newest first, within bounds: a node in a storm writes thousands of lines,
and a group may hold the logs of a whole fleet. Pages may be empty although more follow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from app.sources.aws_calls import DENIED, MISSING, Service
from app.sources.log_groups import LogGroup
from app.sources.ports import Away, Refused

AGENT = "SagemakerHealthMonitoringAgent"
DETECTION = "HealthMonitoringAgentDetectionEvent"
LINES_LIMIT = 5_000
BYTES_LIMIT = 8 << 20
PAGES_LIMIT = 300
LONGEST_S = 120.0
"""For all pages of one question; more than a thread should wait for."""
TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """The lines of one instance's agent from `start` to `end`, in seconds since 1970.

    `group` is the node's instance group, None where it is not known: then every stream of the
    cluster's agents is looked through.
    """

    instance_id: str
    group: str | None
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line as the service holds it; `received` is when it took it in, both in seconds."""

    text: str
    at: float
    received: float | None
    stream: str
    event_id: str | None


@dataclass(frozen=True, slots=True)
class Lines:
    """The newest lines first; `cut` says that there may be more than were taken."""

    lines: tuple[LogLine, ...] = ()
    cut: bool = False
    pages: int = 0


class NodeLog(Protocol):
    """One place that holds the lines of a cluster's health agents."""

    def read(self, question: LogQuestion) -> Lines:
        """Give the lines that were detections; raises `SourceError`."""

    def close(self) -> None:
        """Close connections, and end a reading under way."""


NodeLogs = Mapping[str, NodeLog]
"""The log of each cluster's nodes by the cluster's name."""


class CloudWatchLog:
    """One log group of CloudWatch Logs; safe to share between threads."""

    def __init__(
        self, region: str, log_group: str | LogGroup, group: str | None = None,
        timeout_s: float = TIMEOUT_S, endpoint_url: str | None = None,
    ) -> None:  # fmt: skip
        self._region, self._log_group, self._group = region, log_group, group
        self._service = Service("logs", "CloudWatch Logs", region, timeout_s, endpoint_url)
        self._stopping = threading.Event()

    def read(self, question: LogQuestion) -> Lines:
        """Give the lines that were detections, the newest first, within the limits."""
        found: dict[object, LogLine] = {}
        size, pages, deadline = 0, 0, time.monotonic() + LONGEST_S
        for page in self._pages(question):
            pages += 1
            for event in page.get("events") or ():
                line = _line(event)
                if line is None or line.stream.rsplit("/", 1)[-1] != question.instance_id:
                    continue
                key = line.event_id or (line.stream, line.at, line.text)
                if key not in found:
                    found[key] = line
                    size += len(line.text)
                if len(found) >= LINES_LIMIT or size >= BYTES_LIMIT:
                    return Lines(_ordered(found), cut=True, pages=pages)
            if page.get("nextToken") and (pages >= PAGES_LIMIT or time.monotonic() > deadline):
                return Lines(_ordered(found), cut=True, pages=pages)
        return Lines(_ordered(found), pages=pages)

    def close(self) -> None:
        """Close connections, and end a reading under way."""
        self._stopping.set()
        self._service.close()
        if isinstance(self._log_group, LogGroup):
            self._log_group.close()

    def _pages(self, question: LogQuestion) -> Iterator[Mapping[str, Any]]:
        group = question.group or self._group
        # By prefix, also of one stream: a stream that is not there is an error only by its name.
        prefix = f"{AGENT}/{group}/{question.instance_id}" if group else f"{AGENT}/"
        where = self._log_group if isinstance(self._log_group, str) else self._log_group.name()
        named = "logGroupIdentifier" if where.startswith("arn:") else "logGroupName"
        asked: dict[str, Any] = {
            named: where,
            "logStreamNamePrefix": prefix,
            "filterPattern": DETECTION,
            "startTime": max(round(question.start * 1000), 0),
            "endTime": round(question.end * 1000),
            "startFromHead": False,
        }
        while True:
            if self._stopping.is_set():
                raise Away("The service is stopping.")
            page = self._service.call("filter_log_events", asked, partial(self._known, where))
            yield page
            following = page.get("nextToken")
            if not following or following == asked.get("nextToken"):
                return
            asked["nextToken"] = following

    def _known(self, where: str, code: str, message: str) -> str | None:
        if code in MISSING:
            return f"CloudWatch Logs has no log group {where} in {self._region}: {message}"
        if code in DENIED:
            return f"CloudWatch Logs does not allow logs:FilterLogEvents: {message}"
        return None


class BrokenLog:
    """An entry that cannot be used: it refuses every question with the reason."""

    def __init__(self, cluster: str, why: str) -> None:
        self._why = f"The entry of {cluster} in WITNESS_NODE_LOGS cannot be used: {why}."

    def read(self, question: LogQuestion) -> Lines:
        """Refuse."""
        raise Refused(self._why)

    def close(self) -> None:
        """Close nothing."""


def _ordered(found: Mapping[object, LogLine]) -> tuple[LogLine, ...]:
    """Put the newest first, whatever the order in which the service gave them."""
    return tuple(sorted(found.values(), key=lambda one: (-one.at, one.event_id or "")))


def _line(event: Any) -> LogLine | None:
    """Read one event; None where it has no text or no time."""
    if not isinstance(event, Mapping):
        return None
    text, at, received = (event.get(key) for key in ("message", "timestamp", "ingestionTime"))
    if not isinstance(text, str) or not isinstance(at, int):
        return None
    return LogLine(
        text,
        at / 1000,
        received / 1000 if isinstance(received, int) else None,
        str(event.get("logStreamName") or ""),
        str(event["eventId"]) if event.get("eventId") else None,
    )
