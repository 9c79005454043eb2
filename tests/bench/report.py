"""How is what was measured shown, kept, and held against the aims?"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure; `floor` names what it is a ratio to, `ratio` None where it has none.

    `met` tells whether an aim is met; None where there is no aim.
    """

    section: str
    what: str
    value: str
    floor: str = ""
    ratio: float | None = None
    aim: str = ""
    met: bool | None = None


@dataclass(slots=True)
class Report:
    """All rows of a run."""

    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    def add(
        self,
        section: str,
        what: str,
        value: str,
        floor: str = "",
        ratio: float | None = None,
        aim: str = "",
        met: bool | None = None,
    ) -> None:
        """Take a row and show it at once."""
        row = Row(section, what, value, floor, ratio, aim, met)
        self.rows.append(row)
        sys.stdout.write(_line(row) + "\n")
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Say what is being done."""
        sys.stdout.write(f"-- {time.time() - self.began:5.0f} s  {text}\n")
        sys.stdout.flush()

    def keep(self, folder: Path) -> Path:
        """Write everything as JSON; give the file."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"bench-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(self.began))}.json"
        said = {
            "machine": machine(),
            "seconds": round(time.time() - self.began, 1),
            "rows": [asdict(row) for row in self.rows],
        }
        file.write_text(json.dumps(said, indent=1) + "\n")
        return file


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:6.2f} x {row.floor}"
    met = {None: "", True: "met", False: "NOT MET"}[row.met]
    aim = f"aim {row.aim}: {met}" if row.aim else ""
    return f"{row.section:<9} {row.what:<52} {row.value:>26}  {ratio:<46} {aim}".rstrip()


def machine() -> dict[str, object]:
    """Say on what was measured, and how busy it was with other work."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "system": platform.system(),
        "load_average": [round(one, 1) for one in os.getloadavg()],
    }


def quantile(values: list[float], share: float) -> float:
    """Give the value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
