"""Who carries approved actions out, in which thread, and what happens after a crash?

A few threads a process.  Any number of processes may run one: a row is claimed by compare-and-set,
so each approved action is carried out by one of them.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

from starlette.requests import HTTPConnection

from app.actions import (
    brakes,
    condemned,
    decide,
    execute,
    fleets,
    looking,
    node_labels,
    probation,
    verify,
    writing,
)
from app.cluster.provider.registry import Providers
from app.cluster.registry import Clusters
from app.config import Settings
from app.context import Context
from app.store import proposals
from app.store.database import StoreUnavailable
from app.store.proposals import Proposal
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

POLL_S = 2.0  # another process may have written the approval
WATCH_S = 60.0  # between two readings of the nodes that we hold
TIDY_S = 15.0  # between two looks for orphans and for proposals that expired
# A call makes a handful of requests, each bounded by the cluster's time-out.
CALLS = 8
SLACK_S = 30.0
HANDS = 4  # actions under way at one time in one process
UNDOING_HANDS = 2  # and of what undoes, which never waits behind a cluster that hangs
# Workers of this process that run: their claims are no orphans.
_LIVE: set[str] = set()


class Executor:
    """The threads that carry out what was approved and watch what is held."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._host = f"{socket.gethostname()}:{os.getpid()}"
        self.name = f"{self._host}:{secrets.token_hex(4)}"
        self._wake = threading.Event()
        self._done = threading.Condition()
        self._stopping = threading.Event()
        self._lone = context.store.engine.dialect.name == "sqlite"
        self._lease = timedelta(seconds=_longest_answer(context.settings) * CALLS + SLACK_S)
        self._threads: list[threading.Thread] = []
        self._hands: ThreadPoolExecutor | None = None
        self._undoing: ThreadPoolExecutor | None = None
        self._taken: set[int] = set()
        self._resting: dict[str, float] = {}

    def start(self) -> None:
        """Settle what an earlier process left, then begin."""
        _LIVE.add(self.name)
        self._stopping.clear()
        # A cluster that hangs must not hold up what was approved for another one.
        self._hands = ThreadPoolExecutor(HANDS, thread_name_prefix="executor-hand")
        self._undoing = ThreadPoolExecutor(UNDOING_HANDS, thread_name_prefix="executor-undoing")
        self._threads = [
            threading.Thread(target=self._run, name="executor", daemon=True),
            threading.Thread(target=self._watch, name="executor-watch", daemon=True),
            threading.Thread(target=self._look, name="executor-look", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float = 30.0) -> None:
        """Finish the actions that are under way, take up no other."""
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(patience_s)
        for hands in (self._hands, self._undoing):
            if hands is not None:
                hands.shutdown(wait=True, cancel_futures=True)
        _LIVE.discard(self.name)

    def wake(self) -> None:
        """Say that something was approved."""
        self._wake.set()

    def wait_for(self, proposal_id: int, seconds: float = 3.0) -> Proposal | None:
        """Wait a moment for the outcome of an approved action; give the row as it stands then."""
        self.wake()
        deadline = time.monotonic() + seconds
        while True:
            with self._context.store.reading() as connection:
                proposal = proposals.get(connection, proposal_id)
            left = deadline - time.monotonic()
            if proposal is None or left <= 0 or not _is_settling(proposal):
                return proposal
            with self._done:
                self._done.wait(min(left, 0.25))

    def _run(self) -> None:
        self._patiently(lambda: self.settle_orphans(at_start=True))
        tidied = time.monotonic()
        while not self._stopping.is_set():
            self._patiently(self.take_up)
            if time.monotonic() - tidied >= TIDY_S:
                for chore in self._chores():
                    self._patiently(chore)
                tidied = time.monotonic()
            if self._wake.wait(POLL_S):
                self._wake.clear()

    def _watch(self) -> None:
        if isinstance(self._context.clusters, Clusters):
            self._context.clusters.preload()
        if isinstance(self._context.providers, Providers):
            self._context.providers.preload()
        while not self._stopping.wait(WATCH_S):
            self._patiently(lambda: verify.watch_held_nodes(self._context))
            self._patiently(lambda: fleets.read_due(self._context))
            self._patiently(lambda: node_labels.watch(self._context))
            self._patiently(lambda: probation.watch(self._context))

    def _look(self) -> None:
        # Apart from what is to be sent: a provider that is slow to answer holds nothing up.
        while not self._stopping.wait(POLL_S):
            self._patiently(
                lambda: looking.look_due(self._context, self._stopping.is_set, self._resting)
            )

    def take_up(self) -> int:
        """Hand out what is approved and not in a hand yet; give how many that were."""
        if self._hands is None or self._undoing is None:
            return 0
        with self._context.store.reading() as connection:
            undoing = proposals.undoing_waits(connection)
            waiting = proposals.waiting_for_execution(connection)
        new = [one for one in dict.fromkeys((*undoing, *waiting)) if one not in self._taken]
        for proposal_id in new:
            self._taken.add(proposal_id)
            hands = self._undoing if proposal_id in undoing else self._hands
            hands.submit(self._carry_out, proposal_id)
        return len(new)

    def _carry_out(self, proposal_id: int) -> None:
        try:
            self._patiently(lambda: execute.run_one(self._context, proposal_id, self.name))
        finally:
            self._taken.discard(proposal_id)
            with self._done:
                self._done.notify_all()

    def tidy(self) -> None:
        """Give up orphans, pull the brake on its signs, close what nobody decided in time."""
        for chore in self._chores():
            chore()

    def _chores(self) -> tuple[Callable[[], object], ...]:
        # Each for itself: a fault in one of them must not keep the brake from being pulled.
        return (
            lambda: brakes.look(self._context),
            self.settle_orphans,
            self._close_expired,
            lambda: condemned.tell(self._context),
        )

    def _close_expired(self) -> None:
        now = self._context.now()
        with self._context.store.reading() as connection:
            late = proposals.expired(connection, now)
        for proposal in late:
            writing.write(self._context, partial(decide.expire, proposal=proposal, now=now))

    def settle_orphans(self, *, at_start: bool = False) -> int:
        """Mark as unknown what a worker claimed that cannot report any more; give how many."""
        with self._context.store.reading() as connection:
            claimed = proposals.executing(connection)
        orphans = [one for one in claimed if self._is_orphan(one, at_start)]
        return sum(verify.give_up_orphan(self._context, one) for one in orphans)

    def _is_orphan(self, proposal: Proposal, at_start: bool) -> bool:
        claimer = proposal.claimed_by or ""
        if claimer not in _LIVE:
            if at_start and self._lone:
                return True  # the embedded database serves one process: the claimer is gone
            if claimer.startswith(self._host + ":"):
                return True  # this very process number, in an earlier life
        claimed_at = proposal.claimed_at
        return claimed_at is None or self._context.now() - claimed_at > self._lease

    def _patiently(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (StoreUnavailable, QueueFull) as error:
            log.warning("the executor waits for the database: %s", error)
        except Exception:
            log.exception("the executor met a fault of ours and goes on")


def _longest_answer(settings: Settings) -> float:
    """Give how long one answer may be waited for, in seconds, at the slowest place configured."""
    entries = (*settings.clusters.values(), *settings.providers.values())
    named = [one.get("read_timeout_s") for one in entries]
    numbers = [float(one) for one in named if isinstance(one, int | float)]
    return max(settings.cluster_timeout_s, *numbers, 0.0)


def _is_settling(proposal: Proposal) -> bool:
    """Tell whether an outcome comes within seconds; a replacement takes half an hour."""
    quick = proposal.action in ("cordon", "uncordon")
    return proposal.status in ("approved", "executing") or (quick and proposal.status == "accepted")


def executor_of(request: HTTPConnection) -> Executor:
    """Give the executor of the application that serves this request."""
    executor: Executor = request.app.state.executor
    return executor
