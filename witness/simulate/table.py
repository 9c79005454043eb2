"""What came of every row of the fault table, and how does it read?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from witness.rules import words
from witness.rules.resume import Checkpoint, newest_before
from witness.simulate import fleet
from witness.simulate.drill import Seen, run_scenarios
from witness.simulate.model import Job
from witness.simulate.scenarios import LAST, Alarm, Layout, Scenario, scenarios

COLUMNS = (
    "fault", "on rank", "alarm", "mismatched pairs", "verdict", "named", "suspect window",
    "saved (audit pass, weight pass)", "resume from", "as expected",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario with what rank 0 saw; `agreed` says that every rank saw the same."""

    scenario: Scenario
    seen: Seen
    agreed: bool

    @property
    def met(self) -> bool:
        """Tell whether everything is as the scenario says."""
        return self.agreed and self.seen.met(self.scenario)

    @property
    def said(self) -> str:
        """Set what was seen against what was expected."""
        wanted = f"{self.scenario.expected}, saved {self.scenario.saved}"
        got = f"{self.seen.alarm}, saved {self.seen.saved}"
        ranks = "" if self.agreed else " (ranks differ)"
        return f"{self.scenario.name}: expected {wanted}, got {got}{ranks}"


def run_table(
    layout: Layout,
    job: Job,
    drills: Sequence[Scenario] | None = None,
    timeout_s: float = 900.0,
) -> list[Row]:
    """Run scenarios, all of them where `drills` is None, in one process group of this layout."""
    chosen = scenarios(layout, job.shape) if drills is None else list(drills)
    by_rank: list[list[Seen]] = fleet.run(
        layout.world_size, layout.gpus, run_scenarios, layout, job, chosen, timeout_s=timeout_s
    )
    return [
        Row(one, by_rank[0][place], all(seen[place] == by_rank[0][place] for seen in by_rank))
        for place, one in enumerate(chosen)
    ]


def as_markdown(rows: Sequence[Row]) -> str:
    """Lay the rows out as a table of Markdown, with a line break at its end."""
    head = [_line(COLUMNS), _line(["---"] * len(COLUMNS))]
    return "\n".join([*head, *(_line(_cells(row)) for row in rows)]) + "\n"


def details(alarm: Alarm) -> list[str]:
    """Say in lines what an alarm rests on; what it does not have is left out."""
    said = [
        ("mismatched pairs (target, replayer)", _pairs(alarm.pairs)),
        ("verdicts", _verdicts(alarm)),
        ("named", _named(alarm)),
    ]
    return [f"  {what}: {words_}" for what, words_ in said if words_ != "–"]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> list[str]:
    alarm, window = row.seen.alarm, None if row.seen.alarm is None else row.seen.alarm.window
    saved = ", ".join(
        f"{step} ({_or(audit)}, {_or(check)})" for step, audit, check in row.seen.saved
    )
    return [
        row.scenario.name,
        ", ".join(str(fault.rank) for fault in row.scenario.faults) or "–",
        f"none to step {LAST}" if alarm is None else f"{alarm.step}, {alarm.check}",
        "–" if alarm is None else _pairs(alarm.pairs),
        "–" if alarm is None else _verdicts(alarm),
        "–" if alarm is None else _named(alarm),
        "–" if window is None else words.window(*window),
        saved or "–",
        _resume(row.seen),
        "yes" if row.met else "**no**",
    ]


def _or(step: int | None) -> str:
    return "–" if step is None else str(step)


def _pairs(pairs: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"({target}, {replayer})" for target, replayer in pairs) or "–"


def _verdicts(alarm: Alarm) -> str:
    said = [f"{kind}, third {third}" for _, third, _, kind in alarm.verdicts]
    return "; ".join(said) or "–"


def _named(alarm: Alarm) -> str:
    said = [
        ("not finite", alarm.nonfinite),
        ("culprits", alarm.culprits),
        ("suspects", alarm.suspects or ()),
        ("by verdict", [one for _, _, one, _ in alarm.verdicts if one is not None]),
    ]
    return "; ".join(f"{how} {', '.join(map(str, who))}" for how, who in said if who) or "nobody"


def _resume(seen: Seen) -> str:
    if seen.alarm is None:
        return "–"
    states = [Checkpoint(step, committed=True) for step, _, _ in seen.saved]
    newest = newest_before(states, seen.alarm.window[0])
    return "before the drill" if newest is None else str(newest.step)
