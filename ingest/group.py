"""What do the documents of one transaction share?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.store.columns import micros
from app.store.connection import Connection
from app.store.intake.attempt_book import Attempt, AttemptBook
from app.store.intake.document_rows import next_document_ids
from app.store.intake.job_rows import JobTouch, job_id
from ingest.documents import Envelope, Post


class Group:
    """Jobs, attempts and kept documents of the posts that share a commit."""

    def __init__(self, connection: Connection, posts: Sequence[Post]) -> None:
        self.connection = connection
        self.now: datetime = max(post.envelope.received_at for post in posts)
        self.book = AttemptBook(connection)
        self.jobs: dict[int, JobTouch] = {}
        self.document_ids = next_document_ids(connection, len(posts))
        self.kept: set[int] = set()  # places of documents that say something new
        self.cases: set[int] = set()  # cases to judge anew
        self._job_ids: dict[tuple[str, str, str], int] = {}

    def job_id(self, envelope: Envelope) -> int:
        """Derive the id of a document's job."""
        names = (envelope.cluster, envelope.namespace, envelope.job)
        found = self._job_ids.get(names)
        if found is None:
            found = self._job_ids[names] = job_id(*names)
        return found

    def job(self, envelope: Envelope) -> JobTouch:
        """Touch the job of a document."""
        wanted, at = self.job_id(envelope), micros(envelope.at)
        touch = self.jobs.get(wanted)
        if touch is None:
            names = (envelope.cluster, envelope.namespace, envelope.job)
            touch = self.jobs[wanted] = JobTouch(wanted, *names, at, at)
        touch.seen(at, envelope.example)
        return touch

    def keep(self, place: int) -> int:
        """Keep the raw document of a place; give its id."""
        self.kept.add(place)
        return self.document_ids[place]

    def attempt(self, envelope: Envelope) -> tuple[Attempt | None, bool]:
        """Find or open the start that a document belongs to; True: inferred from the time."""
        job, at = self.job_id(envelope), micros(envelope.at)
        number, uid = envelope.attempt, envelope.attempt_uid
        found, inferred = self.book.find(job, number, uid, at)
        if found is None and number is not None:
            found = self.book.open(job, number, uid, at)
        if found is not None:
            describe(found, envelope)
        return found, inferred


def describe(attempt: Attempt, envelope: Envelope) -> None:
    """Note on an attempt what its documents say of it."""
    attempt.seen(micros(envelope.at))
    attempt.code_digest = attempt.code_digest or envelope.code_digest
    attempt.image_digest = attempt.image_digest or envelope.image_digest
    attempt.framework = attempt.framework or envelope.framework
    attempt.producer = attempt.producer or envelope.producer
    attempt.uid = attempt.uid or envelope.attempt_uid
