"""Which samples belong to one field of one GPU, whatever the source calls and splits them?

Joined by GPU UUID alone: host names, pod names and GPU indexes change their meaning from set-up to
set-up, and the same index exists on every node. Values stay as they came; `cleaning.py` says which
of them are readings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from operator import itemgetter
from statistics import median

from witness.rules.dcgm_fields import Field, field_of
from witness.rules.identity import gpu_uuid
from witness.rules.merging import merged, steps

Part = tuple[tuple[str, str], ...]
"""What one GPU has several of, as sorted pairs: `mig`, `link`, `xid`, `event`, `watch`, and for
counts over a window its length `window_ms`. Empty for the GPU as a whole."""

LONGEST_VALUE = 64
"""No number that a source prints is longer."""
LONGEST_PART = 200
"""No name of a part is longer, and an index of a database may hold no more than 2,700 bytes."""

_UUID_LABELS = ("exported_uuid", "uuid", "exported_gpu_uuid", "gpu_uuid")
_PART_LABELS = {
    "gpu_i_id": "mig",
    "nvlink": "link",
    "xid": "xid",
    "clock_event": "event",
    "health_watch": "watch",
    "window_size_in_ms": "window_ms",
}


@dataclass(frozen=True, slots=True)
class RawSeries:
    """One series as a source sends it: labels with `__name__`; samples in any order."""

    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the labels said beside the identity; each in order of first appearance, none trusted."""

    metrics: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """All samples of one field of one GPU (or of one `part` of it), by rising time.

    Times are seconds since 1970, each once. `joined` counts the source's series that were put
    together; `left_out` the samples of further series that ran at the same time (two exporters,
    two Prometheus servers), which would make false resets.
    """

    gpu_uuid: str
    field_id: int
    part: Part
    times: tuple[float, ...]
    values: tuple[float, ...]
    seen: Seen = field(default_factory=Seen)
    joined: int = 1
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class NotJoined:
    """Series that could not be given to a GPU: metric, why, how many."""

    metric: str
    why: str
    series: int


@dataclass(frozen=True, slots=True)
class Joined:
    """What became of a source's series, ordered by GPU, field and part."""

    series: tuple[Series, ...]
    not_joined: tuple[NotJoined, ...]


def from_prometheus(
    metric: Mapping[str, str], values: Sequence[tuple[float, str] | Sequence[float | str]]
) -> RawSeries:
    """Read one entry of a matrix result: `metric`, and `values` as pairs of time and text.

    A value is a number, NaN, +Inf or -Inf. ValueError where a time is no finite number or a value
    none of these.
    """
    times, texts = [float(time) for time, _ in values], [text for _, text in values]
    # Whole columns at once: a call for each sample would double what reading an answer costs.
    if not isfinite(sum(times)):
        raise ValueError("a sample's time is not a finite number")
    if max(map(len, map(str, texts)), default=0) > LONGEST_VALUE:
        raise ValueError("a sample's value is longer than any number")
    samples = list(zip(times, map(float, texts), strict=True))
    return RawSeries(dict(metric), samples)


def meant(text: str | None, known: Iterable[str]) -> str | None:
    """Find the one UUID among `known` that a rank map's spelling means; None unless exactly one.

    A short id means the one GPU that starts so. An index or a device name means none.
    """
    wanted = gpu_uuid(text)
    fitting = {uuid for uuid in known if wanted.fits(uuid)}
    return fitting.pop() if len(fitting) == 1 else None


def scrape_interval(series: Iterable[Series]) -> float | None:
    """Estimate seconds between samples: the median over all neighbours; None below two samples.

    Right as long as fewer than half of the scrapes are missing.
    """
    found = [step for one in series for step in steps(one.times)]
    return median(found) if found else None


def join(raw: Iterable[RawSeries], interval_s: float | None = None) -> Joined:
    """Give every series to its GPU and field, and put together what a label has split.

    A changing pod, an error code in a label, another name of the same field: one series. Where two
    ran at the same time, the one with more samples counts, and the other fills only its holes.
    `interval_s` is the scrape interval where it is known. Without it, it is estimated, and a label
    that changes with nearly every sample cannot be told from a second source.
    """
    members: dict[tuple[str, int, Part], list[RawSeries]] = {}
    lost: dict[tuple[str, str], int] = {}
    for one in raw:
        labels = {name.lower(): text for name, text in one.labels.items() if text}
        name = labels.get("__name__", "")
        known = field_of(name)
        uuid = _uuid(labels)
        part = () if known is None else _part(labels, known)
        why = _why_lost(known, uuid, part)
        if known is None or uuid is None or why is not None:
            lost[name, str(why)] = lost.get((name, str(why)), 0) + 1
        else:
            members.setdefault((uuid, known.id, part), []).append(one)
    return Joined(
        tuple(_joined(*key, members[key], interval_s) for key in sorted(members)),
        tuple(NotJoined(name, why, count) for (name, why), count in sorted(lost.items())),
    )


