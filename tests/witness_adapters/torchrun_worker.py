"""A worker that torchrun starts: rank 1 of every start ends with an alarm."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from witness.ddp.adapters.torchrun import record_alarm, restarts_left
from witness.wire import envelope_from_environment

ALARM = {"check": "weights", "step": 7, "suspects": [1]}


def main(folder: Path) -> None:
    rank, envelope = os.environ["RANK"], envelope_from_environment()
    said = {
        "job": envelope.job,
        "attempt": envelope.attempt,
        "restarts_left": restarts_left(),
        "began": time.time(),
    }
    (folder / f"{envelope.attempt}-{rank}.json").write_text(json.dumps(said))
    if rank == "0":
        time.sleep(60)  # torchrun ends it when rank 1 is gone
    sys.stdout.write(f"leaving start {envelope.attempt}\n")
    said["recorded"] = record_alarm(ALARM)
    said["ended"] = time.time()
    (folder / f"{envelope.attempt}-{rank}.json").write_text(json.dumps(said))
    raise SystemExit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
