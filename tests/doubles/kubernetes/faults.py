"""How can the server be made to fail, and when?"""

import threading
from dataclasses import dataclass
from typing import Any

from tests.doubles.kubernetes.answers import Answer, Json, status_body
from tests.doubles.kubernetes.asking import Asked

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass
class Fault:
    """What happens to matching calls instead of, or before, the ordinary answer.

    With `apply_first` the call takes effect and only its answer is spoilt. Without `status`,
    `hang` or `reset` the ordinary answer follows, late by `delay_s` and dripping if asked for.
    """

    call: str  # "PATCH /api/v1/nodes/a", "PATCH *" or "*"
    status: int | None = None
    body: Any = None  # None: a Status that fits the code
    retry_after: int | None = None
    delay_s: float = 0.0
    hang: bool = False
    reset: bool = False
    apply_first: bool = False
    drip_s: float = 0.0  # a pause after every byte of the answer
    dry_run: bool | None = None  # only dry runs, or only real ones; None: both
    skip: int = 0  # so many matching calls pass first
    times: int | None = None  # so many calls are hit; None: all

    def matches(self, asked: Asked) -> bool:
        method, _, path = self.call.partition(" ")
        if method not in ("*", asked.method) or path not in ("", "*", asked.path):
            return False
        return self.dry_run is None or self.dry_run == ("dryRun" in asked.query)

    def spoilt(self) -> Answer:
        """Give the answer that this fault puts in place of the ordinary one."""
        assert self.status is not None
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        body: Json | str = self.body
        if body is None:
            reason = _REASONS.get(self.status, "Unknown")
            body = status_body(self.status, reason, f"{reason}: as the test asked", {})
        return Answer(self.status, body, headers)


class Faults:
    """The faults that are switched on; the one set last counts first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.insert(0, fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def pick(self, asked: Asked) -> Fault | None:
        """Take the fault that hits this call, and count it."""
        with self._lock:
            for fault in self._faults:
                if not fault.matches(asked) or fault.times == 0:
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None
