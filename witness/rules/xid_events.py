"""Which Xids does the telemetry of the suspect show, and what is known of their time?

Three sources, from worst to best: a gauge with the last Xid, which stays for days and dates only a
change; counts over the minutes before a sample; totals since the exporter started.
"""

from collections.abc import Iterator

from witness.rules import words
from witness.rules.around import Around
from witness.rules.cleaning import Clean
from witness.rules.clock_events import BY_NAME
from witness.rules.counting import counted
from witness.rules.dcgm_rows import Evidence
from witness.rules.moments import at, span
from witness.rules.observations import Observation, When
from witness.rules.samples import Part
from witness.rules.xid import AS_EVIDENCE, Xid, XidSeen, values_of_gauge, xid_of

GAUGE, WINDOW_COUNT, TOTAL = 230, 9001, 9005
CLOCK_WINDOW_COUNT, CLOCK_TOTAL = 9002, 9006

_DEFAULT_WINDOW_S = 300.0
"""The exporter's own setting where the label does not say."""


def xid_events(around: Around) -> tuple[Observation, ...]:
    """Read every source of Xids, and the exporter's counts of clock events, which work alike."""
    found: list[Observation] = []
    for one in around.own.get(GAUGE, ()):
        seen = values_of_gauge(one.times, one.values)
        found += [_of_gauge(around, one.series.part, value) for value in seen if _speaks(value)]
    for number in (WINDOW_COUNT, CLOCK_WINDOW_COUNT):
        for one in around.own.get(number, ()):
            found += _of_window_count(around, one)
    for number in (TOTAL, CLOCK_TOTAL):
        for one in around.own.get(number, ()):
            found += _of_total(around, one)
    return tuple(found)


def _speaks(seen: XidSeen) -> bool:
    """Tell whether a value is worth a sentence: an Xid, or 0 after one."""
    return seen.number != 0 or seen.before is not None


def _of_gauge(around: Around, part: Part, seen: XidSeen) -> Observation:
    if seen.number == 0:
        return _gone(around, part, seen)
    xid = xid_of(seen.number)
    if seen.before is None:
        return _standing(around, part, seen, xid)
    when = around.window.when(seen.before, seen.at)
    return Observation(
        code="xid_new",
        field_id=GAUGE,
        evidence=AS_EVIDENCE[xid.kind],
        risen=_counts(AS_EVIDENCE[xid.kind], when),
        when=when,
        text=f"New {_named(xid)}, {span(seen.before, seen.at)}. {_advice(xid)}",
        part=part,
        first=seen.before,
        last=seen.at,
        xid=xid.number,
    )


def _standing(around: Around, part: Part, seen: XidSeen, xid: Xid) -> Observation:
    early = seen.at <= around.window.suspect_from
    where = (
        "already present before the suspect window"
        if early
        else f"already present in the first sample, at {at(seen.at)}"
    )
    return Observation(
        code="xid_standing",
        field_id=GAUGE,
        evidence="context",
        risen=False,
        when="standing" if early else "unknown",
        text=(
            f"Last {_named(xid)}: {where}. This metric does not say when it happened; "
            f"an equal one since then would not show. {_advice(xid)}"
        ),
        part=part,
        last=seen.at,
        xid=xid.number,
    )


def _gone(around: Around, part: Part, seen: XidSeen) -> Observation:
    before = seen.at if seen.before is None else seen.before
    return Observation(
        code="xid_gone",
        field_id=GAUGE,
        evidence="context",
        risen=False,
        when=around.window.when(before, seen.at),
        text=(
            f"The last Xid went back to 0, {span(before, seen.at)}: the exporter or the driver was "
            "started again. That is no recovery."
        ),
        part=part,
        first=seen.before,
        last=seen.at,
    )


