"""Does the suspect still report, and do the other GPUs of its node?

A GPU that has fallen off the bus sends nothing, and everything else looks as before: only counting
those that are not there shows it. All GPUs of a node come in one scrape, so one that is missing
while the others are there is missing by itself.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import isfinite

from witness.rules import words
from witness.rules.around import Around
from witness.rules.cleaning import is_blank
from witness.rules.moments import at, span
from witness.rules.observations import Observation

SILENT = 2.5
"""Silent after this many scrape intervals: at least two scrapes without it. A single one may be cut
off at the end of the samples."""


def presence(around: Around) -> tuple[Observation, ...]:
    """Say when the suspect fell silent, or was away, while its neighbours reported."""
    silent = _silent(around)
    empty = None if silent else _without_values(around)
    return (*(one for one in (silent, empty) if one), *_away(around))


def notes_on_presence(around: Around) -> tuple[str, ...]:
    """Make sentences about the GPUs of the node that are not the suspect, or about all of them."""
    interval = around.interval_s
    newest = {gpu: around.newest(gpu) for gpu in (around.suspect, *around.node)}
    there = [time for time in newest.values() if time is not None]
    found = []
    if around.suspect.startswith("MIG-"):
        found.append(
            "The rank map names an instance by a UUID of its own; exporters name the GPU that it "
            "is a part of, so nothing can be joined."
        )
    if newest[around.suspect] is None and there:
        found.append(
            f"The GPU sent nothing in this window; {len(there)} of {len(newest)} GPUs of its node "
            "did. It was silent before, or its UUID in the rank map is not that of the exporter."
        )
    if interval is None or not there or not around.node:
        return tuple(found)
    latest = max(there)
    gone = [
        gpu
        for gpu in around.node
        if (time := newest[gpu]) is None or latest - time > SILENT * interval
    ]
    if gone:
        found.append(f"Of this node {words.listed(gone, 4)} did not report until the end.")
    elsewhere = [
        time
        for gpu in around.peers
        if gpu not in around.node and (time := around.newest(gpu)) is not None
    ]
    end = max(elsewhere, default=around.window.end - around.window.sample_age_s)
    if end - latest > SILENT * interval:
        found.append(
            f"No GPU of this node has a sample after {at(latest)}: exporter, node or network; "
            "the samples do not tell which."
        )
    return tuple(found)


def _silent(around: Around) -> Observation | None:
    last, interval = around.newest(around.suspect), around.interval_s
    others = [time for gpu in around.node if (time := around.newest(gpu)) is not None]
    if last is None or interval is None or not others:
        return None
    latest = max(others)
    if latest - last <= SILENT * interval:
        return None
    still = sum(1 for time in others if latest - time <= SILENT * interval)
    window = around.window
    return Observation(
        code="silent",
        field_id=None,
        evidence="hardware",
        risen=True,
        when=window.when(last, last + interval),
        text=(
            f"GPU silent since {at(last)}, {still} of {len(around.node) + 1} GPUs of this node "
            f"report until {at(latest)}."
        ),
        first=last,
        last=last + interval,
    )


def _without_values(around: Around) -> Observation | None:
    """Find a suspect that still sends samples and has said “no value” in all of them for a while.

    Exporters have been seen to go on like this after an Xid, until they are started again.
    """
    interval, latest = around.interval_s, around.newest(around.suspect)
    readings = [one.times[-1] for parts in around.own.values() for one in parts if one.times]
    if interval is None or latest is None or not readings:
        return None
    last = max(readings)
    if latest - last <= SILENT * interval:
        return None
    others = sum(_has_reading_after(around, gpu, last + interval) for gpu in around.node)
    if not others:
        return None
    when = around.window.when(last, last + interval)
    return Observation(
        code="no_values",
        field_id=None,
        evidence="hint",
        risen=when != "before" or latest > around.window.suspect_from,
        when=when,
        text=(
            f"Every sample of the GPU says “no value” after {at(last)}, until {at(latest)}, while "
            f"{others} of {words.counted(len(around.node), 'neighbour')} have values."
        ),
        first=last,
        last=last + interval,
    )


def _has_reading_after(around: Around, gpu: str, time: float) -> bool:
    return any(
        one.times[-1] > time and isfinite(one.values[-1]) and not is_blank(one.values[-1])
        for parts in around.by_gpu.get(gpu, {}).values()
        for one in parts
        if one.times
    )


def _away(around: Around) -> tuple[Observation, ...]:
    """Find stretches without a sample of the suspect in which its neighbours have some."""
    if around.interval_s is None or not around.node:
        return ()
    times = around.sample_times(around.suspect)
    others = [around.sample_times(gpu) for gpu in around.node]
    others = [one for one in others if one]
    found = []
    for before, after in pairwise(times):
        if after - before <= SILENT * around.interval_s:
            continue
        there = sum(1 for one in others if bisect_right(one, before) < bisect_left(one, after))
        # Half: a gap that most share is the exporter's or the network's.
        if others and 2 * there >= len(others):
            when = around.window.when(before, after)
            found.append(
                Observation(
                    code="away",
                    field_id=None,
                    evidence="hint",
                    risen=when != "before",
                    when=when,
                    text=f"The GPU sent nothing, {span(before, after)}, while {there} of "
                    f"{words.counted(len(others), 'neighbour')} reported.",
                    first=before,
                    last=after,
                )
            )
    return tuple(found)
