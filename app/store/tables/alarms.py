"""What is made of the alarms: findings, incidents, cases, proposals?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from app.store.columns import Instant, Serial
from app.store.tables.metadata import metadata

alarms = Table(
    "alarms",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: key
    Column("key", Text, nullable=False),  # 32 hex digits over what the alarm says
    Column("base_key", Text, nullable=False),  # the same without what it names: finds conflicts
    Column("job_id", BigInteger, nullable=False),
    Column("attempt_id", BigInteger),  # None: no attempt known yet
    Column("cluster", Text, nullable=False),
    Column("check_name", Text, nullable=False),  # as posted
    Column("family", Text, nullable=False),  # nonfinite, ring, weights, reduced gradient, unknown
    Column("step", BigInteger, nullable=False),
    Column("occurred_at", Instant, nullable=False),
    Column("time_note", Text),  # None, "no zone", "implausible" (then occurred_at is the receipt)
    Column("received_at", Instant, nullable=False),
    Column("last_received_at", Instant, nullable=False),
    Column("received", BigInteger, nullable=False),  # how often it came
    Column("reporters", Integer, nullable=False),  # distinct reporting ranks
    Column("window_first", BigInteger),
    Column("window_last", BigInteger),
    Column("document_id", BigInteger, nullable=False),
    Column("said", Text, nullable=False),  # hash of the document without who reported it and when
    Column("code_digest", Text),
    Column("map_state", Text, nullable=False),  # none, own, inferred, contradictory
    Column("resolved_at", Instant),  # when the map came, if after the alarm
    Column(
        "conflicts", Integer, nullable=False, default=0
    ),  # other alarms of this attempt and step
    Column("rule", Text),  # most urgent matching row; None: no row matches
    Column("standing", Text, nullable=False),  # suspect, ambiguous, software, unknown
    Column("summary", Text, nullable=False),  # verdict in words
    Index(None, "occurred_at"),
    Index(None, "received_at"),
    Index(None, "job_id", "occurred_at"),
    Index(None, "attempt_id", "step"),
    Index(None, "base_key"),
)

alarm_reports = Table(
    "alarm_reports",  # who reported one alarm, how often
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),
    Column("reporter_rank", BigInteger, primary_key=True, autoincrement=False),  # -1: not said
    Column("received", Integer, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("document_id", BigInteger),  # None: says the same as the alarm's first document
)

findings = Table(
    "findings",  # one row of the decision table for one device
    metadata,
    Column("alarm_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("rule", Text),
    Column("kind", Text, nullable=False),
    Column("rank", BigInteger),  # None: nobody named
    Column("node_id", BigInteger),
    Column("gpu_id", BigInteger),
    Column("instance_id", Text),
    Column("job_id", BigInteger, nullable=False),
    Column("case_id", BigInteger, nullable=False),
    Column("incident_id", BigInteger, nullable=False),
    Column("family", Text, nullable=False),
    Column("occurred_at", Instant, nullable=False),
    Column("ambiguous", Boolean, nullable=False),
    Column("software_first", Boolean, nullable=False),
    Column("blocks_replacement", Boolean, nullable=False),
    Column("cautions", Text, nullable=False),  # JSON list of {code, text}
    Index(None, "gpu_id", "occurred_at"),
    Index(None, "node_id", "occurred_at"),
    Index(None, "case_id", "occurred_at"),
    Index(None, "incident_id"),
)

incidents = Table(
    "incidents",  # all alarms with one key: job, code digest, verdict kind, device
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: that key
    Column("job_id", BigInteger, nullable=False),
    Column("code_digest", Text),
    Column("kind", Text, nullable=False),
    Column("gpu_id", BigInteger),
    Column("node_id", BigInteger),
    Column("instance_id", Text),
    Column("case_id", BigInteger, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("first_rank", BigInteger),
    Column("alarms", BigInteger, nullable=False),
    Index(None, "gpu_id", "first_at"),
    Index(None, "node_id", "first_at"),
    Index(None, "instance_id", "first_at"),
    Index(None, "case_id"),
    Index(None, "code_digest", "first_at"),
)

cases = Table(
    "cases",  # one GPU, else node, else job under investigation
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: subject, ordinal
    Column("subject", Text, nullable=False),  # "gpu", "node", "job"
    Column("subject_id", BigInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),  # 1, then 2 after the first was closed ...
    Column("cluster", Text, nullable=False),
    Column("gpu_id", BigInteger),
    Column("node_id", BigInteger),  # where the device was at its newest alarm
    Column("job_id", BigInteger, nullable=False),  # of the newest alarm
    Column("status", Text, nullable=False),  # open, closed
    Column("opened_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("first_alarm_at", Instant, nullable=False),
    Column("last_alarm_at", Instant, nullable=False),
    Column("last_alarm_id", BigInteger, nullable=False),
    Column("alarms", BigInteger, nullable=False),
    Column("evidence_version", Integer, nullable=False),  # counts whatever changed what is known
    Column("standing", Text, nullable=False),  # suspect, ambiguous, software, unknown
    Column("rule", Text),
    Column("rank", BigInteger),
    Column("headline", Text, nullable=False),  # verdict in words
    Column("advice", Text, nullable=False),  # what to do, in words
    Column("urgency", Integer, nullable=False),
    Column("recurrence", Text),  # "transient before on ...", None: first incident
    Column("adjudication", Text, nullable=False, default="open"),
    # open, hardware confirmed, software, not reproduced
    UniqueConstraint("subject", "subject_id", "ordinal"),
    Index(None, "status", "urgency", "last_alarm_at"),
    Index(None, "gpu_id"),
    Index(None, "node_id"),
    Index(None, "job_id"),
)

notes = Table(
    "notes",  # what people wrote on a case or a job; a triage is a note with its answers
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    Column("case_id", BigInteger),
    Column("job_id", BigInteger),
    Column("proposal_id", BigInteger),  # what the note is a comment on; None: on none
    Column("kind", Text, nullable=False),  # note, triage, comment
    Column("text", Text, nullable=False),
    Column("details", Text),  # JSON of the triage answers
    Index(None, "case_id"),
    Index(None, "job_id"),
    Index(None, "proposal_id"),
)

proposals = Table(
    "proposals",  # the row is the queue and the history of one action
    metadata,
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False
    ),  # derived: case, action, ordinal
    Column("case_id", BigInteger, ForeignKey("cases.id"), nullable=False),
    Column("action", Text, nullable=False),  # see app/actions/orders
    Column("ordinal", Integer, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("node_id", BigInteger),
    Column("node_name", Text),
    Column("node_uid", Text),  # bound when the preview was read live; None: not read yet
    Column("instance_id", Text),
    Column("gpu_uuid", Text),
    Column("status", Text, nullable=False),
    # proposed, approved, executing, accepted, waiting, verified, refused, failed, gone, unknown,
    # rejected, superseded, expired
    Column("evidence_version", Integer, nullable=False),
    Column("table_version", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("blocked", Text),  # why it cannot be approved now; None: it can
    Column("recommended_by", Text, nullable=False),  # rule id, or the person who asked
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("decided_by", Text),
    Column("decided_at", Instant),
    Column("decision_reason", Text),
    Column("claimed_by", Text),
    Column("claimed_at", Instant),
    Column("finished_at", Instant),
    Column("outcome", Text),  # plain words of what happened
    Column("parameters", Text),  # JSON: how the action is carried out; None: it needs nothing
    Column("policy", Text),  # version of the rails that it was approved under
    Column("lineage", Text),  # JSON: the machine that was approved, as it was read live
    Column("execute_by", Instant),  # an approval not sent by then is never sent
    Column("batch_id", BigInteger),  # decided together with others
    Column("next_look_at", Instant),  # when the effect of an accepted order is looked for next
    Column("looks", Integer, nullable=False, server_default="0"),  # how often it was looked for
    Column("details", Text),  # JSON: what was read before and after
    UniqueConstraint("case_id", "action", "ordinal"),
    Index(None, "status", "created_at"),
    Index(None, "status", "next_look_at"),
    Index(None, "node_id"),
    Index(None, "batch_id"),
    Index(None, "decided_at"),
    Index(None, "cluster", "node_name"),
    Index(None, "instance_id"),
)