def _of_window_count(around: Around, clean: Clean) -> Iterator[Observation]:
    """Make one observation of each run of samples that count anything: they count the same."""
    named = _counted_thing(clean)
    if named is None:
        return
    title, evidence, advice = named
    length = _window_s(clean.series.part)
    for times, most in _runs(clean, length):
        since = times[0] - length
        when = around.window.when(since, times[0])
        yield Observation(
            code="recent_count",
            field_id=clean.field.id,
            evidence=evidence,
            risen=_counts(evidence, when),
            when=when,
            text=f"{title}, at least {words.counted(most, 'time')}, {span(since, times[0])} "
            f"or later in a run of samples until {at(times[-1])}. {advice}".rstrip(),
            part=clean.series.part,
            first=since,
            last=times[0],
            amount=float(most),
            xid=_number(clean.series.part) or None,
        )


def _runs(clean: Clean, length: float) -> Iterator[tuple[list[float], int]]:
    """Part the samples that count something where a 0 or more than a window lies between."""
    run: list[float] = []
    most = 0
    for time, value in zip(clean.times, clean.values, strict=True):
        if run and (value <= 0 or time - run[-1] > length):
            yield run, most
            run, most = [], 0
        if value > 0:
            run.append(time)
            most = max(most, round(value))
    if run:
        yield run, most


def _of_total(around: Around, clean: Clean) -> Iterator[Observation]:
    named = _counted_thing(clean)
    if named is None:
        return
    title, evidence, advice = named
    times, values = _born(around, clean)
    for rise in counted(times, values, "exporter").rises:
        when = around.window.when(rise.before, rise.at)
        yield Observation(
            code="increase",
            field_id=clean.field.id,
            evidence=evidence,
            risen=_counts(evidence, when),
            when=when,
            text=f"{title}, {words.counted(round(rise.amount), 'time')}, "
            f"{span(rise.before, rise.at)}. {advice}".rstrip(),
            part=clean.series.part,
            first=rise.before,
            last=rise.at,
            amount=rise.amount,
            xid=_number(clean.series.part) or None,
        )


def _born(around: Around, clean: Clean) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Let a total that appears while the GPU was being watched count from 0.

    Its series begins with its first event. Where the GPU sent other fields before, the total was 0.
    """
    if not clean.times:
        return (), ()
    sooner = [time for time in around.sample_times(around.suspect) if time < clean.times[0]]
    if not sooner:
        return clean.times, clean.values
    return (sooner[-1], *clean.times), (0.0, *clean.values)


def _counted_thing(clean: Clean) -> tuple[str, Evidence, str] | None:
    """Say what a counted series counts; None where that is nothing, or not said."""
    labels = dict(clean.series.part)
    if clean.field.group == "throttling":
        event = BY_NAME.get(labels.get("event", ""))
        if event is None or not event.hardware:
            return None
        return f"Clock event “{event.title}”", "hint", ""
    number = _number(clean.series.part)
    if number == 0:
        return None
    xid = xid_of(number)
    return _named(xid), AS_EVIDENCE[xid.kind], _advice(xid)


def _number(part: Part) -> int:
    """Read the Xid that a counted series is about; 0 where it is about none."""
    text = dict(part).get("xid", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _counts(evidence: Evidence, when: When) -> bool:
    """Tell whether it makes a reading risen: from the hardware at any time, else not before."""
    return evidence == "hardware" or (evidence == "hint" and when in {"window", "after"})


def _window_s(part: Part) -> float:
    text = dict(part).get("window_ms", "")
    return (
        int(text) / 1000
        if text.isascii() and text.isdigit() and len(text) < 12
        else (_DEFAULT_WINDOW_S)
    )


def _named(xid: Xid) -> str:
    return f"Xid {xid.number} ({xid.text})"


def _advice(xid: Xid) -> str:
    first = {
        "application": "Look at the application first; a wrong value can cause it too.",
        "hardware": "The hardware reports it.",
        "driver": "Driver or firmware first.",
        "side_effect": "It follows from another error.",
        "information": "For information.",
        "recovery": "The driver asks for an action; its log line says which.",
        "unknown": "Look it up.",
    }[xid.kind]
    done = "" if xid.action in {"none", "look it up", "as its message says"} else xid.action
    return f"{first} Usual action: {done}." if done else first
