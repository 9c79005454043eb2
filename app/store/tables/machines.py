"""Which machine came after which, what was tested on it, and who forbids to touch it?"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, Table, Text

from app.store.columns import Instant, Serial
from app.store.tables.metadata import metadata

machine_links = Table(
    "machine_links",  # one machine took the place of another
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: cluster, old, new
    Column("cluster", Text, nullable=False),
    Column("old_instance_id", Text, nullable=False),
    Column("new_instance_id", Text, nullable=False),
    Column("old_node", Text),
    Column("new_node", Text),
    Column("how", Text, nullable=False),  # logical_id, event, same_name, only_new_one
    Column("seen_at", Instant, nullable=False),
    Column("proposal_id", BigInteger),  # the order that caused it; None: not from here
    Index(None, "old_instance_id"),
    Index(None, "new_instance_id"),
)

hardware_tests = Table(
    "hardware_tests",  # what a test said of a machine; a fact beside the alarms, never a verdict
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: machine, kind, time
    Column("cluster", Text, nullable=False),
    Column("node_id", BigInteger),
    Column("instance_id", Text),
    Column("gpu_id", BigInteger),  # None: the machine as a whole
    Column("kind", Text, nullable=False),  # deep_health_check, targeted_audit, replays
    Column("checks", Text),  # the names of its parts, comma-separated
    Column("result", Text, nullable=False),  # running, passed, failed, inconclusive, stuck
    Column("recall", Float),  # share of defective GPUs that it finds; None: not known
    Column("at", Instant, nullable=False),  # when the result was seen
    Column("begun_at", Instant),
    Column("source", Text, nullable=False),  # who says so: provider, node label, replays, person
    Column("words", Text, nullable=False),
    Column("proposal_id", BigInteger),
    Column("details", Text),  # JSON
    Index(None, "node_id", "at"),
    Index(None, "instance_id", "at"),
    Index(None, "gpu_id", "at"),
)

vetoes = Table(
    "vetoes",  # somebody forbids actions on a node; undoing is never forbidden
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("cluster", Text, nullable=False),
    Column("node_name", Text, nullable=False),
    Column("instance_id", Text),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("until", Instant),  # None: until it is lifted
    Column("lifted_by", Text),
    Column("lifted_at", Instant),
    Index(None, "cluster", "node_name"),
)

approval_batches = Table(
    "approval_batches",  # proposals that one person decided together, after a preview of the whole
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: members, who, time
    Column("by", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text),
    Column("asked", Integer, nullable=False),  # proposals that it named
    Column("kept", Integer, nullable=False),  # proposals that it decided
    Column("members", Text, nullable=False),  # JSON: proposal, whether decided, why not
)

targeted_audits = Table(
    "targeted_audits",  # the next attempts of a job are asked to audit a machine closely
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: the proposal
    Column("proposal_id", BigInteger, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("namespace", Text),  # None: any job that runs on the machine
    Column("job", Text),
    Column("node_name", Text),
    Column("instance_id", Text),
    Column("gpu_uuid", Text),
    Column("audit_every", Integer, nullable=False),  # steps between two audits
    Column("passes_wanted", Integer, nullable=False),  # audits that have to pass
    Column("asked_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),  # nobody is asked any more after this
    Column("state", Text, nullable=False),  # open, taken, passed, alarmed, expired, withdrawn
    Column("taken_by", Text),  # JSON: the attempt that said it audits closely
    Column("taken_at", Instant),
    Column("passes", Integer, nullable=False, default=0),  # counted since it was taken
    Column("settled_at", Instant),
    Index(None, "state", "cluster"),
    Index(None, "proposal_id"),
)

node_places = Table(
    "node_places",  # where each node of a cluster stood when all of them were read last
    metadata,
    Column("cluster", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("instance_id", Text),
    Column("gpu", Boolean, nullable=False),
    Column("protected", Text),  # why it is never touched from here: control plane, system
    Column("instance_group", Text),
    Column("zone", Text),
    Column("network", Text),  # the network node that it hangs on
    Column("rack", Text),
    Column("out", Text),  # "ours", "other", "not ready"; None: in service
    Column("read_at", Instant, nullable=False),
    Index(None, "cluster", "out"),
    Index(None, "instance_id"),
)
