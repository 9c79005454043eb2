"""How are the lines of a node's health agent asked of CloudWatch Logs?

By `FilterLogEvents`, the newest first, within bounds: a node in a storm writes thousands of lines,
and a group may hold the logs of a whole fleet. Pages may be empty although more follow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from app.sources.ports import Away, Refused
from app.sources.texts import one_line

AGENT = "SagemakerHealthMonitoringAgent"
DETECTION = "HealthMonitoringAgentDetectionEvent"
LINES_LIMIT = 5_000
BYTES_LIMIT = 8 << 20
PAGES_LIMIT = 300
LONGEST_S = 120.0
"""For all pages of one question; more than a thread should wait for."""
TIMEOUT_S = 20.0
PASSES = frozenset({"ServiceUnavailableException", "ExpiredTokenException", "RequestExpired"})
"""What the service says of itself, or of credentials that are refreshed by the next time."""
DENIED = frozenset({"AccessDeniedException", "AccessDenied", "UnrecognizedClientException"})


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
        self, region: str, log_group: str, group: str | None = None,
        timeout_s: float = TIMEOUT_S, endpoint_url: str | None = None,
    ) -> None:  # fmt: skip
        self._region, self._log_group, self._group = region, log_group, group
        self._timeout_s, self._endpoint_url = timeout_s, endpoint_url
        self._client: Any = None
        self._making = threading.Lock()  # botocore does not make clients in two threads at once
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
        with self._making:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _pages(self, question: LogQuestion) -> Iterator[Mapping[str, Any]]:
        group = question.group or self._group
        # By prefix, also of one stream: a stream that is not there is an error only by its name.
        prefix = f"{AGENT}/{group}/{question.instance_id}" if group else f"{AGENT}/"
        named = "logGroupIdentifier" if self._log_group.startswith("arn:") else "logGroupName"
        asked: dict[str, Any] = {
            named: self._log_group,
            "logStreamNamePrefix": prefix,
            "filterPattern": DETECTION,
            "startTime": max(round(question.start * 1000), 0),
            "endTime": round(question.end * 1000),
            "startFromHead": False,
        }
        while True:
            page = self._ask(asked)
            yield page
            following = page.get("nextToken")
            if not following or following == asked.get("nextToken"):
                return
            asked["nextToken"] = following

    def _ask(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        if self._stopping.is_set():
            raise Away("The service is stopping.")
        try:
            page: Mapping[str, Any] = self._made().filter_log_events(**asked)
        except ClientError as error:
            raise self._said_no(error.response) from None
        except NoCredentialsError:
            raise Refused("No AWS credentials are to be found here.") from None
        except BotoCoreError as error:
            raise Away(f"CloudWatch Logs cannot be asked: {one_line(str(error))}.") from None
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            kind = type(error).__name__
            raise Refused(f"CloudWatch Logs cannot be asked or understood: {kind}.") from None
        return page

    def _made(self) -> Any:
        from botocore.config import Config
        from botocore.session import get_session

        with self._making:
            if self._client is None:
                patience = Config(
                    connect_timeout=min(self._timeout_s, 5.0),
                    read_timeout=self._timeout_s,
                    # Throttling is usual: a few calls a second are all that an account may make.
                    retries={"mode": "standard", "total_max_attempts": 3},
                )
                self._client = get_session().create_client(
                    "logs", region_name=self._region, endpoint_url=self._endpoint_url,
                    config=patience,
                )  # fmt: skip
            return self._client

    def _said_no(self, response: Mapping[str, Any]) -> Refused | Away:
        said = response.get("Error", {})
        code, message = one_line(str(said.get("Code"))), one_line(str(said.get("Message")))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        if code == "ResourceNotFoundException":
            where = f"{one_line(self._log_group)} in {self._region}"
            return Refused(f"CloudWatch Logs has no log group {where}: {message}")
        if code in DENIED:
            return Refused(f"CloudWatch Logs does not allow logs:FilterLogEvents: {message}")
        text = f"CloudWatch Logs does not give the lines: {code}, {message}"
        passes = status >= 500 or status == 429 or "Throttl" in code or code in PASSES
        return Away(text) if passes else Refused(text)


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
