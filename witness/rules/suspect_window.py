"""How far back may the fault reach: by the last pass, and by how often it shows?"""

from dataclasses import dataclass
from math import lgamma, log

MISSED_SHARE = 0.05
"""The credible window leaves out at most this share of the probability."""
PRIOR = 0.5
"""Beta(1/2, 1/2) before any replay: no opinion on how often the fault shows."""
AUDITS_LIMIT = 2**62
"""Past this the answer only says "not bounded by replays": no job has as many audits."""

EVIDENCE: dict[str, tuple[int, int]] = {
    "culprit": (2, 2),
    "persistent": (1, 1),
    "transient": (0, 1),
}
"""(wrong, replays) that a verdict by itself amounts to, where no replay was asked for.

A culprit was wrong in both comparisons; a target's own second computation is one replay.
"""


@dataclass(frozen=True, slots=True)
class CredibleWindow:
    """The steps in which the fault began with 95 % credibility.

    `reaches_start` says that the window was cut at the job's first step, so that the state the
    job started from is not covered by it.
    """

    first: int
    last: int
    audits_back: int
    reaches_start: bool


def reported_window(
    check: str,
    step: int,
    start_step: int,
    last_audit_pass: int | None,
    last_weight_check_pass: int | None,
) -> tuple[int, int] | None:
    """Give the steps since the triggering check last passed; None for an unknown check.

    Right for a fault that is present at every step since it began.
    """
    if check == "reduced gradient":
        return step, step
    passes = {
        "weights": last_weight_check_pass,
        "compute": last_audit_pass,
        "ring": last_audit_pass,
        "nonfinite": last_audit_pass,
    }
    if check not in passes:
        return None
    last_pass = passes[check]
    first = start_step if last_pass is None else last_pass + 1
    return min(first, step), step


def credible_audits_back(wrong: int, replays: int, missed: float = MISSED_SHARE) -> int:
    """Count the audits to go back so that at most `missed` of the probability lies earlier.

    The share q of replays that are wrong is Beta(1/2 + wrong, 1/2 + right); a fault that began
    J audits ago was overlooked by all of them with probability E[(1 - q)^J].
    """
    if not 0 <= wrong <= replays:
        raise ValueError(f"{wrong} wrong of {replays} replays is not possible")
    a, b = PRIOR + wrong, PRIOR + replays - wrong
    bound = log(missed)
    if _log_overlooked(a, b, 1) <= bound:
        return 1
    low, high = 1, 2
    while _log_overlooked(a, b, high) > bound:
        low, high = high, high * 2
        if high > AUDITS_LIMIT:
            return AUDITS_LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        if _log_overlooked(a, b, middle) <= bound:
            high = middle
        else:
            low = middle
    return high


def credible_window(
    reported: tuple[int, int], wrong: int, replays: int, audit_every: int, start_step: int = 0
) -> CredibleWindow:
    """Widen the reported window by the audits that an intermittent fault may have passed.

    One audit back is the reported window itself; each further one adds `audit_every` steps.
    """
    back = credible_audits_back(wrong, replays)
    first = reported[0] - (back - 1) * max(audit_every, 1)
    start = min(start_step, reported[0])
    return CredibleWindow(max(first, start), reported[1], back, first <= start)


def _log_overlooked(a: float, b: float, audits: int) -> float:
    """Give ln(B(a, b + audits) / B(a, b))."""
    return lgamma(b + audits) - lgamma(a + b + audits) + lgamma(a + b) - lgamma(b)
