"""How often do the checks see a fault, name it right, and how often do they accuse a healthy rank?

`python -m witness.simulate.campaign` injects faults into real gloo processes, judges every alarm
as the service would, and trains without faults to bound false alarms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.simulate import fleet
from witness.simulate.campaign_plan import FAMILIES, Trial, plan
from witness.simulate.campaign_trials import run_clean, run_trials
from witness.simulate.judging import Judgement, judge
from witness.simulate.model import Job, Shape

NODES = (3, 4, 5, 6)
INTRODUCTION = """# What the checks find, and whom they accuse

Faults are drawn from a seed and injected into real gloo processes that train a small transformer,
on 3, 4, 5 and 6 nodes of one rank, with audits and weight checks every second step. Every alarm is
judged as the service judges it, by the findings and cautions of the decision table.

- **named right**: the alarm names faulty ranks and nobody else; *partly* where it leaves one out.
- **ambiguous**: it settles nothing and says so. Two faults of one ring belong here by nature: with
  three or four nodes nobody can tell them apart.
- **solved exactly**: the one smallest explanation of all comparisons, further audits included, is
  exactly the faulty ranks. One fault that fires once leaves two explanations, which the third rank
  then settles, so it counts as named and not as solved.
- **accused**: a healthy rank is named without reservation. This must not happen.

Three kinds lie outside what the three checks promise. Errors inside the all-reduce have a check of
their own, which is off by default.
"""
CHUNK_S = 1800.0


@dataclass(frozen=True, slots=True)
class Result:
    """One trial with the alarm that came of it, None where none came, and its judgement."""

    trial: Trial
    alarm: dict[str, Any] | None
    judgement: Judgement


def campaign(faults: int, seed: int = 0, nodes: Sequence[int] = NODES) -> list[Result]:
    """Inject `faults` faults, evenly over the numbers of nodes; one process group a number."""
    job = Job()
    results: list[Result] = []
    for place, size in enumerate(nodes):
        share = faults // len(nodes) + (place < faults % len(nodes))
        trials = plan(share, size, seed, first=len(results))
        by_rank = fleet.run(size, 1, run_trials, job, trials, timeout_s=CHUNK_S)
        for number, trial in enumerate(trials):
            seen = [ranks[number] for ranks in by_rank]
            if any(one != seen[0] for one in seen):
                raise RuntimeError(f"ranks saw different alarms in trial {trial.number}: {seen}")
            results.append(Result(trial, seen[0], judge(seen[0], trial.faulty, size, 1)))
    return results


def clean(audits: int, seed: int = 1) -> tuple[int, int, list[dict[str, Any]]]:
    """Train without faults; give audit steps done, weight checks done, and the alarms.

    Half of the steps are audited with gradients, half by loss only; dropout is on in both.
    """
    done, alarms = 0, []
    for deterministic in (True, False):
        job = Job(Shape(dropout=0.1), seed=seed + deterministic)
        steps, alarm = fleet.run(
            3, 1, run_clean, job, audits // 2, deterministic, timeout_s=CHUNK_S
        )[0]
        done += steps
        alarms += [] if alarm is None else [alarm]
    return done, done, alarms


def as_markdown(results: Sequence[Result]) -> str:
    """Lay the outcomes out as a table a family, with the totals of what the checks can see."""
    lines = [
        "| injected | trials | alarm | named right | of them partly | ambiguous | solved exactly "
        "| accused | no alarm |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups = [(name, [one for one in results if one.trial.family == name]) for name in FAMILIES]
    lines += [_line(name, found) for name, found in groups if found]
    lines.append(
        _line("**all that the checks can see**", [one for one in results if _visible(one)])
    )
    lines.append(_line("**all**", results))
    return "\n".join(lines) + "\n"


def _visible(result: Result) -> bool:
    return FAMILIES[result.trial.family].visible


def _line(name: str, results: Sequence[Result]) -> str:
    count = Counter(one.judgement.outcome for one in results)
    total = len(results)
    right = count["named"] + count["partly named"]
    cells = [
        name,
        str(total),
        _share(total - count["no alarm"], total),
        _share(right, total),
        str(count["partly named"]),
        str(count["ambiguous"]),
        str(sum(one.judgement.solved for one in results)),
        str(count["accused"]),
        str(count["no alarm"]),
    ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, total: int) -> str:
    return f"{part} ({100 * part / total:.1f} %)" if total else "0"


def _report(options: argparse.Namespace) -> tuple[str, bool]:
    started = time.monotonic()
    command = f"python -m witness.simulate.campaign --faults {options.faults}"
    command += f" --clean {options.clean} --seed {options.seed}"
    said, failed = [INTRODUCTION, f"`{command}`\n"], False
    if options.faults:
        results = campaign(options.faults, options.seed)
        accused = [one for one in results if one.judgement.outcome == "accused"]
        said += [as_markdown(results), _bound("wrong accusations", len(accused), len(results))]
        failed = bool(accused)
        said += [f"- trial {one.trial.number}: {one.trial}\n" for one in accused]
    if options.clean:
        audits, checks, alarms = clean(options.clean, options.seed + 1)
        failed = failed or bool(alarms)
        said.append(_bound("false alarms", len(alarms), audits, "audit steps"))
        said.append(f"Weight checks in the same runs: {checks}.\n")
    said.append(f"Took {time.monotonic() - started:.0f} s.\n")
    return "\n".join(said), failed


def _bound(what: str, seen: int, total: int, of: str = "trials") -> str:
    text = f"{seen} {what} in {total} {of}"
    if seen:
        return f"{text}.\n"
    return f"{text}: at 95 % at most 1 in {total // 3:,}, by the rule of three.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign and print, or write, what came of it; 1 where a healthy rank was accused."""
    parser = argparse.ArgumentParser(
        prog="python -m witness.simulate.campaign", description=__doc__
    )
    parser.add_argument("--faults", type=int, default=1000, help="faults to inject (default 1000)")
    parser.add_argument("--clean", type=int, default=0, help="audit steps without any fault")
    parser.add_argument("--seed", type=int, default=0, help="what every draw depends on")
    parser.add_argument("--write", type=Path, help="file for the result instead of the terminal")
    options = parser.parse_args(arguments)
    report, failed = _report(options)
    if options.write:
        options.write.write_text(report)
    else:
        sys.stdout.write(report)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
