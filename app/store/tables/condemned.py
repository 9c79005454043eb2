"""Which GPUs were found defective, and where were they seen at work again?"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from app.store.columns import Instant
from app.store.tables.metadata import metadata

condemned_gpus = Table(
    "condemned_gpus",  # hardware confirmed, or taken out by a replacement that was verified
    metadata,
    Column("gpu_id", BigInteger, primary_key=True, autoincrement=False),
    Column("uuid", Text, nullable=False),  # canonical
    Column("case_id", BigInteger, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("node_id", BigInteger),  # where it was then
    Column("instance_id", Text),
    Column("at", Instant, nullable=False),
    Column("why", Text, nullable=False),  # hardware confirmed, replaced
    Column("proposal_id", BigInteger),  # the replacement
    Column("lifted_at", Instant),  # None: it stands
    Index(None, "case_id"),
)

condemned_sightings = Table(
    "condemned_sightings",  # a condemned GPU in a rank map of a start after it was condemned
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: GPU, machine, job
    Column("gpu_id", BigInteger, nullable=False),
    Column("certain", Boolean, nullable=False),  # False: only a short form of its UUID was posted
    Column("cluster", Text, nullable=False),
    Column("node_id", BigInteger),  # None: the map names no machine
    Column("job_id", BigInteger, nullable=False),
    Column("attempt_id", BigInteger, nullable=False),  # the first that was seen
    Column("rank", Integer, nullable=False),
    Column("first_at", Instant, nullable=False),  # start of the first attempt
    Column("last_at", Instant, nullable=False),
    Column("starts", Integer, nullable=False),
    Column("told_at", Instant),  # when the case was told; None: not yet
    Column("case_id", BigInteger),  # the case that was told
    Column("acknowledged_by", Text),
    Column("acknowledged_at", Instant),
    Column("reason", Text),
    Column("withdrawn_at", Instant),  # the GPU is not condemned any more
    Index(None, "gpu_id"),
    Index(None, "told_at"),
    Index(None, "acknowledged_at", "withdrawn_at"),
)
