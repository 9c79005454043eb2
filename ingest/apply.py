"""How does a group of well-formed documents become facts and what follows from them?

Called by the writer inside its transaction.  Order within a group does not matter: maps are
written first, and an alarm that came before its map is placed when the map comes.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.actions.casework import Policy, judge_cases
from app.store.columns import micros
from app.store.connection import Connection
from app.store.intake.document_rows import write_documents
from app.store.intake.job_rows import write_jobs
from ingest.apply_alarms import AlarmIntake
from ingest.apply_facts import FactIntake
from ingest.apply_maps import MapIntake
from ingest.audits_taken import take_audits
from ingest.documents import AlarmPost, Post, RankMapPost, Receipt
from ingest.group import Group
from ingest.late_alarms import place_late


def apply_posts(
    connection: Connection, documents: Sequence[Post], policy: Policy | None = None
) -> list[Receipt]:
    """Write documents and everything that follows; give a receipt for each, in order."""
    posts = documents
    group = Group(connection, posts)
    _load_attempts(group, posts)
    receipts: dict[int, Receipt] = {}
    maps, alarms, facts = MapIntake(group), AlarmIntake(group), FactIntake(group)
    for place, post in enumerate(posts):
        if isinstance(post, RankMapPost):
            receipts[place] = maps.take(place, post)
    for place, post in enumerate(posts):
        if isinstance(post, AlarmPost):
            alarms.take(place, post)
        elif not isinstance(post, RankMapPost):
            facts.take(place, post)
    receipts.update(alarms.write())
    receipts.update(facts.write())
    if maps.attempts:
        place_late(group, alarms.new_ids, maps.attempts, maps.jobs)
    group.book.write()
    take_audits(group, posts)
    facts.sum_up()
    write_jobs(connection, list(group.jobs.values()))
    _write_documents(group, posts)
    if group.cases:
        judge_cases(connection, sorted(group.cases), group.now, policy or Policy())
    return [receipts[place] for place in range(len(posts))]


def _write_documents(group: Group, posts: Sequence[Post]) -> None:
    rows = []
    for place in sorted(group.kept):
        envelope = posts[place].envelope
        received = micros(envelope.received_at)
        rows.append(
            (group.document_ids[place], envelope.kind, received, envelope.token_id, envelope.body)
        )
    write_documents(group.connection, rows)


def _load_attempts(group: Group, posts: Sequence[Post]) -> None:
    numbered: set[tuple[int, int]] = set()
    unnumbered: set[int] = set()
    for post in posts:
        job, number = group.job_id(post.envelope), post.envelope.attempt
        if number is None:
            unnumbered.add(job)
        else:
            numbered.add((job, number))
    group.book.load(numbered, unnumbered)
