"""Which windows of GPUs were pulled, and at which PCI addresses do the GPUs sit in them?"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import telemetry_blocks, telemetry_windows
from witness.rules.xid import pci_address


def windows_of(
    connection: Connection,
    gpu_ids: Collection[int],
    cluster: str,
    times: tuple[datetime, datetime],
    limit: int,
) -> dict[int, str]:
    """Give the UUID of each pulled window of these GPUs that touches a time, the newest first."""
    table = telemetry_windows
    query = (
        sa.select(table.c.id, table.c.gpu_uuid)
        .where(
            table.c.gpu_id.in_(gpu_ids),
            table.c.cluster == cluster,
            table.c.start_at < times[1],
            table.c.end_at > times[0],
            table.c.pulled_at.is_not(None),
        )
        .order_by(table.c.start_at.desc(), table.c.id)
        .limit(limit)
    )
    return {row.id: row.gpu_uuid for row in connection.execute(query)}


def pci_of(connection: Connection, windows: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """Give the normalised addresses of each GPU; `windows` gives the UUID of each window."""
    table = telemetry_blocks
    query = sa.select(table.c.window_id, table.c.about).where(table.c.window_id.in_(windows))
    found: dict[str, set[str]] = {}
    for window_id, about in connection.execute(query.distinct()):
        for text in json.loads(about)["seen"].get("pci", ()):
            address = pci_address(text)
            if address is not None:
                found.setdefault(windows[window_id], set()).add(address)
    return {uuid: tuple(sorted(addresses)) for uuid, addresses in found.items()}
