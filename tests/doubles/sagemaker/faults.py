"""How can the service be made to fail, for which call, and has it taken effect by then?"""

from __future__ import annotations

import threading
from dataclasses import dataclass

HTML = "<html><head><title>500</title></head><body><h1>Internal Server Error</h1></body></html>"


@dataclass
class Fault:
    """What happens to calls of one operation instead of, or around, the ordinary answer.

    With `after` the call takes effect and only its answer is spoilt. Without anything else than
    `delay_s` the ordinary answer follows, late.
    """

    operation: str  # "BatchReplaceClusterNodes", or "*"
    status: int | None = None
    code: str = "InternalFailure"
    message: str = "as the test asked"
    html: bool = False  # a page of something in between, not the service's JSON
    after: bool = False
    reset: bool = False  # the connection breaks off
    hang: bool = False  # nothing ever comes
    half: bool = False  # the ordinary answer breaks off in the middle
    delay_s: float = 0.0
    skip: int = 0  # so many calls pass first
    times: int | None = None  # so many calls are hit; None: all


def throttled(
    operation: str, *, after: bool = False, status: int = 400, times: int | None = None
) -> Fault:
    """Refuse for too many requests, before or after the call has taken effect."""
    words = "Rate exceeded"
    return Fault(operation, status, "ThrottlingException", words, after=after, times=times)


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

    def pick(self, operation: str) -> Fault | None:
        """Take the fault that hits this call, and count it."""
        with self._lock:
            for fault in self._faults:
                if fault.operation not in ("*", operation) or fault.times == 0:
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None