def _why_lost(known: Field | None, uuid: str | None, part: Part) -> str | None:
    if known is None:
        return "not in the table of fields"
    if uuid is None:
        return "no label holds a GPU UUID"
    is_long = any(len(text) > LONGEST_PART for _, text in part)
    return "a label that names a part of the GPU is too long" if is_long else None


def united(series: Iterable[Series], interval_s: float | None = None) -> tuple[Series, ...]:
    """Put series of the same GPU, field and part together: of several sources, of windows in a row.

    As `join` does: where two ran at the same time the longer one counts.
    """
    members: dict[tuple[str, int, Part], list[Series]] = {}
    for one in series:
        members.setdefault((one.gpu_uuid, one.field_id, one.part), []).append(one)
    return tuple(
        found[0] if len(found) == 1 else _united(found, interval_s)
        for _, found in sorted(members.items(), key=lambda pair: pair[0])
    )


def _united(found: list[Series], interval: float | None) -> Series:
    # By first sample; ties by length and values, so that the order they came in changes nothing.
    ordered = sorted(found, key=lambda one: (one.times, one.values, one.seen.metrics))
    times, values, left_out = merged(
        [list(zip(one.times, one.values, strict=True)) for one in ordered], interval
    )
    seen = (
        tuple(dict.fromkeys(text for one in ordered for text in getattr(one.seen, part.name)))
        for part in fields(Seen)
    )
    return replace(
        ordered[0],
        times=tuple(times),
        values=tuple(values),
        seen=Seen(*seen),
        joined=sum(one.joined for one in ordered),
        left_out=left_out + sum(one.left_out for one in ordered),
    )


def _uuid(labels: Mapping[str, str]) -> str | None:
    """Find the GPU; `exported_` first: it is what the exporter said before a target label won."""
    for name in _UUID_LABELS:
        read = gpu_uuid(labels.get(name))
        if read.form in {"full", "mig"} and read.canonical is not None:
            return read.canonical
    return None


def _part(labels: Mapping[str, str], known: Field) -> Part:
    """Keep the labels that tell parts of one GPU apart; `xid` and `event` only where counted."""
    by_event = known.id > 9000
    found = {
        short: labels[name]
        for name, short in _PART_LABELS.items()
        if name in labels and (by_event or short in {"mig", "link"})
    }
    return tuple(sorted(found.items()))


def _joined(
    uuid: str, field_id: int, part: Part, members: list[RawSeries], interval: float | None
) -> Series:
    sorted_members = [(sorted(one.samples, key=itemgetter(0)), one.labels) for one in members]
    by_first = sorted(
        sorted_members, key=lambda one: (one[0][0][0] if one[0] else 0.0, sorted(one[1].items()))
    )
    times, values, left_out = merged([samples for samples, _ in by_first], interval)
    return Series(
        uuid,
        field_id,
        part,
        tuple(times),
        tuple(values),
        _seen([labels for _, labels in by_first]),
        len(members),
        left_out,
    )


def _seen(all_labels: list[Mapping[str, str]]) -> Seen:
    """Collect what a page may show beside the UUID."""
    lowered = [{name.lower(): text for name, text in one.items() if text} for one in all_labels]

    def distinct(*names: str) -> tuple[str, ...]:
        """Take the first of these labels that is there, over all members."""
        found = (next((one[n] for n in names if n in one), None) for one in lowered)
        return tuple(dict.fromkeys(text for text in found if text is not None))

    return Seen(
        metrics=distinct("__name__"),
        hosts=distinct("exported_hostname", "hostname"),
        indexes=distinct("exported_gpu", "gpu"),
        pci=distinct("pci_bus_id"),
        models=distinct("modelname", "model_name"),
        drivers=distinct("dcgm_fi_driver_version", "dcgm_fi_system_driver_version"),
        profiles=distinct("gpu_i_profile"),
        pods=tuple(dict.fromkeys(pod for one in lowered if (pod := _pod(one)) is not None)),
    )


def _pod(labels: Mapping[str, str]) -> str | None:
    """Name the workload's pod; the exporter's own one, which is also its host name, is none."""
    pod = labels.get("exported_pod") or labels.get("pod")
    if pod is None or pod == labels.get("hostname"):
        return None
    space = labels.get("exported_namespace") or labels.get("namespace")
    return f"{space}/{pod}" if space else pod
