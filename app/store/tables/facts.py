"""What came in and what was done, exactly as it was?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Table,
    Text,
)

from app.store.columns import Instant, Serial
from app.store.tables.metadata import metadata

documents = Table(
    "documents",  # every accepted document, byte for byte as text, in the order of its commit
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("token_id", BigInteger),  # None: the administrator's token
    Column("body", Text, nullable=False),
)

receipts = Table(
    "receipts",  # how often one document came; alarms count in alarm_reports
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: kind, content
    Column("kind", Text, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("document_id", BigInteger, nullable=False),
)

audit_entries = Table(
    "audit_entries",  # who did what on which evidence; chained by hash
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("verb", Text, nullable=False),  # e.g. "proposal.approved", "token.created"
    Column("summary", Text, nullable=False),  # one plain sentence, true for ever
    Column("case_id", BigInteger),
    Column("proposal_id", BigInteger),
    Column("node_id", BigInteger),
    Column("job_id", BigInteger),
    Column("details", Text, nullable=False),  # JSON: evidence version, outcome, what was read live
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Index(None, "case_id"),
    Index(None, "proposal_id"),
    Index(None, "node_id"),
    Index(None, "at"),
)
