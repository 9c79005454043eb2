"""What was checked and saved, and what is counted in advance for the pages?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    Table,
    Text,
)

from app.store.columns import Instant
from app.store.tables.metadata import metadata

passes = Table(
    "passes",  # one beat: passes of one check since the last beat, summed
    metadata,
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False
    ),  # derived: attempt, check, steps, mode
    Column("attempt_id", BigInteger, nullable=False),
    Column("job_id", BigInteger, nullable=False),
    Column("check_name", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("mode", Text),
    Column("peer_offset", Integer),
    Column("step_time_s", Float),
    Column("document_id", BigInteger, nullable=False),
    Index(None, "attempt_id", "check_name", "last_step"),
)

coverage = Table(
    "coverage",  # passes of one attempt and check, summed
    metadata,
    Column("attempt_id", BigInteger, primary_key=True, autoincrement=False),
    Column("check_name", Text, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("gpu_audits", BigInteger, nullable=False),  # sum of count * gpus
    Column("seconds", Float, nullable=False),  # steps covered * step time
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Index(None, "job_id"),
)

coverage_hours = Table(
    "coverage_hours",  # the density strip and the 24 cells
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("hour", BigInteger, primary_key=True, autoincrement=False),  # hours since 1970
    Column("check_name", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("gpu_audits", BigInteger, nullable=False),
    Column("gpu_seconds", Float, nullable=False),
    Index(None, "hour"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: job, step, uri
    Column("job_id", BigInteger, nullable=False),
    Column("attempt_id", BigInteger),
    Column("step", BigInteger, nullable=False),
    Column("uri", Text),
    Column("saved_at", Instant),
    Column("committed", Boolean),  # None: not said
    Column("tagged", Boolean, nullable=False),
    Column("last_audit_pass", BigInteger),
    Column("last_weight_check_pass", BigInteger),
    Column("parent", Text),
    Column("document_id", BigInteger, nullable=False),
    Index(None, "job_id", "step"),
)

replays = Table(
    "replays",  # post-alarm replays of the triggering step
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: content
    Column("job_id", BigInteger, nullable=False),
    Column("attempt_id", BigInteger),
    Column("rank", BigInteger),
    Column("gpu_id", BigInteger),
    Column("step", BigInteger, nullable=False),
    Column("witnesses", Text),  # JSON list of ranks
    Column("replays", Integer, nullable=False),
    Column("wrong", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("document_id", BigInteger, nullable=False),
    Index(None, "attempt_id", "step"),
    Index(None, "gpu_id"),
)

elastic_events = Table(
    "elastic_events",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: content
    Column("job_id", BigInteger, nullable=False),
    Column("attempt_id", BigInteger),
    Column("event", Text, nullable=False),
    Column("slice", BigInteger),
    Column("step", BigInteger),
    Column("snapshot_step", BigInteger),
    Column("at", Instant, nullable=False),
    Column("document_id", BigInteger, nullable=False),
    Index(None, "job_id", "at"),
)


alarm_hours = Table(
    "alarm_hours",  # histogram of the timeline
    metadata,
    Column("hour", BigInteger, primary_key=True, autoincrement=False),  # hours since 1970
    Column("cluster", Text, primary_key=True),
    Column("family", Text, primary_key=True),
    Column("alarms", BigInteger, nullable=False),
)

subject_days = Table(
    "subject_days",  # repeat offenders in any window of whole days
    metadata,
    Column("subject", Text, primary_key=True),  # "gpu", "node", "instance"
    Column("subject_key", Text, primary_key=True),  # id as text, or the instance id itself
    Column("day", BigInteger, primary_key=True, autoincrement=False),  # days since 1970
    Column("family", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # verdict kind, as in incidents
    Column("alarms", BigInteger, nullable=False),
    Column("incidents", BigInteger, nullable=False),  # incidents that began on this day
    Index(None, "subject", "day"),
    sqlite_with_rowid=False,  # rows lie in the order of the key: a device is read in one stretch
)

subject_jobs = Table(
    "subject_jobs",  # jobs touched
    metadata,
    Column("subject", Text, primary_key=True),
    Column("subject_key", Text, primary_key=True),
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("alarms", BigInteger, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    sqlite_with_rowid=False,  # rows lie in the order of the key: a device is read in one stretch
)
