"""Who may do what, and what is changed at run time?"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from app.store.columns import Instant, Serial
from app.store.tables.metadata import metadata

people = Table(
    "people",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: name
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),  # viewer, operator, approver, admin
    Column("session_epoch", Integer, nullable=False, default=1),  # raised to end all sessions
    Column("created_at", Instant, nullable=False),
    Column("last_seen_at", Instant),
    Column("disabled", Boolean, nullable=False, default=False),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("hash", Text, primary_key=True),  # of the secret in the link
    Column("person_id", BigInteger, ForeignKey("people.id"), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
)

tokens = Table(
    "tokens",  # bearer tokens of training jobs and programs
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # derived: hash
    Column("hash", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("cluster", Text),  # None: every cluster
    Column("namespace", Text),  # None: every namespace of the cluster
    Column("scope", Text, nullable=False),  # write (jobs), read, decide
    Column("created_by", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
)

saved_queries = Table(
    "saved_queries",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("query", Text, nullable=False),  # query string of the page
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("author", "name"),
)

settings = Table(
    "settings",  # what is changed at run time: the brake, the session secret
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),  # JSON
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Text, nullable=False),
)
