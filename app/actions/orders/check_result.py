"""What do all the signs of a deep health check come down to?

The provider tells of a request only that it is done: a machine that was passed over as busy looks
the same as one that passed. Nothing counts as passed that was not seen to be tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from app.cluster.provider.ports import FAILURE, PENDING, RUNNING, SHUTTING_DOWN, TESTING

Ended = Literal["passed", "failed", "inconclusive"]
State = Literal["accepted", "waiting", "verified"]

RECOVERY_BEGINS = timedelta(minutes=30)
"""So long after a failed check a platform that recovers by itself may take to begin."""
PENDING_HEALTH = ("UnschedulablePendingReplacement", "UnschedulablePendingReboot")


@dataclass(frozen=True, slots=True)
class Signs:
    """What was seen of one machine's check, now and by earlier looks."""

    status: str  # of the machine, in the provider's words
    run: str | None  # of the request: InProgress, Done, Superseded; None: it is not listed
    label: str | None  # of the check on the node; None: there is none, or no node
    label_before: str | None  # the same right before the order: it may be of an older check
    health: str | None  # the label of the node's health
    faults: str | None
    faults_before: str | None
    seen_testing: bool  # by this look or an earlier one
    seen_down: bool  # restarting, after it was seen being tested
    restarted: bool  # its kernel started anew since the order
    recovers: bool  # automatic node recovery; also where that is not known
    failed_for: timedelta | None  # since it was first seen as failed; None: it was not


@dataclass(frozen=True, slots=True)
class Verdict:
    """State of the order and result of the check; `result` None: nothing to say of it yet."""

    state: State | None
    result: Literal["running", "passed", "failed", "inconclusive"] | None
    words: str


def judge(signs: Signs) -> Verdict:
    """Say how far a check has come, and how it ended if it has."""
    if signs.status == TESTING:
        return Verdict("waiting", "running", "is being tested")
    if _has_failed(signs):
        return _after_failure(signs)
    if signs.status != RUNNING:
        return _not_running(signs)
    if signs.label == "InProgress":
        return Verdict("waiting", "running", "is being tested, its node's label says")
    if signs.run == "InProgress":
        if signs.seen_testing:
            return Verdict("waiting", "running", "was tested; the request is not done yet")
        return Verdict("accepted", None, "runs; the test of it has not begun")
    return _running_again(signs)


def _has_failed(signs: Signs) -> bool:
    if signs.label == "Failed":
        return signs.seen_testing or signs.label_before != "Failed"
    if signs.seen_testing and signs.status in (FAILURE, SHUTTING_DOWN):
        return True
    return signs.seen_testing and signs.health == PENDING_HEALTH[0]


def _after_failure(signs: Signs) -> Verdict:
    """Wait for what the platform does about it by itself, where it does."""
    if signs.status == SHUTTING_DOWN or signs.health == PENDING_HEALTH[0]:
        return Verdict("waiting", "failed", "failed; the platform is replacing it by itself")
    if signs.status == PENDING or signs.health == PENDING_HEALTH[1]:
        return Verdict("waiting", "failed", "failed; the platform is restarting it by itself")
    if signs.status == FAILURE:
        return Verdict("verified", "failed", "failed, and is in Failure now")
    if signs.restarted or signs.seen_down:
        return Verdict("verified", "failed", "failed; the platform restarted it by itself")
    if signs.recovers and (signs.failed_for or timedelta()) < RECOVERY_BEGINS:
        return Verdict("waiting", "failed", "failed; the platform may replace it by itself")
    return Verdict("verified", "failed", "failed; the platform has done nothing about it")


def _not_running(signs: Signs) -> Verdict:
    if signs.seen_testing and signs.status == PENDING:
        return Verdict("waiting", "running", "was being tested and is restarting now")
    return Verdict("waiting", None, f"is {signs.status}")


def _running_again(signs: Signs) -> Verdict:
    """Judge a machine that runs, whose request is done or is not listed."""
    fresh = signs.label == "Passed" and (signs.seen_testing or signs.label_before != "Passed")
    tested = signs.seen_testing or fresh
    if not tested and signs.run is None:
        return Verdict(None, None, "runs; nothing shows that it was tested")
    if not tested:
        words = (
            "was not seen being tested, though the request is done: it may have been passed over"
        )
        return Verdict("verified", "inconclusive", words)
    if signs.faults and signs.faults != signs.faults_before:
        return Verdict("verified", "failed", f"runs again, marked with {signs.faults}")
    if signs.faults:
        words = f"was tested, and is marked with {signs.faults} as it was before"
        return Verdict("verified", "inconclusive", words)
    if signs.seen_down or signs.restarted:
        if not fresh:
            return Verdict("verified", "failed", "was restarted during the test")
        words = "was restarted during the test, and then passed"
        return Verdict("verified", "inconclusive", words)
    how = "its node's label says" if fresh else "it was tested, runs again and has no fault marked"
    return Verdict("verified", "passed", f"passed: {how}. That clears nothing")
