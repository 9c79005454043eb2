"""What does the chart script get to draw: numbers and plain texts, no colours and no markup?

Times are milliseconds since 1970 UTC; a lane is its place from the top.  Texts go out as they are
made visible here; the script writes them so that the chart library reads no tag in them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.store.columns import micros, moment
from app.store.timeline_lanes import AttemptRow, CheckpointRow
from app.web.timeline import naming
from app.web.timeline.gather import Gathered
from app.web.timeline.lanes import MOST_SLICES, Key, Lane, Mark
from app.web.timeline.windows import first_moment, flag
from app.web.words import ident, number, visible
from witness.rules import words

MOST_WINDOWS = 300
MOST_BARS = 400
HOUR = timedelta(hours=1)
DOWN = frozenset({"slice_down", "suspended", "wait_timeout", "retry_exhausted"})
UP = frozenset({"slice_up", "resumed", "hot_swap", "restored"})
CHECK_OF = {"ring": "ring", "nonfinite": "ring", "weights": "weights"}
Row = list[Any]


def chart(found: Gathered, zone: str, now: datetime) -> dict[str, Any]:
    """Put everything that the lanes show into one JSON object."""
    place = {lane.key: at for at, lane in enumerate(found.lanes)}
    strips, silent = _passes(found, place)
    start, end = ms(found.asked.start), ms(found.asked.end)
    return {
        "zone": zone,
        "from": start,
        "to": end,
        "now": ms(now) if start <= ms(now) <= end else None,
        "lanes": len(found.lanes),
        "bars": _bars(found, place),
        "strips": strips,
        "silent": silent,
        "windows": _windows(found, place),
        "marks": [_mark(one, place) for one in found.marks if _drawn(found, one)],
        "bins": _bins(found, place),
        "checkpoints": _checkpoints(found, place),
        "actions": _actions(found, place),
        "elastic": _elastic(found, place),
    }


def ms(at: datetime) -> int:
    """Count the milliseconds since 1970."""
    return micros(at) // 1000


def shape(mark: Mark) -> str:
    """Name the mark of an alarm: its check's where it names somebody, else a cross."""
    if mark.rank is None:
        return "nobody"
    return mark.row.family if mark.row.family in naming.ALARMS else "unknown"


def _drawn(found: Gathered, mark: Mark) -> bool:
    return found.bins is None or mark.lane[0] in ("nobody", "unresolved")


def _text(*lines: str) -> str:
    return "\n".join(_seen(line) for line in lines if line)


def _seen(line: str) -> str:
    """Make unseen characters visible; most lines have none."""
    return line if line.isascii() and line.isprintable() else visible(line)


def _mark(mark: Mark, place: dict[Key, int]) -> Row:
    row = mark.row
    said = naming.who(row, () if mark.finding is None else (mark.finding,))
    rule = f", {row.rule}" if row.rule else ""
    text = _text(naming.alarm(row), said, f"job {row.job[:80]}", row.standing + rule)
    return [place[mark.lane], ms(row.at), shape(mark), text, "/alarms/" + ident(row.id)]


