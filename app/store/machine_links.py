"""Which machine took the place of which, through any number of replacements?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.intake.upsert import insert_new
from app.store.tables import machine_links

LONGEST = 50  # replacements that are followed, in case somebody wrote a ring


class Seen(Protocol):
    """What a look found: one machine in the place of another."""

    @property
    def old_instance_id(self) -> str:
        """Give the machine that left."""

    @property
    def new_instance_id(self) -> str:
        """Give the machine that came."""

    @property
    def how(self) -> str:
        """Say what shows it."""

    @property
    def old_node(self) -> str | None:
        """Give the node name of the machine that left."""

    @property
    def new_node(self) -> str | None:
        """Give the node name of the machine that came; None: not known yet."""


@dataclass(frozen=True, slots=True)
class MachineLink:
    """One machine in the place of another, as it was seen."""

    id: int
    cluster: str
    old_instance_id: str
    new_instance_id: str
    old_node: str | None
    new_node: str | None
    how: str
    seen_at: datetime
    proposal_id: int | None


COLUMNS = tuple(machine_links.c)


def keep(
    connection: Connection, cluster: str, seen: Seen, at: datetime, proposal_id: int | None
) -> None:
    """Keep a link, once; what comes to be known of it later is added."""
    row_id = ids.derive("machine_link", cluster, seen.old_instance_id, seen.new_instance_id)
    row = {
        "id": row_id,
        "cluster": cluster,
        "old_instance_id": seen.old_instance_id,
        "new_instance_id": seen.new_instance_id,
        "old_node": seen.old_node,
        "new_node": seen.new_node,
        "how": seen.how,
        "seen_at": micros(at),
        "proposal_id": proposal_id,
    }
    insert_new(connection, machine_links, [row])
    if seen.new_node is not None:
        connection.execute(
            machine_links.update()
            .where(machine_links.c.id == row_id, machine_links.c.new_node.is_(None))
            .values(new_node=seen.new_node)
        )


def of_proposal(connection: Connection, proposal_id: int) -> tuple[MachineLink, ...]:
    """List what an order brought about."""
    rows = connection.execute(
        sa.select(*COLUMNS)
        .where(machine_links.c.proposal_id == proposal_id)
        .order_by(machine_links.c.seen_at, machine_links.c.id)
    )
    return tuple(MachineLink(*row) for row in rows)


def line(connection: Connection, cluster: str, instance_id: str) -> tuple[MachineLink, ...]:
    """Follow a machine back to the first that is known and on to the last, the oldest first."""
    back: list[MachineLink] = []
    at = instance_id
    while len(back) < LONGEST and (link := _one(connection, cluster, new=at)) is not None:
        back.append(link)
        at = link.old_instance_id
    on: list[MachineLink] = []
    at = instance_id
    while len(on) < LONGEST and (link := _one(connection, cluster, old=at)) is not None:
        on.append(link)
        at = link.new_instance_id
    return (*reversed(back), *on)


def _one(
    connection: Connection, cluster: str, *, old: str | None = None, new: str | None = None
) -> MachineLink | None:
    column = machine_links.c.old_instance_id if old else machine_links.c.new_instance_id
    row = connection.execute(
        sa.select(*COLUMNS)
        .where(machine_links.c.cluster == cluster, column == (old or new))
        .order_by(machine_links.c.seen_at.desc(), machine_links.c.id)
        .limit(1)
    ).first()
    return None if row is None else MachineLink(*row)
