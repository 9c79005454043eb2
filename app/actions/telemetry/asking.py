"""What do the sources of a cluster give for one question, and what if one fails?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.sources.ports import About, Away, MetricSource, Pulled, Question, SourceError
from app.store.telemetry_queue import Window
from witness.rules.samples import RawSeries, Series, join

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Found:
    """What the sources of a cluster gave for one question, by UUID.

    `less` names GPUs of which a source once gave more, that was kept and is in `series` again.
    """

    series: dict[str, list[Series]]
    about: dict[str, About]
    pulled: list[Pulled]
    warnings: list[str]
    failure: SourceError | None = None
    less: set[str] = field(default_factory=set)

    def misses(self, window: Window) -> bool:
        """Tell whether a source that may know the GPU is still to be heard."""
        return self.failure is not None and window.gpu_uuid not in self.series


def ask(sources: Sequence[MetricSource], windows: Sequence[Window], now: datetime) -> Found:
    """Ask the sources in their order, each for the GPUs of which none before it knows anything."""
    found = Found({}, {}, [], [])
    start, end = windows[0].start.timestamp(), min(windows[0].end, now).timestamp()
    left = [one.gpu_uuid for one in windows]
    for source in sources:
        if not left or end <= start:
            break
        about = source.about()
        try:
            pulled = _answer(source, Question(tuple(left), start, end))
        except SourceError as error:
            # What may pass counts first: it is worth asking again.
            found.failure = found.failure if isinstance(found.failure, Away) else error
            found.warnings.append(f"{about.name}: {error}")
            continue
        found.pulled.append(pulled)
        found.warnings += pulled.warnings
        _take(found, about, pulled.series)
        left = [uuid for uuid in left if uuid not in found.series]
    return found


def _answer(source: MetricSource, question: Question) -> Pulled:
    """Ask one source; what it did not foresee (credentials, a header) may pass, as `Away`."""
    try:
        return source.pull(question)
    except SourceError:
        raise
    except Exception as error:
        log.exception("a source of metrics failed in a way of its own")
        raise Away(
            f"A fault of this service ({type(error).__name__}); its log says more."
        ) from None


def _take(found: Found, about: About, raw: Sequence[RawSeries]) -> None:
    joined = join(raw, about.interval_s)
    for series in joined.series:
        found.series.setdefault(series.gpu_uuid, []).append(series)
        found.about[series.gpu_uuid] = about
    # What the table of fields does not know is no fault: sources hold more than is evidence.
    found.warnings += [
        f"{one.series} series of {one.metric} were left out: {one.why}."
        for one in joined.not_joined
        if "label" in one.why
    ]
