"""How fast is it?  `make bench`, or `python -m tests.bench [section ...]`; QUICK=1 for minutes.

Prints one table and keeps it as JSON in var/bench.  Everything is a ratio to a floor that the same
run measures: seconds on a machine that others use say little.  Nothing here is a test.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.bench import (
    approvals,
    beyond,
    checks,
    fingerprints,
    intake,
    latency,
    maps,
    orders,
    pages,
    reporter,
    telemetry,
    telemetry_rules,
)
from tests.bench.report import Report, machine

SECTIONS = {
    "intake": intake.measure,
    "maps": maps.measure,
    "latency": latency.measure,
    "approvals": approvals.measure,
    "orders": orders.measure,
    "pages": pages.measure,
    "fingerprints": fingerprints.measure,
    "checks": checks.measure,
    "reporter": reporter.measure,
    "beyond": beyond.measure,
    "readings": telemetry_rules.measure,
    "telemetry": telemetry.measure,
}
KEPT = Path("var/bench")
NEEDED_GIB, NEEDED_QUICK_GIB = 12, 2


def main() -> None:
    """Run the sections that were asked for, all of them by default."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    asked = sys.argv[1:] or list(SECTIONS)
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {', '.join(unknown)}: there are {', '.join(SECTIONS)}")
    KEPT.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(KEPT).free / 2**30, NEEDED_QUICK_GIB if quick else NEEDED_GIB
    if free < needed:
        sys.exit(f"{free:.1f} GiB are free in {KEPT}, the bench needs {needed}")
    report = Report()
    report.say(f"machine: {machine()}")
    try:
        with tempfile.TemporaryDirectory(dir=KEPT, prefix="run-") as folder:
            for name in asked:
                report.say(name)
                SECTIONS[name](report, Path(folder).resolve(), quick)
    finally:
        report.say(f"kept in {report.keep(KEPT)}")
    missed = [row.what for row in report.rows if row.met is False]
    report.say(f"aims not met: {len(missed)}" + "".join(f"\n     {one}" for one in missed))


if __name__ == "__main__":
    main()
