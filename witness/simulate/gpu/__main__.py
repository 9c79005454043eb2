"""What do the checks cost on this machine's GPU, and do they hold there?

Takes at most ten minutes; a part that fails is told and the next one begins.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from witness.simulate.gpu import drilling, fingerprinting, stepping
from witness.simulate.gpu.measuring import Bench

NO_DEVICE = 2
Part = Callable[[Bench], Iterator[dict[str, Any]]]
PARTS: dict[str, Part] = {
    "fingerprints": fingerprinting.measure,
    "check-1": stepping.check_1,
    "audits": stepping.audits,
    "drills": drilling.drills,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 0 where all held, 1 where one failed or was wrong, 2 without a device."""
    parser = argparse.ArgumentParser(prog="python -m witness.simulate.gpu", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="a part (default all)")
    parser.add_argument("--device", default="cuda", help="device (default cuda)")
    parser.add_argument("--small", action="store_true", help="tiny sizes: a rehearsal, no figures")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds in all (default 600)")
    parser.add_argument("--json", type=Path, help="file for every row")
    options = parser.parse_args(arguments)
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU here: nothing was run\n")
        return NO_DEVICE
    bench = Bench(torch.device(options.device), options.small)
    rows = list(_rows(bench, options.part or list(PARTS), options.limit))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(row.get("right") is False or "error" in row for row in rows))


def _rows(bench: Bench, parts: Sequence[str], limit_s: float) -> Iterator[dict[str, Any]]:
    began = time.monotonic()
    yield _told({"what": f"torch {torch.__version__} on {_name(bench.device)}"})
    for part in parts:
        if time.monotonic() - began > limit_s:
            yield _told({"what": part, "error": f"not begun: {limit_s:.0f} s were over"})
            continue
        yield from _of_part(bench, part, began + limit_s)


def _of_part(bench: Bench, part: str, end: float) -> Iterator[dict[str, Any]]:
    try:
        for row in PARTS[part](bench):
            yield _told({"part": part, **row})
            if time.monotonic() > end:
                yield _told({"what": part, "error": "cut off: the time was over"})
                return
    except Exception as error:
        # The next part may still tell something.
        yield _told({"what": part, "error": f"{type(error).__name__}: {error}"})


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row at once: a run that is cut off has still said what it knew."""
    figures = [
        f"{key} {_short(value)}" for key, value in row.items() if key not in {"what", "part"}
    ]
    sys.stdout.write(f"{row['what']:<72} {', '.join(figures)}\n")
    sys.stdout.flush()
    return row


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


if __name__ == "__main__":
    raise SystemExit(main())
