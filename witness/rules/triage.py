"""A job shows a symptom but no alarm: does the problem follow the hardware?

Seven questions, cheapest first. Answers move the reading, none of them settles it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Answer = Literal["yes", "no", "unknown"]
Leaning = Literal["strong candidate", "candidate", "likely software", "undecided"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question, with what a yes says and which way it points."""

    id: str
    text: str
    if_yes: str
    points: Leaning


@dataclass(frozen=True, slots=True)
class Reading:
    """What the answers add up to, why, and the cheapest next step."""

    summary: str
    leaning: Leaning
    reasons: tuple[str, ...]
    next_step: str


QUESTIONS: tuple[Question, ...] = (
    Question(
        "gradual",
        "Is the symptom fleet-wide and gradual?",
        "A gradual drift everywhere points to the recipe or the optimizer.",
        "likely software",
    ),
    Question(
        "change",
        "Did it begin when data, configuration or a library changed?",
        (
            "A change is usually the cause. It is no proof: a correct update can use an "
            "instruction that one defective chip gets wrong."
        ),
        "likely software",
    ),
    Question(
        "other_nodes",
        "Does it reproduce with the same seed on different nodes?",
        "What reproduces on other hardware is a deterministic bug.",
        "likely software",
    ),
    Question(
        "nonfinite",
        "Is one rank's gradient NaN or Inf before the all-reduce?",
        "One rank's own gradient is a candidate: take the first step at which it fired.",
        "candidate",
    ),
    Question(
        "follows",
        "Does it go away, or follow one node, when the job moves?",
        "A problem that follows the hardware is a strong candidate.",
        "strong candidate",
    ),
    Question(
        "replicas",
        "Do replicas disagree that must be equal bit for bit?",
        "Equal inputs and equal code gave different bits.",
        "strong candidate",
    ),
    Question(
        "replay",
        "Does one rank's step, replayed on another node, give other bits?",
        "The same step gave different bits on different hardware.",
        "strong candidate",
    ),
)

_SUMMARIES: dict[Leaning, str] = {
    "strong candidate": "A strong candidate for silent data corruption.",
    "candidate": "A candidate for silent data corruption.",
    "likely software": "Likely software, though hardware is not ruled out.",
    "undecided": "Undecided: the answers do not say whether it follows the hardware.",
}
_NEXT: dict[Leaning, str] = {
    "strong candidate": (
        "Cordon the node it follows, and replay the step there against two witnesses."
    ),
    "candidate": "Turn on the ring check and aim an audit at the rank.",
    "likely software": (
        "Look for the bug; if nothing is found, move the job to other nodes with the same seed."
    ),
    "undecided": "Answer the cheapest open question.",
}


def reading(answers: Mapping[str, Answer]) -> Reading:
    """Read the answers by question id; a question without an answer is unknown.

    A step that reproduces on different nodes takes the force from "follows one node" and "one
    rank": then the answers contradict each other, and the reading is undecided.
    """
    yes = [one for one in QUESTIONS if answers.get(one.id) == "yes"]
    leaning = _leaning({one.id for one in yes}, {one.points for one in yes})
    reasons = [one.if_yes for one in yes]
    if answers.get("other_nodes") == "no":
        reasons.append(
            "It does not reproduce elsewhere. "
            "A reproducible fault would not have ruled hardware out either."
        )
    step = _NEXT[leaning]
    if leaning == "undecided":
        open_question = next(
            (q for q in QUESTIONS if answers.get(q.id, "unknown") == "unknown"), None
        )
        step = (
            f"Find out: {open_question.text}"
            if open_question
            else "Replay the suspect step on two other nodes."
        )
    return Reading(_SUMMARIES[leaning], leaning, tuple(reasons), step)


def _leaning(yes: set[str], points: set[Leaning]) -> Leaning:
    if "strong candidate" in points:
        return "undecided" if "other_nodes" in yes else "strong candidate"
    if "candidate" in points:
        return "undecided" if "other_nodes" in yes else "candidate"
    return "likely software" if "likely software" in points else "undecided"
