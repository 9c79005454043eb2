"""What speaks for a fault of this device, what against it, and what is missing?

Everything is said from stored facts.  Nothing here ever clears a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.store.case_reading import CaseFinding, Replays
from app.store.docket_details import KindCount
from app.store.docket_reading import DocketCase
from app.web import words
from app.web.machine_tests import Said
from app.web.telemetry.statuses import EVIDENCE
from witness.rules.score import Score

FOR_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Evidence:
    """Three lists of sentences."""

    speaks_for: tuple[str, ...]
    against: tuple[str, ...]
    missing: tuple[str, ...]


_SAID = {
    "culprit": "2 of 2 comparisons of {who} differ",
    "persistent": "{who} gave its wrong answer again; the third GPU sides with the replayer",
    "transient": "a comparison of {who} differed; computed again it agreed with the third GPU",
    "replayer": "{who} computed wrong when it replayed a peer; the target was right",
    "weights": "the copy of {who} differs from a strict majority of the replicas",
    "no_majority": "the replicas disagree, and no strict majority says which is wrong",
    "nonfinite": "the own gradient of {who} is NaN or Inf",
    "reduced": "NaN or Inf after the all-reduce; every own gradient was finite; nobody is named",
    "ambiguous": "a comparison differs and does not say which GPU is wrong",
    "unclear": "{who} did not repeat its own answer, and the third GPU gave another",
    "incomplete": "the alarm is incomplete: it names nothing",
    "unknown": "the alarm says something that is not known here",
}


def sentence(finding: CaseFinding) -> str:
    """Say one finding with its check and step."""
    who = f"rank {finding.rank}" if finding.rank is not None else "nobody named"
    said = _SAID.get(finding.kind, finding.kind).format(who=who)
    check = {"compute": "Ring", "weights": "Weights"}.get(finding.check, finding.check.capitalize())
    if finding.kind == "nonfinite":
        check = "Non-finite"
    return f"{check}, step {finding.step:,} of {finding.job}: {said}."


def evidence(
    case: DocketCase,
    findings: Sequence[CaseFinding],
    kinds: Sequence[KindCount],
    replays: Sequence[Replays],
    score: Score | None,
    tested: Said,
    telemetry: str | None = None,
) -> Evidence:
    """Sort what is known of a case; `telemetry` None: nothing was read of it."""
    said = {status: [words] for status, words in EVIDENCE.items() if status == telemetry}
    return Evidence(
        (*_for(case, findings, kinds, replays), *tested.speaks_for, *said.get("risen", ())),
        (
            *tested.against,
            *_against(case, findings, replays, score),
            *said.get("nothing_found", ()),
        ),
        (*_missing(findings, replays, telemetry), *tested.missing),
    )


def _for(
    case: DocketCase,
    findings: Sequence[CaseFinding],
    kinds: Sequence[KindCount],
    replays: Sequence[Replays],
) -> list[str]:
    found = list(dict.fromkeys(sentence(one) for one in findings))
    more = len(found) - FOR_SHOWN
    found = found[:FOR_SHOWN]
    if more > 0:
        found.append(f"And {words.count(more, 'more finding')} in the list below.")
    if case.recurrence:
        found.append(f"{case.recurrence[:1].upper()}{case.recurrence[1:]}.")
    jobs = max((one.jobs for one in kinds), default=1)
    if jobs > 1:
        found.append(f"It follows the device through {words.count(jobs, 'job')}.")
    found += [
        f"Replay of step {one.step:,}: wrong in {one.wrong} of {one.replays} replays."
        for one in replays
        if one.wrong
    ]
    return found


def _against(
    case: DocketCase,
    findings: Sequence[CaseFinding],
    replays: Sequence[Replays],
    score: Score | None,
) -> list[str]:
    found = []
    if not case.recurrence:
        found.append("First incident of this device that is known here.")
    if score is not None and score.clean_hours > 0:
        hours = words.number(score.clean_hours)
        found.append(
            f"{hours} audited hours without an incident between and since. They clear nothing."
        )
    found += [
        f"Wrong in 0 of {one.replays} replays of step {one.step:,}. This clears nothing."
        for one in replays
        if not one.wrong
    ]
    cautions = dict.fromkeys(text for one in findings for _, text in one.cautions)
    found += list(cautions)[:6]
    if any(one.conflicts for one in findings):
        found.append("Another alarm of the same step names other ranks: both are kept.")
    return found or ["Nothing that is known here. That is no proof of anything."]


def _missing(
    findings: Sequence[CaseFinding], replays: Sequence[Replays], telemetry: str | None
) -> list[str]:
    newest = findings[0] if findings else None
    found = []
    if newest is not None:
        maps = {
            "none": "Rank map of this attempt: not posted, so no node is known.",
            "inferred": "Rank map: taken from another start of the job.",
            "contradictory": "Rank map: two of this attempt disagree.",
        }
        if newest.map_state in maps:
            found.append(maps[newest.map_state])
    if not replays and newest is not None and newest.kind not in ("reduced", "incomplete"):
        found.append(f"Replay of step {newest.step:,} against two witnesses: none reported.")
    if telemetry in (None, "refused", "not_collected"):
        found.append(EVIDENCE[telemetry or "not_collected"])
    if newest is not None and newest.code_digest is None:
        found.append("Code digest: not sent, so software is not ruled out.")
    return found
