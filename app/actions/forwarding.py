"""Which audit entries still have to be sent to CloudWatch, and by whom?

Entries are written in the order of their ids, one transaction at a time, so that "after this id"
misses none. One process sends at a time; another takes over when its turn runs out.
"""

from __future__ import annotations

import logging
import secrets
import threading
from datetime import datetime, timedelta

from app.cluster.errors import ClusterError
from app.cluster.step_log import Step, StepLog
from app.context import Context
from app.store import audit, audit_reading, run_settings
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

SENT = "steps.sent"  # the id of the newest entry that was taken
TURN = "steps.turn"  # who sends now, and until when
LASTS = timedelta(minutes=2)
AT_ONCE = 500
POLL_S = 2.0
SLOWEST_S = 300.0  # between two tries while the service is away


class Forwarder:
    """A thread that sends what is new; any number of processes may run one."""

    def __init__(self, context: Context, steps: StepLog | None) -> None:
        self._context, self._steps = context, steps
        self._name = secrets.token_hex(8)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, where there is anywhere to send to."""
        if self._steps is None:
            return
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="forwarder", daemon=True)
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """End after the call that is under way."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(patience_s)

    def _run(self) -> None:
        wait = POLL_S
        while not self._stopping.wait(wait):
            try:
                sent = self.send_new()
                wait = 0.0 if sent == AT_ONCE else POLL_S
            except (ClusterError, StoreUnavailable, QueueFull) as error:
                wait = min(max(wait, POLL_S) * 2, SLOWEST_S)
                log.warning("steps wait to be sent, for %.0f s: %s", wait, error)
            except Exception:
                wait = SLOWEST_S
                log.exception("the forwarder met a fault of ours and goes on later")

    def send_new(self) -> int:
        """Send the next entries, once this process has its turn; give how many."""
        if self._steps is None:
            return 0
        with self._context.store.reading() as connection:
            after = int(run_settings.read(connection, SENT) or 0)
            new = audit_reading.after(connection, after, AT_ONCE)
        if not new or not self._take_turn(self._context.now()):
            return 0
        refused = self._steps.put([_step(one) for one in new])
        if refused:
            log.warning("CloudWatch did not keep %d steps for their age", refused)
        newest, now = new[-1].id, self._context.now()

        def write(connection: Connection) -> None:
            if int(run_settings.read(connection, SENT) or 0) < newest:
                run_settings.keep(connection, SENT, newest, by="service", at=now)

        self._context.store.write(write)
        return len(new)

    def _take_turn(self, now: datetime) -> bool:
        def write(connection: Connection) -> bool:
            turn = run_settings.entry(connection, TURN)
            if turn and turn.value != self._name and turn.changed_at + LASTS > now:
                return False
            run_settings.keep(connection, TURN, self._name, by="service", at=now)
            return True

        return self._context.store.write(write)


def _step(entry: audit.Entry) -> Step:
    return Step(int(entry.at.timestamp() * 1000), entry.verb, audit.as_exported(entry))
