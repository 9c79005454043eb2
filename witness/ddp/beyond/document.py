"""How does an alarm of the further checks read?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Alarm = dict[str, Any]

NO_PASSES: Mapping[str, int | None] = {"last_audit_pass": None, "last_weight_check_pass": None}


def document(
    check: str,
    step: int,
    window: tuple[int, int],
    suspects: Sequence[int],
    *,
    passes: Mapping[str, int | None] | None = None,
    **more: Any,
) -> Alarm:
    """Put an alarm together, with the keys of the other alarms where they mean the same.

    `suspects` is null where nobody can be named, as for weights; `passes` are `Guard.tags()`. The
    service keeps and shows a check that it does not know, and recommends nothing.
    """
    return {
        "check": check,
        "step": step,
        "suspects": sorted(set(suspects)) or None,
        "suspect_window": [min(window), max(window)],
        **(NO_PASSES if passes is None else passes),
        **more,
    }


def window_of_turn(step: int, start_step: int, turns: int) -> tuple[int, int]:
    """Give the steps since the same part was looked at last, where parts take turns of `turns`."""
    return max(start_step, step - turns + 1), step
