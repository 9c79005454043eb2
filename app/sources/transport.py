"""How does one form reach a source, and what does each way of failing mean?"""

from __future__ import annotations

import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError
from urllib3.util import Retry, Timeout

from app.sources import bodies
from app.sources.ports import Away, Refused
from app.sources.watched import watched

TRIES = 3  # within one pull; longer waits belong to the queue
LONGEST_WAIT_S = 8.0  # a source that asks for more is left alone until later
LONGEST_AWAY_S = 3600.0  # whatever it asks for: the evidence ages out of it meanwhile
ANSWER_TIMES = 3  # an answer that has begun may take so many time limits in all
AGAIN = frozenset({429, 500, 502, 503, 504})
STALE = ("signature expired", "expiredtoken", "security token included in the request is expired")

SMALLER = (
    "too many samples",
    "exceeded maximum resolution",
    "exceeds the limit",
    "exceeded the limit",
    "limit exceeded",
    "time range exceeds",
    "query length",
    "max_samples_processed",
    "samples processed",
    "maxsamplesperquery",
    "maxuniquetimeseries",
    "too many points",
    "too many series",
    "query timed out",
    "execution timeout",
    "deadline exceeded",
    "search.max",
    "chunks limit",
    "max number of",
)
"""What the servers say when a smaller question would be answered."""

Signer = Callable[[str, bytes, Mapping[str, str]], Mapping[str, str]]
"""Give the headers of a POST of these bytes to this address; called anew for every try."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer that is no transient failure."""

    status: int
    body: bytes


def asks_for_less(answer: Answer) -> bool:
    """Tell whether a failure says that a smaller question would be answered."""
    if answer.status == 413:
        return True
    text = answer.body[:4000].decode("utf-8", "replace").lower()
    return answer.status in (400, 422, 503) and any(one in text for one in SMALLER)


class Transport:
    """Posts forms to one source; safe to share between threads."""

    def __init__(
        self, signer: Signer, timeout_s: float, ca_file: str | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:  # fmt: skip
        self._sign, self._timeout_s, self._ca_file = signer, timeout_s, ca_file
        self._pool = urllib3.PoolManager(
            timeout=Timeout(connect=min(timeout_s, 5.0), read=timeout_s),
            retries=Retry(0),
            ca_certs=ca_file,
            maxsize=4,
        )
        self._pool.pool_classes_by_scheme = watched(ANSWER_TIMES * timeout_s)
        self._stopping = threading.Event()
        self._sleep = sleep or self._stopping.wait

    def close(self) -> None:
        """Close connections and end waits."""
        self._stopping.set()
        self._pool.clear()

    def post(self, url: str, form: Mapping[str, str]) -> Answer:
        """Post a form and give the answer.

        Raises `Away` after `TRIES` failures that may pass, `TooMuch` for an answer above the limit.
        """
        body = urlencode(form).encode()
        for left in range(TRIES - 1, -1, -1):
            after_s = None
            try:
                answer, after_s = self._once(url, body)
                if not _may_pass(answer):
                    return answer
                said = f"it answered {answer.status}"
            except LocationValueError:
                raise Refused("Its address is none that can be asked.") from None
            except HTTPError as error:
                _check_trusted(self._ca_file)
                said = _words(error)
            wait = _wait(TRIES - left, after_s)
            if left == 0 or wait > LONGEST_WAIT_S or self._stopping.is_set():
                raise Away(f"The source did not give an answer: {said}.", after_s)
            self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _once(self, url: str, body: bytes) -> tuple[Answer, float | None]:
        plain = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        headers = dict(self._sign(url, body, plain))
        response = self._pool.request(
            "POST",
            url,
            body=body,
            headers=headers,
            preload_content=False,
            redirect=False,  # it could carry our token elsewhere
        )
        try:
            data = bodies.read(response, time.monotonic() + ANSWER_TIMES * self._timeout_s)
            return Answer(response.status, data), _after(response.headers.get("Retry-After"))
        finally:
            response.release_conn()


def _may_pass(answer: Answer) -> bool:
    """Tell whether the same question may be answered a moment later."""
    return (answer.status in AGAIN and not asks_for_less(answer)) or _is_stale(answer)


def _is_stale(answer: Answer) -> bool:
    """Tell whether only the signature was too old: the next try signs anew."""
    if answer.status not in (400, 401, 403):
        return False
    text = answer.body[:2000].decode("utf-8", "replace").lower()
    return any(one in text for one in STALE)


def _wait(tried: int, after_s: float | None) -> float:
    if after_s is not None:
        return after_s
    return float(random.uniform(0.5, 1.0) * 2 ** (tried - 1) * 0.25)  # noqa: S311 only spreads load


def _after(text: str | None) -> float | None:
    """Read Retry-After, in seconds or as a date, an hour at most; None where it says neither."""
    said = (text or "").strip()[:64]
    if re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", said, re.IGNORECASE):
        try:
            return min(max(float(said), 0.0), LONGEST_AWAY_S)
        except ValueError:
            return None
    try:
        when = parsedate_to_datetime(said)
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return min(max((aware - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_AWAY_S)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _check_trusted(ca_file: str | None) -> None:
    """Refuse where the certificates to trust are what is wrong: only a person can mend that."""
    try:
        ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError):
        raise Refused("The certificates to trust cannot be read.") from None


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    name = type(reason).__name__
    if name == "SSLError" and "CERTIFICATE_VERIFY_FAILED" not in str(reason):
        return "it does not speak TLS as it should"
    known = {
        "NewConnectionError": "the connection was refused or the name is not known",
        "NameResolutionError": "its name is not known",
        "ConnectTimeoutError": "no connection within the time limit",
        "ReadTimeoutError": "no answer within the time limit",
        "IncompleteRead": "the answer broke off",
        "InvalidChunkLength": "the answer broke off",
        "SSLError": "its certificate is not trusted",
        "ProtocolError": "the connection broke off",
    }
    return known.get(name, name)


def bearer(headers: Mapping[str, str], token_file: str | None) -> Signer:
    """Make a signer that adds fixed headers and a token that is read anew each time."""

    def sign(url: str, body: bytes, plain: Mapping[str, str]) -> Mapping[str, str]:
        made = {**plain, **headers}
        if token_file:
            try:
                with open(token_file, encoding="utf-8") as file:  # noqa: PTH123 a path of the setting
                    made["Authorization"] = f"Bearer {file.read().strip()}"
            except OSError as error:
                raise Refused(f"Its token cannot be read: {error.strerror}.") from None
        return made

    return sign
