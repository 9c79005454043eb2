"""What does `python -m witness.simulate` do?"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from witness.ddp.alarms import in_words
from witness.ddp.loop import EXIT_CODE
from witness.ddp.schedule import Schedule
from witness.inject import Fault
from witness.simulate import table, written
from witness.simulate.fleet import FleetError
from witness.simulate.model import Job, Shape
from witness.simulate.scenarios import Alarm, Layout, Scenario, scenarios
from witness.simulate.training import Outcome, Training, simulate

ABOUT = """Train a small transformer on gloo processes of this machine, as nodes of GPUs, with the
checks on and with faults that are put in on purpose; say what the checks saw and, where a service
is given, report to it as a real job does."""

FAULTS = """A fault is a list of key=value: rank (needed); layer as the model calls it, else the
middle block's down projection; mode: multiply, noise, flip, column, swap, pair, nan, inf; place:
output, gradient, weight gradient, weights, contribution, reduced; since=STEP (there from then on)
or once=STEP (fires a single time); element, other, factor, bit, parameter, share, seed, last.

  python -m witness.simulate --nodes 4 --gpus 8 --fault rank=13,factor=1000,since=23
  python -m witness.simulate --fault rank=0,mode=flip,bit=22,place=weights,once=31
  python -m witness.simulate --fault rank=1,mode=nan,once=25 --url http://127.0.0.1:8000
  python -m witness.simulate --nodes 3 --gpus 1 --table

The exit code is 3 after an alarm, as a real job's is, and 0 without one. With --scenario or
--table it is 0 where every row came out as expected, else 1. 2: wrong arguments, 4: ranks failed.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        layout = Layout(given.nodes, given.gpus)
        if given.list:
            _say(*(one.name for one in scenarios(layout)))
            return 0
        if given.table or given.scenario:
            return _scenarios(given, layout)
        return _train(_training(given, layout), given)
    except ValueError as error:
        parser.error(str(error))
    except FleetError as error:
        sys.stderr.write(f"{error}\n")
        return 4


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m witness.simulate",
        description=ABOUT,
        epilog=FAULTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument_group("the fleet and its job").add_argument
    add("--nodes", type=int, default=3, help="nodes, at least 3 for audits (default: 3)")
    add("--gpus", type=int, default=1, help="ranks a node (default: 1)")
    add("--fault", action="append", default=[], metavar="FAULT", help="may be repeated; see below")
    add("--start-step", type=int, default=0, help="first step (default: 0)")
    add("--steps", type=int, default=50, help="last step (default: 50)")
    add("--blocks", type=int, default=2, help="blocks of the model (default: 2)")
    add("--width", type=int, default=32, help="width of the model (default: 32)")
    add("--seed", type=int, default=0, help="of weights and data (default: 0)")
    add("--timeout", type=float, default=900, help="seconds until the ranks are ended")
    add = parser.add_argument_group("the checks").add_argument
    add("--audit-every", type=int, default=10, help="steps; 0: never (default: 10)")
    add("--check-every", type=int, default=10, help="weight checks (default: 10)")
    add("--ckpt-every", type=int, default=20, help="checkpoints (default: 20)")
    add("--default-kernels", action="store_true", help="audits compare the loss only")
    add("--no-check-on-checkpoint", action="store_true", help="save without comparing weights")
    add("--rotate", action="store_true", help="let the peer offset change from audit to audit")
    add("--replays", type=int, default=20, help="of the step after an alarm (default: 20)")
    add = parser.add_argument_group("what it leaves and tells").add_argument
    add("--url", default=os.environ.get("WITNESS_URL"), help="of a service (WITNESS_URL)")
    add("--token", default=os.environ.get("WITNESS_TOKEN"), help="for it (WITNESS_TOKEN)")
    add("--wait", type=float, default=10, help="seconds for the last reports (default: 10)")
    add("--job", help="name of the job (default: drill- and the time)")
    add("--attempt", type=int, default=1, help="which start of the job this is (default: 1)")
    add("--checkpoints", metavar="FOLDER", help="write real checkpoints, and hold them on alarm")
    add("--resume", action="store_true", help="start from the newest that may be resumed from")
    add("--spool", metavar="FOLDER", help="keep the reports here (default: a temporary one)")
    add("--logs", action="store_true", help="let the ranks log to standard error")
    add("--json", action="store_true", help="print the alarm document and nothing else")
    add = parser.add_argument_group("the published faults").add_argument
    add("--scenario", action="append", default=[], metavar="TEXT", help="rows that contain TEXT")
    add("--table", action="store_true", help="every row for this layout")
    add("--write", metavar="FILE", help="with --table: 4 × 8, 3 × 8 and 3 × 1 as a document")
    add("--list", action="store_true", help="names of the rows")
    return parser


