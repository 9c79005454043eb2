"""How are posted alarms told apart, counted once however often they come, and written?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.store import ids
from app.store.columns import micros
from app.store.intake import alarm_rows
from app.store.intake.alarm_rows import KnownAlarm, Report
from app.store.intake.attempt_book import Attempt
from app.store.intake.rollups import count_hours
from ingest.deriving import Derived, read, settle
from ingest.documents import AlarmPost, Receipt
from ingest.group import Group
from ingest.placing import Placing
from witness.rules.alarm import Alarm


@dataclass(slots=True)
class _Taken:
    """A posted alarm on its way: its keys, its attempt, and whether it was known."""

    place: int
    post: AlarmPost
    attempt: Attempt | None
    inferred: bool
    base_key: str
    key: str
    alarm_id: int
    early_id: int | None  # its id if it first came before any map of its job


class AlarmIntake:
    """Takes the alarms of a group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._taken: list[_Taken] = []
        self.new_ids: set[int] = set()

    def take(self, place: int, post: AlarmPost) -> None:
        """Work out which alarm a document is."""
        group, envelope = self._group, post.envelope
        job = group.job(envelope).id
        attempt, inferred = group.attempt(envelope)
        start = _start_of_key(envelope.attempt, attempt)
        base, key = _keys(job, envelope.attempt, start, post.alarm)
        early = None
        if envelope.attempt is None and start is not None:
            early = ids.derive("alarm", _keys(job, None, None, post.alarm)[1])
        alarm_id = ids.derive("alarm", key)
        self._taken.append(_Taken(place, post, attempt, inferred, base, key, alarm_id, early))

    def write(self) -> dict[int, Receipt]:
        """Write new alarms and count repeats; give a receipt by place."""
        if not self._taken:
            return {}
        known = self._known()
        new: dict[int, _Taken] = {}
        reports: dict[tuple[int, int], Report] = {}
        repeats: dict[int, int] = {}
        for taken in self._taken:
            stored = known.get(taken.alarm_id)
            if stored is None and taken.alarm_id not in new:
                new[taken.alarm_id] = taken
                self._group.keep(taken.place)
            else:
                repeats[taken.alarm_id] = repeats.get(taken.alarm_id, 0) + 1
            said = stored.said if stored else new[taken.alarm_id].post.said
            self._report(reports, taken, differs=said != taken.post.said)
        self.new_ids = set(new)
        self._write_new(list(new.values()), reports)
        alarm_rows.write_reports(self._group.connection, list(reports.values()))
        counted = self._count(repeats)
        return self._receipts(new, counted)

    def _known(self) -> dict[int, KnownAlarm]:
        """Read the stored ones; salt the id of the one in a million that meets a stranger's."""
        wanted = {taken.alarm_id for taken in self._taken}
        wanted.update(taken.early_id for taken in self._taken if taken.early_id is not None)
        known = alarm_rows.known_alarms(self._group.connection, wanted)
        for taken in self._taken:
            early = known.get(taken.early_id) if taken.early_id is not None else None
            if early is not None and taken.attempt and early.attempt_id == taken.attempt.id:
                taken.alarm_id, taken.key = early.id, early.key
            stored = known.get(taken.alarm_id)
            while stored is not None and stored.key != taken.key:
                taken.alarm_id = ids.derive("alarm", taken.key, taken.alarm_id)
                known.update(alarm_rows.known_alarms(self._group.connection, [taken.alarm_id]))
                stored = known.get(taken.alarm_id)
        return known

    def _report(self, reports: dict[tuple[int, int], Report], taken: _Taken, differs: bool) -> None:
        rank = taken.post.reporter_rank
        key = (taken.alarm_id, alarm_rows.NOT_SAID if rank is None else rank)
        at = micros(taken.post.envelope.at)
        document = self._group.keep(taken.place) if differs else None
        found = reports.get(key)
        if found is None:
            reports[key] = Report(*key, at, at, 1, document)
            return
        found.first_at, found.last_at = min(found.first_at, at), max(found.last_at, at)
        found.received += 1
        found.document_id = found.document_id or document

    def _write_new(self, new: Sequence[_Taken], reports: dict[tuple[int, int], Report]) -> None:
        if not new:
            return
        group, placing = self._group, Placing(self._group.connection)
        derived, rows = [], []
        reporters: dict[int, int] = {}
        for report in reports.values():
            reporters[report.alarm_id] = reporters.get(report.alarm_id, 0) + 1
        for one in new:
            placed = placing.place(one.attempt, one.inferred, one.post.envelope.cluster)
            reading = read(one.post.alarm, placed)
            derived.append(Derived(one.alarm_id, one.post, reading.drafts))
            row = self._row(one, placed.state)
            # Repeats within the group are counted with all other repeats.
            counted = {"received": 1, "reporters": reporters[one.alarm_id]}
            rows.append({**row, **reading.verdict, **counted})
        settle(group, derived)
        alarm_rows.insert_alarms(group.connection, rows)
        alarm_rows.mark_conflicts(group.connection, {one.base_key for one in new})
        seen: list[tuple[int, str, str]] = []
        for one in new:
            envelope, at = one.post.envelope, micros(one.post.envelope.at)
            seen.append((at, envelope.cluster, one.post.alarm.check_family))
            group.job(envelope).alarmed(at)
            if one.attempt is not None:
                one.attempt.alarm_at = min(one.attempt.alarm_at or at, at)
        count_hours(group.connection, seen)

    def _row(self, taken: _Taken, state: str) -> dict[str, Any]:
        envelope, alarm = taken.post.envelope, taken.post.alarm
        window = alarm.suspect_window or (None, None)
        received = micros(envelope.received_at)
        return {
            "id": taken.alarm_id,
            "key": taken.key,
            "base_key": taken.base_key,
            "job_id": self._group.job_id(envelope),
            "attempt_id": taken.attempt.id if taken.attempt else None,
            "cluster": envelope.cluster,
            "check_name": alarm.check,
            "family": alarm.check_family,
            "step": alarm.step,
            "occurred_at": micros(envelope.at),
            "time_note": envelope.time_note,
            "received_at": received,
            "last_received_at": received,
            "window_first": window[0],
            "window_last": window[1],
            "document_id": self._group.document_ids[taken.place],
            "said": taken.post.said,
            "code_digest": envelope.code_digest,
            "map_state": state,
            "conflicts": 0,
        }

    def _count(self, repeats: dict[int, int]) -> dict[int, tuple[int, int]]:
        received_at = micros(self._group.now)
        return alarm_rows.count_repeats(self._group.connection, repeats, received_at)

    def _receipts(
        self, new: dict[int, _Taken], counted: dict[int, tuple[int, int]]
    ) -> dict[int, Receipt]:
        receipts = {}
        for taken in self._taken:
            first = new.get(taken.alarm_id) is taken
            received, reporters = (1, 1) if first else counted[taken.alarm_id]
            receipts[taken.place] = Receipt("alarm", taken.alarm_id, not first, received, reporters)
        return receipts


def _start_of_key(number: int | None, attempt: Attempt | None) -> int | None:
    """Give the start that belongs into the key: where the number alone does not tell it."""
    if attempt is None or (number is not None and attempt.first):
        return None
    return attempt.id


def _keys(job: int, number: int | None, start: int | None, alarm: Alarm) -> tuple[str, str]:
    """Give the key of what is alarmed about, and that with what is named."""
    base = ids.digest("alarm", job, number, start, alarm.step)
    return base, ids.digest(base, alarm.check, alarm.names())
