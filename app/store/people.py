"""Who may sign in, with which role, by which link?"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.tables import people, sign_in_links

ROLES = ("viewer", "operator", "approver", "admin")  # each may do what those before it may


class LastAdmin(Exception):
    """The change would leave nobody who can change the settings."""


@dataclass(frozen=True, slots=True)
class Person:
    """One person who may sign in."""

    id: int
    name: str
    role: str
    session_epoch: int
    created_at: datetime
    last_seen_at: datetime | None  # None: never signed in
    disabled: bool

    def may(self, role: str) -> bool:
        """Tell whether this person's role reaches the one asked for."""
        return not self.disabled and ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Link:
    """A sign-in link that exists, whether it still works or not."""

    person: Person
    expires_at: datetime
    used_at: datetime | None

    def works(self, now: datetime) -> bool:
        """Tell whether the link can be used now."""
        return self.used_at is None and now < self.expires_at and not self.person.disabled


_COLUMNS = (
    people.c.id,
    people.c.name,
    people.c.role,
    people.c.session_epoch,
    people.c.created_at,
    people.c.last_seen_at,
    people.c.disabled,
)


def _person(row: Any) -> Person:
    return Person(*row[: len(_COLUMNS)])


def by_id(connection: Connection, person_id: int) -> Person | None:
    """Find a person by id."""
    row = connection.execute(sa.select(*_COLUMNS).where(people.c.id == person_id)).first()
    return None if row is None else _person(row)


def by_name(connection: Connection, name: str) -> Person | None:
    """Find a person by name."""
    return by_id(connection, ids.derive("person", name))


def everybody(connection: Connection) -> tuple[Person, ...]:
    """List all people by name."""
    rows = connection.execute(sa.select(*_COLUMNS).order_by(people.c.name))
    return tuple(_person(row) for row in rows)


def ensure(connection: Connection, name: str, role: str, at: datetime) -> tuple[Person, bool]:
    """Give the person of this name, made with this role if new; the flag tells which."""
    known = by_name(connection, name)
    if known is not None:
        return known, False
    if role not in ROLES:
        raise ValueError(f"there is no role {role!r}")
    row = {
        "id": ids.derive("person", name),
        "name": name,
        "role": role,
        "session_epoch": 1,
        "created_at": at,
        "disabled": False,
    }
    connection.execute(people.insert().values(row))
    made = by_name(connection, name)
    assert made is not None
    return made, True


def set_role(connection: Connection, person_id: int, role: str) -> None:
    """Give a person another role; raise LastAdmin rather than lose the last administrator."""
    if role not in ROLES:
        raise ValueError(f"there is no role {role!r}")
    if role != "admin":
        _keep_an_admin(connection, person_id)
    connection.execute(people.update().where(people.c.id == person_id).values(role=role))


def set_disabled(connection: Connection, person_id: int, disabled: bool) -> None:
    """Shut a person out, ending every session and link, or let the person in again."""
    if disabled:
        _keep_an_admin(connection, person_id)
        end_sessions(connection, person_id)
    connection.execute(people.update().where(people.c.id == person_id).values(disabled=disabled))


def end_sessions(connection: Connection, person_id: int) -> None:
    """End every session of a person and spoil every link that was not used yet."""
    connection.execute(
        people.update()
        .where(people.c.id == person_id)
        .values(session_epoch=people.c.session_epoch + 1)
    )
    connection.execute(
        sign_in_links.delete().where(
            sign_in_links.c.person_id == person_id, sign_in_links.c.used_at.is_(None)
        )
    )


def make_link(connection: Connection, person_id: int, at: datetime, minutes: float) -> str:
    """Make a sign-in link and return its secret, which is kept nowhere."""
    secret = secrets.token_urlsafe(32)
    # Links that ran out a day ago tell nobody anything any more.
    connection.execute(
        sign_in_links.delete().where(sign_in_links.c.expires_at < at - timedelta(days=1))
    )
    connection.execute(
        sign_in_links.insert().values(
            hash=_hash(secret),
            person_id=person_id,
            created_at=at,
            expires_at=at + timedelta(minutes=minutes),
        )
    )
    return secret


def find_link(connection: Connection, secret: str) -> Link | None:
    """Look at a link without using it up; None when there is no such link."""
    row = connection.execute(
        sa.select(*_COLUMNS, sign_in_links.c.expires_at, sign_in_links.c.used_at)
        .join(sign_in_links, sign_in_links.c.person_id == people.c.id)
        .where(sign_in_links.c.hash == _hash(secret))
    ).first()
    return None if row is None else Link(_person(row), row.expires_at, row.used_at)


def use_link(connection: Connection, secret: str, at: datetime) -> Person | None:
    """Use a link up; None when it does not work (any more)."""
    used = connection.execute(
        sign_in_links.update()
        .where(
            sign_in_links.c.hash == _hash(secret),
            sign_in_links.c.used_at.is_(None),
            sign_in_links.c.expires_at > at,
        )
        .values(used_at=at)
    )
    if used.rowcount != 1:
        return None
    link = find_link(connection, secret)
    if link is None or link.person.disabled:
        return None
    connection.execute(people.update().where(people.c.id == link.person.id).values(last_seen_at=at))
    return replace(link.person, last_seen_at=at)


def _keep_an_admin(connection: Connection, leaving: int) -> None:
    others = connection.execute(
        sa.select(sa.func.count())
        .select_from(people)
        .where(people.c.role == "admin", people.c.disabled.is_(False), people.c.id != leaving)
    ).scalar_one()
    if not others:
        raise LastAdmin("somebody has to stay administrator")


def _hash(secret: str) -> str:
    # The secret has 256 random bits: a plain hash cannot be searched backwards.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
