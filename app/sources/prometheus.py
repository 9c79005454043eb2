"""How are stored samples asked of any API that speaks Prometheus' query language?

By instant queries for a range, `selector[…]`: they give the samples that were stored, with their
own times. `query_range` would give values at steps of its own and hide a missed scrape.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from app.sources import answers
from app.sources.bodies import TooMuch
from app.sources.ports import About, Away, Pulled, Question, Refused
from app.sources.transport import Transport
from witness.rules.samples import RawSeries

NAMES = "DCGM_(FI|EXP)_.+"
ALWAYS = ("UUID", "gpu_uuid")
"""Labels of a GPU's UUID that its exporter uses side by side: its links have the second."""
ELSE = ("uuid", "exported_UUID", "exported_uuid", "exported_gpu_uuid")
"""Labels that are asked for the GPUs of which those said nothing."""
SAMPLES_A_QUERY = 250_000
"""Asked for at once: about 6 MB of JSON, far below every server's default limit."""
FIELDS_GUESSED = 50
USUAL_INTERVAL_S = 15.0
SHORTEST_S = 60.0
QUERIES_LIMIT = 400
RECEIVED_LIMIT = 1 << 28
"""A pull that needs more asks for too much: it is refused rather than never ending."""
PULL_LIMIT_S = 480.0
"""No query is begun after it: a claim on windows runs out after a quarter of an hour."""


@dataclass(slots=True)
class _Pull:
    """One pull under way."""

    series: list[RawSeries] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    partial: bool = False
    queries: int = 0
    received: int = 0
    strangers: int = 0
    deadline: float = field(default_factory=lambda: time.monotonic() + PULL_LIMIT_S)

    def begin(self) -> None:
        """Count one more query; raises `SourceError` where this pull has had enough."""
        if self.queries >= QUERIES_LIMIT:
            raise Refused(f"The window needs more than {QUERIES_LIMIT} queries.")
        if self.received > RECEIVED_LIMIT:
            raise Refused(f"The window needs more than {RECEIVED_LIMIT >> 20} MiB of answers.")
        if time.monotonic() > self.deadline:
            raise Away(f"The source did not answer in whole within {PULL_LIMIT_S:.0f} seconds.")
        self.queries += 1

    def note_strangers(self) -> None:
        """Say once that series came that nobody asked for."""
        if self.strangers:
            note = f"{self.strangers} series of GPUs that were not asked for were left out."
            self.warnings[note] = None


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
        """Say what is known of it, with what the cluster's add-on tells by now."""
        return self._known if self._look_up is None else self._look_up(self._known)

    def close(self) -> None:
        """Close connections."""
        self._transport.close()

    def pull(self, question: Question) -> Pulled:
        """Give the stored samples, in as many queries as the source's limits ask for."""
        done = _Pull()
        interval = self.about().interval_s or USUAL_INTERVAL_S
        for start, end in pieces(question, interval):
            self._piece(done, question.uuids, start, end, first=start == question.start)
        done.note_strangers()
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
            found = self._found(done, uuids, start, end)
        except TooMuch as error:
            done.received += error.received
            for part in _halves(uuids, start, end, error):
                self._piece(done, *part, first=first and part[1] == start)
            return
        done.series += [_within(one, start, end, first=first) for one in found]

    def _found(
        self, done: _Pull, uuids: tuple[str, ...], start: float, end: float
    ) -> list[RawSeries]:
        """Ask under the labels that a UUID stands in: six queries at most.

        One fleet may hold several exporters, so each GPU that is not found is looked for further.
        """
        found: dict[frozenset[tuple[str, str]], list[RawSeries]] = {}
        left = {one.lower() for one in uuids}
        for label in (*ALWAYS, *ELSE):
            asked = uuids if label in ALWAYS else tuple(u for u in uuids if u.lower() in left)
            if not asked:
                break
            wanted = {one.lower() for one in asked}
            new: dict[frozenset[tuple[str, str]], list[RawSeries]] = {}
            for one in self._query(done, label, asked, start, end):
                uuid, labels = one.labels.get(label, "").lower(), frozenset(one.labels.items())
                if uuid not in wanted:
                    done.strangers += 1
                elif labels not in found:  # a series with two of the labels comes twice
                    new.setdefault(labels, []).append(one)
                    left -= {uuid} if "NVLINK" not in one.labels.get("__name__", "") else set()
            found |= new
        return [one for alike in found.values() for one in alike]

    def _query(
        self, done: _Pull, label: str, uuids: tuple[str, ...], start: float, end: float
    ) -> list[RawSeries]:
        done.begin()
        form = {"query": selector(label, uuids, start, end), "time": _time(end)}
        answer = self._transport.post(f"{self._url()}/api/v1/query", form | self._parameters)
        done.received += len(answer.body)
        matrix = answers.read(answer)
        done.warnings |= dict.fromkeys(matrix.warnings)
        done.partial = done.partial or matrix.partial
        return matrix.series


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
