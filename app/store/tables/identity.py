"""Which jobs, starts, machines and GPUs are known, and when were they together?"""

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

jobs = Table(
    "jobs",
    metadata,
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False
    ),  # derived: cluster, namespace, name
    Column("cluster", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("search", Text, nullable=False),  # start of the name, case folded, short enough to index
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("alarms", BigInteger, nullable=False, default=0),
    Column("last_alarm_at", Instant),
    Column("last_pass_at", Instant),
    Column("example", Boolean, nullable=False, default=False),  # label "example": recorded data
    Index(None, "last_seen_at"),
    Index(None, "search"),
)

attempts = Table(
    "attempts",  # one start of a job
    metadata,
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False
    ),  # derived: job, number, uid, start
    Column("job_id", BigInteger, nullable=False),
    Column("series", BigInteger, nullable=False),  # derived: job, number; starts under one number
    Column("number", BigInteger),  # None: the job sends none, its rank maps tell its starts apart
    Column("uid", Text),
    Column("started_at", Instant),  # time of the first rank map; None until one has come
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("last_pass_at", Instant),
    Column("alarm_at", Instant),  # first alarm of this attempt: the job stops there
    Column("rank_map_id", BigInteger),  # the first map; others stand in attempt_maps
    Column("maps", Integer, nullable=False, default=0),
    Column("world_size", Integer),
    Column("code_digest", Text),
    Column("image_digest", Text),
    Column("framework", Text),
    Column("producer", Text),
    Column("step_time_s", Float),
    Column(
        "audited_seconds", Float, nullable=False, default=0.0
    ),  # covered by ring or weight passes
    Index(None, "job_id", "started_at"),
    Index(None, "series"),
    Index(None, "rank_map_id"),
)

rank_maps = Table(
    "rank_maps",  # a placement of ranks, stored once however often it is posted
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: content_hash
    Column("content_hash", Text, nullable=False, unique=True),
    Column("world_size", Integer, nullable=False),
    Column("ranks", Integer, nullable=False),
    Column("nodes", Integer, nullable=False),  # distinct known nodes
    Column("unplaced", Integer, nullable=False),  # ranks without a node name
    Column("gpus_per_node", Integer),
    Column("peer_offset", Integer),
    Column("rows", LargeBinary, nullable=False),  # zlib over JSON, see store/rank_maps.py
    Column("created_at", Instant, nullable=False),
)

attempt_maps = Table(
    "attempt_maps",  # which maps an attempt posted; more than one distinct map: a contradiction
    metadata,
    Column("attempt_id", BigInteger, primary_key=True, autoincrement=False),
    Column("rank_map_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("received", Integer, nullable=False, default=1),
    Column("document_id", BigInteger, nullable=False),
    Index(None, "rank_map_id"),
)

nodes = Table(
    "nodes",  # one machine under one name: another instance id behind the same name is another row
    metadata,
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False
    ),  # derived: cluster, name, instance
    Column("cluster", Text, nullable=False),
    Column("name", Text),
    Column("search", Text),  # start of the name, case folded
    Column("instance_id", Text),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("uid", Text),  # Kubernetes uid when last read live
    Column("cordon", Text),  # last known: None unknown, "none", "ours", "other"
    Column("cordon_read_at", Instant),
    Index(None, "search"),
    Index(None, "instance_id"),
)

gpus = Table(
    "gpus",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: uuid
    Column("uuid", Text, nullable=False, unique=True),  # canonical
    Column("form", Text, nullable=False),  # "full", "short" (prefix as posted), "mig"
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
)

placements = Table(
    "placements",  # when a GPU was seen in a machine
    metadata,
    Column("gpu_id", BigInteger, primary_key=True, autoincrement=False),
    Column("node_id", BigInteger, primary_key=True, autoincrement=False),
    Column("gpu_index", Integer),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Index(None, "node_id"),
)

rank_map_nodes = Table(
    "rank_map_nodes",  # which machines a rank map uses: the way from a node to its jobs
    metadata,
    Column("rank_map_id", BigInteger, primary_key=True, autoincrement=False),
    Column("node_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ranks", Integer, nullable=False),
    Index(None, "node_id"),
)
