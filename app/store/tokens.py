"""Which programs may send, read or decide, and for which cluster and namespace?"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.tables import tokens

SCOPES = ("write", "read", "decide")  # jobs write; programs read; decide also reads
PREFIX = "sw_"  # lets scanners of repositories recognise a leaked token
_NOTE_USE_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Token:
    """One bearer token without its secret."""

    id: int
    name: str
    cluster: str | None  # None: every cluster
    namespace: str | None  # None: every namespace of the cluster
    scope: str
    created_by: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


_COLUMNS = (
    tokens.c.id,
    tokens.c.name,
    tokens.c.cluster,
    tokens.c.namespace,
    tokens.c.scope,
    tokens.c.created_by,
    tokens.c.created_at,
    tokens.c.last_used_at,
    tokens.c.revoked_at,
)


def hashed(secret: str) -> str:
    """Hash a token for keeping; 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create(
    connection: Connection,
    *,
    name: str,
    cluster: str | None,
    namespace: str | None,
    scope: str,
    by: str,
    at: datetime,
) -> tuple[Token, str]:
    """Make a token; return it with its secret, which is kept nowhere."""
    if scope not in SCOPES:
        raise ValueError(f"there is no scope {scope!r}")
    if namespace and not cluster:
        raise ValueError("a namespace belongs to a cluster: name the cluster as well")
    secret = PREFIX + secrets.token_urlsafe(32)
    row: dict[str, Any] = {
        "id": ids.derive("token", hashed(secret)),
        "name": name,
        "cluster": cluster or None,
        "namespace": namespace or None,
        "scope": scope,
        "created_by": by,
        "created_at": at,
    }
    connection.execute(tokens.insert().values(hash=hashed(secret), **row))
    return Token(**row, last_used_at=None, revoked_at=None), secret


def by_hash(connection: Connection, token_hash: str) -> Token | None:
    """Find a token by the hash of its secret, revoked or not."""
    row = connection.execute(sa.select(*_COLUMNS).where(tokens.c.hash == token_hash)).first()
    return None if row is None else Token(*row)


def by_id(connection: Connection, token_id: int) -> Token | None:
    """Find a token by its id."""
    row = connection.execute(sa.select(*_COLUMNS).where(tokens.c.id == token_id)).first()
    return None if row is None else Token(*row)


def owners(connection: Connection, name: str) -> frozenset[str]:
    """Name everybody who made a token of this name; names can be used again."""
    rows = connection.execute(sa.select(tokens.c.created_by).where(tokens.c.name == name))
    return frozenset(row.created_by for row in rows)


def everything(connection: Connection, limit: int = 500) -> tuple[Token, ...]:
    """List tokens: those that work first, then the revoked ones, the newest first."""
    rows = connection.execute(
        sa.select(*_COLUMNS)
        .order_by(tokens.c.revoked_at.isnot(None), tokens.c.created_at.desc())
        .limit(limit)
    )
    return tuple(Token(*row) for row in rows)


def revoke(connection: Connection, token_id: int, at: datetime) -> bool:
    """Revoke a token; False when it was revoked before or does not exist."""
    changed = connection.execute(
        tokens.update()
        .where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )
    return changed.rowcount == 1


def use_is_noted(token: Token, now: datetime) -> bool:
    """Tell whether the last use is known to the minute, so that nothing has to be written."""
    return token.last_used_at is not None and now - token.last_used_at < _NOTE_USE_EVERY


def note_use(connection: Connection, token_id: int, at: datetime) -> None:
    """Write when a token was last used."""
    connection.execute(tokens.update().where(tokens.c.id == token_id).values(last_used_at=at))


def place(cluster: str | None, namespace: str | None) -> str:
    """Name where a token works."""
    if cluster is None:
        return "every cluster"
    if namespace is None:
        return f"every namespace of cluster {cluster}"
    return f"namespace {namespace} of cluster {cluster}"


def made_sentence(token: Token) -> str:
    """Say for the audit chain that a token was made."""
    where = place(token.cluster, token.namespace)
    return f"The token {token.name} was made with the scope {token.scope} for {where}."
