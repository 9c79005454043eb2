"""How does an alarm that came before its rank map get its place, without a new post?"""

from __future__ import annotations

from collections.abc import Collection

from app.store.intake import alarm_rows
from app.store.intake.case_rows import drop_or_recount
from app.store.intake.finding_rows import take_back
from ingest.deriving import Derived, read, settle
from ingest.documents import AlarmPost
from ingest.group import Group
from ingest.json_text import decode
from ingest.parse import Arrival, read_post
from ingest.placing import Placing


def place_late(group: Group, new_ids: Collection[int], attempts: set[int], jobs: set[int]) -> None:
    """Derive anew the alarms that wait for maps of these attempts, or of a start of these jobs."""
    placing = Placing(group.connection)
    moved: list[Derived] = []
    words = []
    waiting = [
        (stored, _read_back(stored))
        for stored in alarm_rows.unresolved(group.connection, attempts, jobs)
        if stored.id not in new_ids
    ]
    unnumbered = (post.envelope for _, post in waiting if post.envelope.attempt is None)
    group.book.load((), {group.job_id(envelope) for envelope in unnumbered})
    for stored, post in waiting:
        attempt, inferred = group.attempt(post.envelope)
        if attempt is None or (attempt.id, attempt.id in attempts) == (stored.attempt_id, False):
            continue  # nothing new about where it ran
        placed = placing.place(attempt, inferred, post.envelope.cluster)
        if placed.state == "none":
            continue
        reading = read(post.alarm, placed)
        moved.append(Derived(stored.id, post, reading.drafts))
        words.append(
            {
                "id": stored.id,
                "attempt_id": attempt.id,
                "map_state": placed.state,
                "resolved_at": group.now,
                **reading.verdict,
            }
        )
    if not moved:
        return
    before = take_back(group.connection, [one.alarm_id for one in moved], group.now)
    settle(group, moved, resolved=True)
    alarm_rows.update_derived(group.connection, words)
    kept = drop_or_recount(group.connection, before)
    group.cases |= kept
    group.cases -= before - kept


def _read_back(stored: alarm_rows.StoredAlarm) -> AlarmPost:
    """Read an alarm back from its own document, received when it was received."""
    document, text = decode(stored.body)
    post = read_post("alarm", document, Arrival(stored.received_at, None, text))
    if not isinstance(post, AlarmPost):  # pragma: no cover - the reader of alarms gives alarms
        raise TypeError(f"document of alarm {stored.id} is no alarm")
    return post
