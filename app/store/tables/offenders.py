"""What is counted in advance so that a ranking of the fleet costs the same at any age?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Table,
    Text,
)

from app.store.columns import Instant
from app.store.tables.metadata import metadata

WINDOWS = (7, 28, 90, 365)
"""Windows in days that are counted in advance; others are summed from subject_days."""

offender_windows = Table(
    "offender_windows",  # one row a device: its counts in each window up to today
    metadata,
    Column("subject", Text, primary_key=True),  # "gpu", "node", "instance"
    Column("subject_key", Text, primary_key=True),  # as in subject_days
    Column("cluster", Text, nullable=False),  # of its newest finding
    Column("incidents_all", BigInteger, nullable=False),
    Column("alarms_all", BigInteger, nullable=False),
    *(Column(f"incidents_{days}", BigInteger, nullable=False) for days in WINDOWS),
    *(Column(f"alarms_{days}", BigInteger, nullable=False) for days in WINDOWS),
    Column("strength", Float, nullable=False),  # log weight of its incidents
    Column("last_at", Instant, nullable=False),
    sqlite_with_rowid=False,
)

fleet_days = Table(
    "fleet_days",  # the fleet's own rate: incidents over audited GPU time
    metadata,
    Column("cluster", Text, primary_key=True),
    Column("day", BigInteger, primary_key=True, autoincrement=False),  # days since 1970
    Column("family", Text, primary_key=True),  # check of the incidents; "": audited time
    Column("kind", Text, primary_key=True),  # verdict kind of the incidents; "": audited time
    Column("incidents", BigInteger, nullable=False),  # on GPUs, those that began on this day
    Column("alarms", BigInteger, nullable=False),
    Column("audited_gpu_seconds", Float, nullable=False),  # attempts.audited_seconds * GPUs
    Index(None, "day"),
)
