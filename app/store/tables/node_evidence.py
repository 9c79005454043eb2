"""Which further evidence about nodes is asked for, and what came of it, raw?"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, Table, Text

from app.store.columns import Instant
from app.store.tables.metadata import metadata

node_evidence = Table(
    "node_evidence",  # one machine over one time, its log or itself; the queue and the history
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: node, kind, times
    Column("cluster", Text, nullable=False),
    Column("node_id", BigInteger, nullable=False),
    Column("node", Text),  # name; None: not known
    Column("instance_id", Text),
    Column("kind", Text, nullable=False),  # log: of its health agent; node: as the cluster has it
    Column("start_at", Instant, nullable=False),
    Column("end_at", Instant, nullable=False),
    Column("state", Text, nullable=False),  # queued, claimed, done, gone, refused, given_up, no_way
    Column("next_at", Instant, nullable=False),  # not before this
    Column("asked_at", Instant, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("claimed_by", Text),
    Column("claimed_at", Instant),
    Column("read_at", Instant),  # when it was answered last; None: not yet
    Column("whole", Boolean, nullable=False, default=False),  # answered after its end
    Column("cut", Boolean, nullable=False, default=False),  # there is more than was taken
    Column("said", Text),  # why there is nothing, or what is to be known of it
    Index(None, "state", "next_at"),
    Index(None, "node_id", "start_at"),
)

node_evidence_wants = Table(
    "node_evidence_wants",  # which alarms ask for it
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),
    Column("evidence_id", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "evidence_id"),
)

node_records = Table(
    "node_records",  # raw, as it came: one line of a log, or a node as it was read
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: see node_records.py
    Column("evidence_id", BigInteger, nullable=False),  # which asked for it first
    Column("node_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),  # log, node
    Column("at", Instant, nullable=False),  # under which the log service keeps it, or read at
    Column("received_at", Instant),  # when the log service took it in
    Column("kept_at", Instant, nullable=False),
    Column("stream", Text),  # where in the log
    Column("event_id", Text),  # the log service's name of the line
    Column("other", Text),  # why it is about another machine under the same name
    Column("data", LargeBinary, nullable=False),  # zlib over its UTF-8
    Column("sha256", Text, nullable=False),  # over its UTF-8
    Index(None, "node_id", "at"),
    Index(None, "evidence_id"),
)
