"""Which samples around an alarm are the suspect's, its node's, and those of GPUs that compare?"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from witness.rules.cleaning import Clean, clean
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.observations import Source, Window
from witness.rules.samples import Series, scrape_interval, united

_ByGpu = Mapping[str, Mapping[int, tuple[Series, ...]]]


@dataclass(frozen=True, slots=True)
class Around:
    """Everything that one reading reads.

    `own` holds the suspect's cleaned series by field number. `node` are the UUIDs of the other GPUs
    of its node, `peers` those and the GPUs of the same index on other nodes; both as the rank map
    has them, so that one which sends nothing is noticed.
    """

    window: Window
    suspect: str
    own: Mapping[int, tuple[Clean, ...]]
    by_gpu: _ByGpu
    node: tuple[str, ...]
    peers: tuple[str, ...]
    interval_s: float | None
    source: Source

    def fields(self, *kinds: str) -> tuple[tuple[Field, tuple[Clean, ...]], ...]:
        """List the suspect's fields of these kinds that are evidence, by number."""
        return tuple(
            (BY_ID[number], self.own[number])
            for number in sorted(self.own)
            if BY_ID[number].kind in kinds and BY_ID[number].is_evidence
        )

    def of_peers(self, field_id: int) -> tuple[tuple[Clean, ...], ...]:
        """Clean one field of each peer that sends it; one entry a peer, one series a part."""
        found = (self.by_gpu.get(peer, {}).get(field_id, ()) for peer in self.peers)
        return tuple(
            tuple(clean(one, self.interval_s) for one in series) for series in found if series
        )

    def newest(self, gpu: str) -> float | None:
        """Give the time of a GPU's newest sample of any field, None where it sent nothing."""
        times = [
            one.times[-1]
            for series in self.by_gpu.get(gpu, {}).values()
            for one in series
            if one.times
        ]
        return max(times, default=None)

    def sample_times(self, gpu: str) -> tuple[float, ...]:
        """List the times at which any field of a GPU has a sample."""
        return tuple(
            sorted(
                {
                    time
                    for series in self.by_gpu.get(gpu, {}).values()
                    for one in series
                    for time in one.times
                }
            )
        )


def around(
    window: Window,
    suspect: str,
    series: Iterable[Series],
    node: Sequence[str] = (),
    ring: Sequence[str] = (),
    source: Source | None = None,
) -> Around:
    """Sort a window's series; samples outside of it are left away, several sources put together."""
    known = source or Source()
    by_gpu: dict[str, dict[int, tuple[Series, ...]]] = {}
    for one in united(series, known.interval_s):
        cut = within(one, window.start, window.end)
        fields = by_gpu.setdefault(cut.gpu_uuid, {})
        fields[cut.field_id] = (*fields.get(cut.field_id, ()), cut)
    others = tuple(dict.fromkeys(uuid for uuid in (*node, *ring) if uuid != suspect))
    interval = known.interval_s or _interval(by_gpu, suspect)
    own = {
        number: tuple(clean(one, interval) for one in parts)
        for number, parts in by_gpu.get(suspect, {}).items()
    }
    on_node = tuple(dict.fromkeys(uuid for uuid in node if uuid != suspect))
    return Around(window, suspect, own, by_gpu, on_node, others, interval, known)


def within(series: Series, start: float, end: float) -> Series:
    """Keep the samples from `start` to `end`, both included."""
    if not series.times or (start <= series.times[0] and series.times[-1] <= end):
        return series
    first, last = bisect_left(series.times, start), bisect_right(series.times, end)
    return replace(series, times=series.times[first:last], values=series.values[first:last])


def _interval(by_gpu: _ByGpu, suspect: str) -> float | None:
    """Estimate the scrape interval from the suspect, or from all where it sends too little."""
    own = scrape_interval(one for parts in by_gpu.get(suspect, {}).values() for one in parts)
    if own is not None:
        return own
    return scrape_interval(
        one for fields in by_gpu.values() for parts in fields.values() for one in parts
    )