def _bins(found: Gathered, place: dict[Key, int]) -> list[Row]:
    if found.bins is None:
        return []
    width = found.bin_width
    summed: dict[tuple[int, int], dict[str, int]] = {}
    lanes = {key[1]: at for key, at in place.items()}
    for one in found.bins:
        families = summed.setdefault((lanes[one.key], one.number), {})
        families[one.family] = families.get(one.family, 0) + one.alarms
    rows = []
    for (lane, at), families in sorted(summed.items()):
        start = moment(at * (width // timedelta(microseconds=1)))
        kinds = ", ".join(f"{count} {family}" for family, count in sorted(families.items()))
        total = sum(families.values())
        text = _text(words.counted(total, "alarm"), kinds)
        rows.append([lane, ms(start), ms(start + width), total, text])
    return rows


def _bars(found: Gathered, place: dict[Key, int]) -> list[Row]:
    first, last = ms(found.asked.start), ms(found.asked.end)
    rows: list[Row] = [
        [
            place[key],
            max(ms(row.start), first),
            min(ms(row.end), last),
            *_attempt_texts(row),
            "/jobs/" + ident(row.job_id),
        ]
        for key, attempts in found.attempts.items()
        if key in place
        for row in attempts
    ]
    # The longest are seen best; the list names all.
    rows.sort(key=lambda row: row[1] - row[2])
    return _without_labels_on_labels(rows[:MOST_BARS])


def _without_labels_on_labels(rows: list[Row]) -> list[Row]:
    """Take the label off a bar that lies on another one with a label; the hover has it."""
    labelled: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        taken = labelled.setdefault(row[0], [])
        if any(row[1] < end and start < row[2] for start, end in taken):
            row[3] = ""
        else:
            taken.append((row[1], row[2]))
    return rows


def _attempt_texts(row: AttemptRow) -> tuple[str, str]:
    which = f", attempt {row.number}" if row.number is not None else ""
    size = f", {number(row.world_size)} GPUs" if row.world_size else ""
    step = f"{row.step_time_s:.3g} s a step" if row.step_time_s else "step time not reported"
    label = _seen(f"{row.job[:48]}{which}{size}")
    return label, _text(f"{row.job[:80]}{which}{size}", step)


def _passes(found: Gathered, place: dict[Key, int]) -> tuple[list[Row], list[Row]]:
    """Give rectangles of audited hours with their density, and stretches without a pass."""
    if found.passes is None:
        return [], []
    most = max((count for hours in found.passes.values() for count in hours.values()), default=1)
    strips: list[Row] = []
    silent: list[Row] = []
    for key, attempts in found.attempts.items():
        for row in attempts if key in place else ():
            hours = found.passes.get(row.job_id, {})
            start, end = max(row.start, found.asked.start), min(row.end, found.asked.end)
            for first, last, count in _by_hour(start, end, hours):
                if count:
                    share = round(count / most, 2)
                    strips.append([place[key], ms(first), ms(last), share, count])
                elif silent and silent[-1][0] == place[key] and silent[-1][2] == ms(first):
                    silent[-1][2] = ms(last)
                else:
                    silent.append([place[key], ms(first), ms(last)])
    return strips, silent


def _by_hour(
    start: datetime, end: datetime, hours: dict[int, int]
) -> list[tuple[datetime, datetime, int]]:
    found = []
    step = HOUR // timedelta(microseconds=1)
    for hour in range(micros(start) // step, micros(end) // step + 1):
        first, last = max(moment(hour * step), start), min(moment((hour + 1) * step), end)
        found.append((first, last, hours.get(hour, 0)))
    return found


def _windows(found: Gathered, place: dict[Key, int]) -> list[Row]:
    step_times = {row.id: row.step_time_s for rows in found.attempts.values() for row in rows}
    rows = []
    for mark in found.marks[:MOST_WINDOWS] if found.bins is None else ():
        row = mark.row
        if row.window_first is None or row.window_last is None or row.attempt_id is None:
            continue
        last = found.last_passes.get((row.attempt_id, CHECK_OF.get(row.family, "")))
        began = first_moment(
            row.at, row.step, row.window_first, step_times.get(row.attempt_id), last
        )
        steps = words.window(row.window_first, row.window_last)
        if began is not None:
            text = _text(f"suspect window, steps {steps}", f"its start by the {began[1]}")
            rows.append([place[mark.lane], ms(began[0]), ms(row.at), text])
    return rows


def unknown_windows(found: Gathered) -> int:
    """Count the alarms whose window is known in steps and not in time."""
    known = len(_windows(found, {lane.key: 0 for lane in found.lanes}))
    drawn = found.marks[:MOST_WINDOWS] if found.bins is None else ()
    return sum(1 for mark in drawn if mark.row.window_first is not None) - known


def _checkpoints(found: Gathered, place: dict[Key, int]) -> list[Row]:
    windows: dict[int, list[tuple[int, int]]] = {}
    for mark in found.marks:
        if mark.row.window_first is not None and mark.row.window_last is not None:
            span = (mark.row.window_first, mark.row.window_last)
            windows.setdefault(mark.row.job_id, []).append(span)
    by_job: dict[int, list[CheckpointRow]] = {}
    for saved in found.checkpoints:
        by_job.setdefault(saved.job_id, []).append(saved)
    rows = []
    for key, attempts in found.attempts.items():
        jobs = dict.fromkeys(one.job_id for one in attempts if key in place)
        for row in (row for job in jobs for row in by_job.get(job, ())):
            if any(_saved_in(row.attempt_id, row.job_id, row.at, one) for one in attempts):
                state = flag(row.step, windows.get(row.job_id, []))
                word = "not committed" if row.committed is False else ""
                where = "" if row.job_id not in windows else f"{state} the suspect window"
                text = _text(f"checkpoint of step {row.step:,}", where, word)
                rows.append([place[key], ms(row.at), state, text])
    return rows


def _saved_in(attempt_id: int | None, job_id: int, at: datetime, one: AttemptRow) -> bool:
    if attempt_id is not None:
        return attempt_id == one.id
    return job_id == one.job_id and one.start <= at <= one.end


def _actions(found: Gathered, place: dict[Key, int]) -> list[Row]:
    rows: list[Row] = []
    for lane in found.lanes:
        for action in found.actions:
            if action.case_id in lane.cases or ("node", action.node_id) == lane.key:
                to = f"/cases/{ident(action.case_id)}" if action.case_id is not None else "/audit"
                text = _text(action.summary[:200], action.actor)
                rows.append([place[lane.key], ms(action.at), "action", text, to])
        for one in found.proposals:
            if one.case_id in lane.cases:
                said = (
                    f"{naming.ACTIONS.get(one.action, one.action)} proposed by {one.recommended_by}"
                )
                text = _text(said, f"now {one.status}")
                to = f"/cases/{ident(one.case_id)}"
                rows.append([place[lane.key], ms(one.at), "proposal", text, to])
    return rows


def _in_slice(found: Gathered, lane: Lane, number: int | None) -> bool:
    """Tell whether an event of the lane's job stands in this lane, not in another of its job."""
    if lane.key[0] == "slice":
        return number is not None and lane.key[1] % MOST_SLICES == number % MOST_SLICES
    return found.asked.by != "slice" or number is None


def _elastic(found: Gathered, place: dict[Key, int]) -> list[Row]:
    rows: list[Row] = []
    for lane in found.lanes:
        jobs = lane.jobs | {row.job_id for row in found.attempts.get(lane.key, ())}
        for one in found.elastic:
            if one.job_id in jobs and _in_slice(found, lane, one.slice):
                way = "down" if one.event in DOWN else "up" if one.event in UP else "other"
                which = "" if one.slice is None else f" of slice {one.slice}"
                text = _text(f"{one.event.replace('_', ' ')}{which}", f"job {one.job[:80]}")
                to = "/jobs/" + ident(one.job_id)
                rows.append([place[lane.key], ms(one.at), way, text, to])
    return rows
