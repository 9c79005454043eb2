"""How do torchft's replicas come and go, and how does an alarm keep their step from being applied?

The three checks need replicas joined by plain DDP; torchft's own DDP reduces across replicas in a
hook of its own, which leaves no place for ours. So this carries alarms and membership, no checks.
"""

from __future__ import annotations

import logging
import re
from typing import Any

try:
    from torchft import Manager
except ImportError as missing:
    raise ImportError("witness.ddp.adapters.torchft needs torchft") from missing

from witness.ddp.alarms import Alarm, SilentCorruption
from witness.ddp.announcing import Announcer

LOGGERS = ("torchft_quorums", "torchft_commits", "torchft_errors")

_log = logging.getLogger(__name__)


def refuse_step(manager: Manager, alarm: Alarm) -> None:
    """Make `should_commit()` of this step False on every rank of this replica group.

    Comes after `start_quorum()`, which forgets errors, and before `should_commit()`. Every replica
    group must call it: one that refuses alone falls a step behind, and torchft then copies the
    others' current state over its own.
    """
    manager.report_error(SilentCorruption(alarm))


class Membership(logging.Handler):
    """Turns what torchft logs for machines into elastic events of the reporter and plain log lines.

    `watch` puts it in place. Events carry the number of replicas and the quorum, not which replica
    left: torchft does not say. All replicas say the same words, so the service counts them once;
    in each replica group only the first rank reports.
    """

    def __init__(self, manager: Manager, reporter: Any = None) -> None:
        super().__init__(logging.INFO)
        self._manager, self._announcer = manager, Announcer(reporter)
        self._quorum: dict[str, Any] | None = None
        self._replicas: int | None = None
        self._error: str | None = None
        self._refused = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record of one of `LOGGERS`; never raises."""
        try:
            if record.name == "torchft_quorums":
                self._quorum = {"quorum_id": _of(record, "quorum_id"), "step": _of(record, "step")}
            elif record.name == "torchft_errors":
                self._error = str(_of(record, "error"))
                _log.warning("torchft: %s in quorum %s", self._error, _of(record, "quorum_id"))
            else:
                self._committed(record)
        except Exception:
            self.handleError(record)

    def _committed(self, record: logging.LogRecord) -> None:
        """Report a new quorum when its first step is decided; before, its size is not known."""
        refused_before, self._refused = self._refused, not _of(record, "commit_result")
        if self._refused:
            _log.warning("torchft: step %s is not applied", _of(record, "step"))
        if self._quorum is None or _of(record, "rank") != 0:
            return
        quorum, self._quorum = self._quorum, None
        before, self._replicas = self._replicas, self._manager.num_participants()
        fields = {**quorum, "replicas": self._replicas, "error": self._error}
        self._error = None
        if before is None:
            digits = re.search(r"\d+$", str(_of(record, "replica_id")))
            self._tell("attempt_start", **fields, slice=int(digits[0]) if digits else None)
        elif self._replicas != before:
            event = "slice_down" if self._replicas < before else "slice_up"
            self._tell(event, **fields, replicas_before=before)
        else:
            # torchft also makes a new quorum of the same replicas after a refused step.
            why = "a step was refused" if refused_before else "a replica was replaced"
            self._tell("resize", **fields, reason=why)

    def _tell(self, event: str, **fields: Any) -> None:
        _log.info("torchft: %s %s", event, fields)
        self._announcer.tell("elastic", event, **fields)


def watch(manager: Manager, reporter: Any = None) -> Membership:
    """Listen to torchft's loggers, which are silent by default; `unwatch` ends it."""
    handler = Membership(manager, reporter)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    return handler


def unwatch(handler: Membership) -> None:
    """Stop listening."""
    for name in LOGGERS:
        logging.getLogger(name).removeHandler(handler)


def _of(record: logging.LogRecord, name: str) -> Any:
    return getattr(record, name, None)
