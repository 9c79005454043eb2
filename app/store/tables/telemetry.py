"""Which telemetry is asked for, kept, and what was read in it?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from app.store.columns import Instant
from app.store.tables.metadata import metadata

telemetry_asks = Table(
    "telemetry_asks",  # an alarm whose telemetry is wanted; the row is the queue and the history
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),  # wanted, waiting, read, failed (ours)
    Column("wanted_at", Instant, nullable=False),
    Column("planned_at", Instant),  # when its windows were worked out
    Column("left_out", Integer, nullable=False, default=0),  # GPUs beyond the limit of one alarm
    Index(None, "state", "wanted_at"),
)

telemetry_windows = Table(
    "telemetry_windows",  # one GPU over one time; the row is the queue and the history
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: cluster, gpu, times
    Column("cluster", Text, nullable=False),
    Column("gpu_id", BigInteger, nullable=False),
    Column("gpu_uuid", Text, nullable=False),
    Column("start_at", Instant, nullable=False),
    Column("end_at", Instant, nullable=False),
    Column("state", Text, nullable=False),  # queued, claimed, done, refused, given_up, no_source
    Column("next_at", Instant, nullable=False),  # not before this
    Column("asked_at", Instant, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("claimed_by", Text),
    Column("claimed_at", Instant),
    Column("pulled_at", Instant),  # of the samples that are kept; None: none were pulled yet
    Column("whole", Boolean, nullable=False, default=False),  # pulled after its end
    Column("source", Text),
    Column("level", Text),  # what the source is set to collect; None: not known
    Column("interval_s", Float),
    Column("queries", Integer, nullable=False, default=0),
    Column("samples", BigInteger, nullable=False, default=0),
    Column("partial", Boolean, nullable=False, default=False),
    Column("warnings", Text),  # JSON list, the source's own words
    Column("said", Text),  # why there is nothing, or nothing yet
    Column("purged_at", Instant),  # when retention deleted its samples; None: it did not
    Index(None, "state", "next_at"),
    Index(None, "gpu_id", "start_at"),
    Index(None, "start_at", "id"),  # the order of an export
    Index(None, "purged_at", "pulled_at"),  # what retention looks for
)

telemetry_wants = Table(
    "telemetry_wants",  # who asks for a window: an alarm, or a person who looked at a GPU
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),  # 0: a person
    Column("gpu_id", BigInteger, primary_key=True, autoincrement=False),  # the suspect
    Column("window_id", BigInteger, primary_key=True, autoincrement=False),
    Column("role", Text, nullable=False),  # suspect, node, ring, asked
    Index(None, "window_id"),
)

telemetry_blocks = Table(
    "telemetry_blocks",  # all samples of one field of a window, compressed
    metadata,
    Column("window_id", BigInteger, primary_key=True, autoincrement=False),
    Column("field_id", Integer, primary_key=True, autoincrement=False),
    Column("part", Text, primary_key=True),  # JSON of sorted pairs; "[]": the GPU as a whole
    Column("codec", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("sha256", Text, nullable=False),  # over times and values, whatever the codec
    Column("count", Integer, nullable=False),
    Column("about", Text, nullable=False),  # JSON: what the labels said, what was joined
)

telemetry_readings = Table(
    "telemetry_readings",  # what the telemetry of one suspect says about one alarm; derived
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),
    Column("gpu_id", BigInteger, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),  # risen, nothing_found, not_collected, refused
    Column("headline", Text, nullable=False),
    Column("reading", Text, nullable=False),  # JSON
    Column("whole", Boolean, nullable=False),  # every window was pulled after its end
    Column("made_at", Instant, nullable=False),
    Index(None, "gpu_id", "made_at"),
)

telemetry_moved = Table(
    "telemetry_moved",  # what moved on a GPU in one window; derived, and stays when samples go
    metadata,
    Column("gpu_id", BigInteger, primary_key=True, autoincrement=False),
    Column("window_id", BigInteger, primary_key=True, autoincrement=False),
    Column("cluster", Text, nullable=False),
    Column("start_at", Instant, nullable=False),
    Column("end_at", Instant, nullable=False),
    Column("looked_at", Text, nullable=False),  # JSON list of field numbers that had a reading
    Column("moved", Text, nullable=False),  # JSON: the observations that count
    Column("board", Text, nullable=False),  # JSON: first and last of the board's own counters
    Column("hardware", Boolean, nullable=False),  # the hardware itself said that something is wrong
    Index(None, "gpu_id", "start_at"),
    Index(None, "window_id"),
)