def _job(given: argparse.Namespace) -> Job:
    return Job(Shape(width=given.width, blocks=given.blocks), given.seed)


def _training(given: argparse.Namespace, layout: Layout) -> Training:
    job = _job(given)
    faults = tuple(_placed(Fault.parse(text), job, layout) for text in given.fault)
    return Training(
        layout=layout,
        spool=given.spool or "",
        name=given.job or time.strftime("drill-%Y%m%d-%H%M%S", time.gmtime()),
        attempt=given.attempt,
        job=job,
        schedule=Schedule(
            audit_every=given.audit_every,
            check_every=given.check_every,
            ckpt_every=given.ckpt_every,
            peer_offset=layout.gpus,
            deterministic_audits=not given.default_kernels,
            check_on_checkpoint=not given.no_check_on_checkpoint,
            rotate=given.rotate,
        ),
        faults=faults,
        start_step=given.start_step,
        last_step=given.steps,
        url=given.url,
        token=given.token,
        checkpoints=given.checkpoints,
        resume=given.resume,
        replays=given.replays,
        post_s=given.wait,
        show=not given.json,
        logs=given.logs,
    )


def _placed(fault: Fault, job: Job, layout: Layout) -> Fault:
    if not 0 <= fault.rank < layout.world_size:
        raise ValueError(f"there is no rank {fault.rank}: ranks go to {layout.world_size - 1}")
    layer = fault.layer or job.shape.middle
    if layer not in dict(job.model().named_modules()):
        raise ValueError(f"the model has no layer {layer!r}; the middle one is {job.shape.middle}")
    return fault.at(layer)


def _train(training: Training, given: argparse.Namespace) -> int:
    if training.show:
        size = training.layout.world_size
        _say(f"{given.nodes} nodes of {given.gpus} GPUs ({size} ranks), job {training.name}")
        _say(*(f"fault: {fault.in_words()}" for fault in training.faults))
        _say(*(f"schedule: {sentence}" for sentence in training.schedule.advice()))
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        kept = training if training.spool else training.spooled(folder)
        outcome = simulate(kept, given.timeout)
    if given.json:
        _say(json.dumps(outcome.alarm))
    else:
        _tell(training, outcome)
    return EXIT_CODE if outcome.alarm is not None else 0


def _tell(training: Training, outcome: Outcome) -> None:
    saved = [f"{step} (audit {audit}, weights {check})" for step, audit, check in outcome.saved]
    _say(f"faults fired {outcome.fired} times")
    _say(f"checkpoints, with their last passes: {', '.join(saved) or 'none'}")
    if outcome.alarm is None:
        _say(f"no alarm from step {outcome.first_step} to step {training.last_step}")
    else:
        _say(in_words(outcome.alarm), *table.details(Alarm.read(outcome.alarm)))
    if training.url:
        _say(f"reported to {training.url}; documents not delivered: {outcome.left}")
        _say(*(f"  {what}: {why}" for what, why in outcome.trouble.items()))


def _scenarios(given: argparse.Namespace, layout: Layout) -> int:
    job = _job(given)
    if given.write:
        rows = written.write(Path(given.write), job, given.timeout)
        _say(f"{len(rows)} rows written to {given.write}")
    else:
        rows = table.run_table(layout, job, _chosen(given, layout, job), given.timeout)
        _say(table.as_markdown(rows).rstrip())
    bad = [row.said for row in rows if not row.met]
    _say(*bad)
    return 1 if bad else 0


def _chosen(given: argparse.Namespace, layout: Layout, job: Job) -> list[Scenario]:
    rows = scenarios(layout, job.shape)
    if given.table:
        return rows
    chosen = [one for one in rows if any(text in one.name for text in given.scenario)]
    if not chosen:
        raise ValueError(f"no scenario contains {' or '.join(given.scenario)!r}: see --list")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
