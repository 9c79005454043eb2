"""How does a rank map find its start of the job, and when do two maps contradict each other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.store import condemned, ids
from app.store.columns import micros
from app.store.condemned import Register, Seen
from app.store.intake.attempt_book import SAME_START_US, Attempt
from app.store.intake.document_rows import known_receipts, write_receipts
from app.store.intake.map_links import MapLink, maps_of, write_links
from app.store.intake.rank_map_rows import (
    MapContent,
    MapRow,
    content_hash,
    node_id,
    resolve_short_ids,
    write_map,
)
from ingest.documents import RankMapPost, Receipt
from ingest.group import Group, describe
from witness.rules.topology import Place


class MapIntake:
    """Takes the rank maps of a group; `attempts` and `jobs` are those a map newly describes."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.attempts: set[int] = set()
        self.jobs: set[int] = set()
        self._register: Register | None = None

    def take(self, place: int, post: RankMapPost) -> Receipt:
        """Store a map with its attempt; alarms that wait for it are placed afterwards."""
        group, envelope = self._group, post.envelope
        job, at = group.job(envelope), micros(envelope.at)
        rows = [_map_row(row.place, row.uuid_form, row.uuid_prefix) for row in post.rows]
        digest = content_hash(envelope.cluster, post.world_size, post.peer_offset, rows)
        attempt = self._attempt(post, job.id, at, ids.derive("rank map", digest))
        receipt_id = ids.derive("receipt", "rank_map", attempt.id, digest)
        before = known_receipts(group.connection, [receipt_id]).get(receipt_id, 0)
        received, document = micros(envelope.received_at), 0
        if not before:  # what came before is stored, with where its machines were seen
            document = group.keep(place)
            rows = resolve_short_ids(group.connection, envelope.cluster, rows)
            content = MapContent(
                envelope.cluster,
                post.world_size,
                post.gpus_per_node,
                post.peer_offset,
                rows,
                digest,
            )
            map_id = write_map(group.connection, content, at, received)
            self._link(attempt, post, map_id, at, document)
            self._look_for_condemned(post, rows, job.id, attempt.id)
        write_receipts(
            group.connection, [(receipt_id, "rank_map", 1, received, received, document)]
        )
        return Receipt("rank_map", job.id, bool(before), before + 1)

    def _attempt(self, post: RankMapPost, job: int, at: int, map_id: int) -> Attempt:
        """Find the start that this map belongs to, or open a new one."""
        envelope = post.envelope
        number, uid = envelope.attempt, envelope.attempt_uid
        starts = self._group.book.starts(job, number)
        if uid is not None and number is not None:
            starts = [one for one in starts if one.uid in (None, uid)]
        found = next((one for one in starts if _same_start(one, number, at, map_id)), None)
        if found is None:
            found = self._group.book.open(job, number, uid, at)
        if found.started_at is None:
            found.started_at = at
        found.world_size = found.world_size or post.world_size
        describe(found, envelope)
        return found

    def _look_for_condemned(
        self, post: RankMapPost, rows: Sequence[MapRow], job: int, attempt: int
    ) -> None:
        """Note which GPUs of a start were condemned before it began; a look-up a row."""
        connection, envelope = self._group.connection, post.envelope
        if self._register is None:
            self._register = condemned.register(connection)
        if not self._register:
            return
        seen = []
        for row in rows:
            place = row.place
            for one in self._register.find(place.gpu_uuid, row.uuid_form == "short"):
                # A map that comes late can tell of a time when nothing was known yet.
                if envelope.at > one.at:
                    machine = node_id(envelope.cluster, place.node, place.instance_id)
                    certain = one.uuid == place.gpu_uuid
                    seen.append(Seen(one.gpu_id, certain, place.rank, machine))
        condemned.write_seen(connection, seen, envelope.cluster, job, attempt, envelope.at)

    def _link(
        self, attempt: Attempt, post: RankMapPost, map_id: int, at: int, document: int
    ) -> None:
        group = self._group
        known = maps_of(group.connection, attempt.id)
        if attempt.rank_map_id is None:
            attempt.rank_map_id = map_id
        attempt.maps = len(known | {map_id})
        attempt.changed = True
        received = micros(post.envelope.received_at)
        write_links(group.connection, [MapLink(attempt.id, map_id, at, received, document)])
        self.attempts.add(attempt.id)
        self.jobs.add(attempt.job_id)


def _same_start(attempt: Attempt, number: int | None, at: int, map_id: int) -> bool:
    """Tell whether a map describes a start that is known.

    Without attempt numbers only the start time tells two runs on the same machines apart. With
    them, another placement much later means that the job numbered its starts from one again.
    """
    if attempt.started_at is None:
        return True
    if number is None:
        return attempt.started_at == at and attempt.rank_map_id == map_id
    same_map = attempt.rank_map_id == map_id
    return same_map or abs(attempt.started_at - at) <= SAME_START_US


def _map_row(place: Place, form: str, prefix: str | None) -> MapRow:
    """Keep the prefix of a short id where the whole UUID is not known."""
    if form == "short" and place.gpu_uuid is None:
        return MapRow(replace(place, gpu_uuid=prefix), form)
    return MapRow(place, form)
