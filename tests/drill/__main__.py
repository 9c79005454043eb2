"""Which drills are run, and did all of them hold?"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from tests.drill.scenes import SCENES
from tests.drill.world import OffError, out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the drills that are named, or all; give the exit status."""
    names = wanted(arguments)
    logging.basicConfig(level=logging.WARNING, format="        %(message)s")
    failed = []
    for name in names:
        scene = SCENES[name]
        out(f"\n{name}: {str(scene.__doc__).splitlines()[0]}")
        try:
            scene(lambda words: out(f"  {words}"))
        except (OffError, AssertionError) as error:
            failed.append(name)
            out(f"  OFF: {error}")
    out(f"\n{len(names) - len(failed)} of {len(names)} drills held." + _names(failed))
    return 1 if failed else 0


def wanted(arguments: Sequence[str] | None) -> list[str]:
    """Read which drills are asked for; none named means all."""
    parser = argparse.ArgumentParser(prog="python -m tests.drill")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCENES)}; none: all")
    names: list[str] = parser.parse_args(arguments).names
    for name in names:
        if name not in SCENES:
            parser.error(f"there is no drill {name}; there are {', '.join(SCENES)}")
    return names or list(SCENES)


def _names(failed: list[str]) -> str:
    return f" Off: {', '.join(failed)}." if failed else ""


if __name__ == "__main__":
    sys.exit(main())
