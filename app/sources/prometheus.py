"""How are stored samples asked of any API that speaks Prometheus' query language?

By instant queries for a range, `selector[…]`: they give the samples that were stored, with their
own times. `query_range` would give values at steps of its own and hide a missed scrape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from app.sources import answers
from app.sources.ports import About, Pulled, Question, Refused
from app.sources.transport import TooMuch, Transport
from witness.rules.samples import RawSeries

NAMES = "DCGM_(FI|EXP)_.+"
UUID_LABELS = ("UUID", "uuid", "gpu_uuid", "exported_UUID", "exported_uuid", "exported_gpu_uuid")
SAMPLES_A_QUERY = 250_000
"""Asked for at once: about 6 MB of JSON, far below every server's default limit."""
FIELDS_GUESSED = 50
USUAL_INTERVAL_S = 15.0
SHORTEST_S = 60.0
QUERIES_LIMIT = 400
"""A pull that needs more asks for too much: it is refused rather than never ending."""


@dataclass(slots=True)
class _Pull:
    """One pull under way."""

    series: list[RawSeries] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    partial: bool = False
    queries: int = 0
    received: int = 0


class PrometheusSource:
    """One query API: Prometheus, Amazon Managed Prometheus, Mimir, Thanos, VictoriaMetrics."""

    def __init__(
        self,
        known: About,
        url: Callable[[], str],
        transport: Transport,
        parameters: Mapping[str, str] | None = None,
        look_up: Callable[[About], About] | None = None,
    ) -> None:
        self._known, self._url, self._transport = known, url, transport
        self._parameters, self._look_up = dict(parameters or {}), look_up

    def about(self) -> About:
        """Say what is known of it; what the cluster's add-on tells is looked up once."""
        look_up = self._look_up  # another thread may clear it meanwhile
        if look_up is not None:
            self._known, self._look_up = look_up(self._known), None
        return self._known

    def close(self) -> None:
        """Close connections."""
        self._transport.close()

    def pull(self, question: Question) -> Pulled:
        """Give the stored samples, in as many queries as the source's limits ask for."""
        done = _Pull()
        interval = self._known.interval_s or USUAL_INTERVAL_S
        for start, end in pieces(question, interval):
            self._piece(done, question.uuids, start, end, first=start == question.start)
        return Pulled(
            series=tuple(done.series),
            warnings=tuple(done.warnings),
            partial=done.partial,
            queries=done.queries,
            samples=sum(len(one.samples) for one in done.series),
            received=done.received,
        )

    def _piece(
        self, done: _Pull, uuids: tuple[str, ...], start: float, end: float, *, first: bool
    ) -> None:
        """Ask for one piece; halve it, by time and then by GPU, where that is too much."""
        try:
            found = self._query(done, uuids, start, end)
        except TooMuch as error:
            for part in _halves(uuids, start, end, error):
                self._piece(done, *part, first=first and part[1] == start)
            return
        done.series += [_within(one, start, end, first=first) for one in found]

    def _query(
        self, done: _Pull, uuids: tuple[str, ...], start: float, end: float
    ) -> list[RawSeries]:
        """Ask under every label that a UUID stands in, until one of the usual ones has answered."""
        found: list[RawSeries] = []
        for label in UUID_LABELS:
            if found and label not in ("UUID", "gpu_uuid"):
                continue
            if done.queries >= QUERIES_LIMIT:
                raise Refused(f"The window needs more than {QUERIES_LIMIT} queries.")
            form = {"query": selector(label, uuids, start, end), "time": _time(end)}
            done.queries += 1
            answer = self._transport.post(f"{self._url()}/api/v1/query", form | self._parameters)
            done.received += len(answer.body)
            matrix = answers.read(answer)
            done.warnings |= dict.fromkeys(matrix.warnings)
            done.partial = done.partial or matrix.partial
            found += matrix.series
        return found


def selector(label: str, uuids: tuple[str, ...], start: float, end: float) -> str:
    """Write the range selector for these GPUs; a second longer, as servers may leave out its start.

    UUIDs come from documents that jobs post: every character that means something is escaped.
    """
    wanted = "|".join(re.escape(one).replace("\\-", "-") for one in uuids)
    quoted = f"(?i:{wanted})".replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    milliseconds = round((end - start) * 1000) + 1000
    return f'{{__name__=~"{NAMES}",{label}=~"{quoted}"}}[{milliseconds}ms]'


def pieces(question: Question, interval_s: float) -> Iterator[tuple[float, float]]:
    """Cut a window so that a piece holds about `SAMPLES_A_QUERY` samples; the pieces touch."""
    a_second = max(len(question.uuids), 1) * FIELDS_GUESSED / interval_s
    length = max(SAMPLES_A_QUERY / a_second, SHORTEST_S)
    start = question.start
    while start < question.end:
        end = min(start + length, question.end)
        yield start, end
        start = end


def _halves(
    uuids: tuple[str, ...], start: float, end: float, error: TooMuch
) -> list[tuple[tuple[str, ...], float, float]]:
    if end - start > 2 * SHORTEST_S:
        middle = float(round((start + end) / 2))
        return [(uuids, start, middle), (uuids, middle, end)]
    if len(uuids) > 1:
        half = len(uuids) // 2
        return [(uuids[:half], start, end), (uuids[half:], start, end)]
    raise Refused(f"The source refuses even a minute of one GPU: {error}")


def _within(series: RawSeries, start: float, end: float, *, first: bool) -> RawSeries:
    """Keep what lies in the piece; its start belongs to the piece before, but for the first."""
    kept = [
        (time, value)
        for time, value in series.samples
        if (start <= time if first else start < time) and time <= end
    ]
    return RawSeries(series.labels, kept)


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
