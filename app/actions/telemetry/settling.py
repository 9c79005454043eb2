"""What stands in the row of a window after its sources were asked?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from app.actions.telemetry.asking import Found
from app.sources.ports import Away, Refused, SourceError
from app.store.telemetry_queue import Window

STORED_AFTER = timedelta(minutes=2)  # a scrape of 30 s, an exporter of 30 s, a remote write
BACK_OFF = (30, 60, 120, 300, 600, 1800, 3600)  # seconds; then once an hour
GIVE_UP = timedelta(hours=24)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
LESS = "Asked again, its source had fewer samples; those that it gave before are kept as well."
LOST = "Asked again, its source had no samples of this GPU any more."


def done(window: Window, found: Found, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a window that was answered for.

    A source that has forgotten what it sent before takes nothing away from what is kept.
    """
    whole = now >= window.end + STORED_AFTER
    state = {
        "state": "done" if whole else "queued",
        "next_at": window.end + STORED_AFTER,
        "whole": whole,
        "queries": window.queries + sum(one.queries for one in found.pulled),
        "said": None,
        "tries": 0,
    }
    if has_lost(window, found):
        return {**state, "warnings": list(dict.fromkeys([*window.warnings, LOST]))}
    about = found.about.get(window.gpu_uuid)
    less = [LESS] if window.gpu_uuid in found.less else []
    return {
        **state,
        "pulled_at": now,
        "source": about.name if about else None,
        "level": about.level if about else None,
        "interval_s": about.interval_s if about else None,
        "samples": sum(len(one.times) for one in found.series.get(window.gpu_uuid, ())),
        "partial": any(one.partial for one in found.pulled),
        "warnings": [*dict.fromkeys([*less, *found.warnings])][:20],
        "purged_at": None,
    }


def has_lost(window: Window, found: Found) -> bool:
    """Tell whether the source knows nothing any more of what it once gave.

    Then what is kept stays as it is, and what moved; nor do deleted samples count as never there.
    """
    return window.samples > 0 and window.gpu_uuid not in found.series


def failed(window: Window, failure: SourceError | None, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a window that no source answered for.

    A refusal is shown at once. It is tried again as what is away is, since a token is rotated and
    a policy mended without anybody's telling us; after a day it stays.
    """
    was_refused = isinstance(failure, Refused)
    if now - max(window.asked_at, window.start) >= GIVE_UP:
        if was_refused:
            return {"state": "refused", "next_at": NEVER, "said": str(failure)}
        return {"state": "given_up", "said": f"No answer for a day. {failure}"}
    wait = BACK_OFF[min(max(window.tries, 1), len(BACK_OFF)) - 1]
    if isinstance(failure, Away) and failure.after_s is not None:
        wait = max(wait, int(failure.after_s) + 1)
    state = "refused" if was_refused else "queued"
    return {"state": state, "next_at": now + timedelta(seconds=wait), "said": str(failure)}


def early(window: Window) -> dict[str, Any]:
    """Say what stands in the row of a window that has not begun: an alarm's clock was ahead."""
    said = "It has not begun by the clock of this service."
    return {"state": "queued", "next_at": window.start + STORED_AFTER, "said": said}
