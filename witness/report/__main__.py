"""What can a person do with a hold or a spool, without a training job?

python -m witness.report holds CHECKPOINTS
python -m witness.report release CHECKPOINTS --reason WHY --by WHO [--key KEY ...]
python -m witness.report send SPOOL [--seconds 60]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from witness import wire
from witness.report.hold import Hold, HoldUnreadableError, read_holds, release
from witness.report.reporter import Reporter


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give the exit code: 0 done, 1 something is left, 2 it could not be read."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.command == "holds":
            return _show(asked.checkpoints)
        if asked.command == "release":
            return _release(asked.checkpoints, asked.reason, asked.by, asked.key)
        return _send(asked.spool, asked.seconds)
    except (HoldUnreadableError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m witness.report")
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("holds", help="list the holds beside checkpoints")
    shown.add_argument("checkpoints", type=Path)
    lifted = commands.add_parser("release", help="lift holds; what was held stays on record")
    lifted.add_argument("checkpoints", type=Path)
    lifted.add_argument("--reason", required=True)
    lifted.add_argument("--by", required=True)
    lifted.add_argument("--key", action="append", help="only this one; all holds without it")
    sent = commands.add_parser("send", help="post a spool to WITNESS_URL with WITNESS_TOKEN")
    sent.add_argument("spool", type=Path)
    sent.add_argument("--seconds", type=float, default=60.0)
    return parser


def _show(directory: Path) -> int:
    holds = read_holds(directory)
    for hold in holds:
        sys.stdout.write(_in_words(hold) + "\n")
    if not holds:
        sys.stdout.write(f"No hold beside {directory}.\n")
    return 1 if any(not one.released and not one.left_behind for one in holds) else 0


def _in_words(hold: Hold) -> str:
    state = "released" if hold.released else "left behind" if hold.left_behind else "HOLDS"
    said = hold.document
    return (
        f"{hold.key}  {state:<11}  steps {hold.first} to {hold.last}  "
        f"{said.get('check')} at step {said.get('step')}, {hold.at}, {said.get('job', '')}"
    )


def _release(directory: Path, reason: str, by: str, keys: Sequence[str] | None) -> int:
    lifted = release(directory, reason, by, keys)
    sys.stdout.write(f"Lifted: {', '.join(lifted) or 'nothing'}.\n")
    return 0 if lifted else 1


def _send(spool: Path, seconds: float) -> int:
    """Post what processes that are gone left in a spool."""
    # The rank lets it adopt; the envelope is not used, since every document has its own.
    reporter = Reporter.from_environment(0, 0, spool=spool, envelope=wire.Envelope("", "", ""))
    deadline = time.monotonic() + seconds
    while not reporter.idle and time.monotonic() < deadline:
        time.sleep(0.1)
    left = reporter.status()["waiting"]
    reporter.close()
    said = reporter.status()
    sys.stdout.write(json.dumps({**said, "posted": said.get("posted", 0), "waiting": left}) + "\n")
    return 0 if left == 0 and said["posts"] else 1


if __name__ == "__main__":
    sys.exit(main())
