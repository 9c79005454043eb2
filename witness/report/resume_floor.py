"""Up to which step may this job resume, as far as the service knows, asked within a bound?"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from witness.report.transport import Answer, request
from witness.wire import Envelope

log = logging.getLogger("witness.report")

TIMEOUT_S = 3.0
_PAUSE_S = 0.25
_COME_BACK = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class ResumeFloor:
    """What the service said.

    `known` False: it could not be asked, `why` says what happened; that is not leave to resume
    anywhere. Else `highest_step` None: nothing limits it; -1: no saved state may be used.
    `window` is the suspect window behind it, `step` and `uri` the newest checkpoint that the
    service knows to be allowed.
    """

    known: bool
    highest_step: int | None
    why: str
    window: tuple[int, int] | None = None
    step: int | None = None
    uri: str | None = None


def ask_resume_floor(
    url: str | None,
    token: str | Callable[[], str | None] | None,
    envelope: Envelope,
    timeout_s: float = TIMEOUT_S,
    ca_file: str | None = None,
) -> ResumeFloor:
    """Ask for the floor of a job; never raises, and gives an answer within `timeout_s`.

    The name is resolved within that time, too. While the service is away or overloaded it is asked
    again until the time is over. Call it on one rank and broadcast what it gives.
    """
    if not url:
        return _unknown("no address of a service is set")
    deadline = time.monotonic() + timeout_s
    said: list[ResumeFloor] = []
    problem = [f"no answer within {timeout_s:g} s"]

    def asking() -> None:
        try:
            read = token() if callable(token) else token
            said.append(_ask(floor_url(url, envelope), read, ca_file, deadline, problem))
        except Exception as error:
            problem[0] = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=asking, name="witness-floor", daemon=True)
    try:
        thread.start()
        thread.join(max(timeout_s, 0.0))
    except RuntimeError as error:
        problem[0] = str(error)
    floor = said[0] if said else _unknown(problem[0])
    if not floor.known:
        log.warning("the resume floor of %s is not known: %s", envelope.job, floor.why)
    return floor


def floor_url(url: str, envelope: Envelope) -> str:
    """Give the address at which to ask."""
    parts = urlsplit(url)
    names = {"cluster": envelope.cluster, "namespace": envelope.namespace, "job": envelope.job}
    path = f"{parts.path.rstrip('/')}/api/v1/resume-floor"
    return f"{parts.scheme}://{parts.netloc}{path}?{urlencode(names)}"


def _ask(
    url: str, token: str | None, ca_file: str | None, deadline: float, problem: list[str]
) -> ResumeFloor:
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        https = url.startswith("https:")
        context = ssl.create_default_context(cafile=ca_file) if https else None
    except (OSError, ValueError) as error:
        return _unknown(f"{type(error).__name__}: {error}")
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return _unknown(problem[0])
        pause = _PAUSE_S
        try:
            answer = request("GET", url, headers, timeout_s=left, context=context)
            if answer.status not in _COME_BACK:
                return read_floor(answer)
            problem[0] = f"the service answered {answer.status}"
            pause = max(pause, answer.retry_after_s(time.time()) or 0.0)
        except ssl.SSLCertVerificationError as error:
            return _unknown(f"its certificate is not trusted: {error.verify_message}")
        except (OSError, http.client.HTTPException) as error:
            problem[0] = f"{type(error).__name__}: {error}"
        except ValueError as error:
            return _unknown(str(error))
        time.sleep(min(pause, max(deadline - time.monotonic(), 0.0)))


def read_floor(answer: Answer) -> ResumeFloor:
    """Read an answer; one that is not the service's is no floor."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    if answer.status != 200:
        error = said.get("error") if isinstance(said, dict) else None
        words = error.get("message") if isinstance(error, dict) else None
        return _unknown(f"the service answered {answer.status}" + (f": {words}" if words else ""))
    if not isinstance(said, dict) or "highest_step" not in said:
        return _unknown("the answer is not one of this service")
    highest = said["highest_step"]
    if highest is not None and (type(highest) is not int or highest < -1):
        return _unknown(f"the answer's highest_step is {highest!r}"[:200])
    step, uri = _checkpoint(said)
    return ResumeFloor(True, highest, str(said.get("why", "")), _window(said), step, uri)


def _checkpoint(said: Mapping[str, Any]) -> tuple[int | None, str | None]:
    best = said.get("checkpoint")
    if not isinstance(best, dict) or type(best.get("step")) is not int:
        return None, None
    uri = best.get("uri")
    return best["step"], uri if isinstance(uri, str) else None


def _window(said: Mapping[str, Any]) -> tuple[int, int] | None:
    window = said.get("window")
    if isinstance(window, list) and len(window) == 2 and all(type(one) is int for one in window):
        return window[0], window[1]
    return None


def _unknown(why: str) -> ResumeFloor:
    return ResumeFloor(False, None, why)
