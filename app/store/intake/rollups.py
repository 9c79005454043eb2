"""How many alarms came in each hour, by cluster and check?"""

from __future__ import annotations

from collections import Counter

from sqlalchemy.engine import Connection

from app.store.intake.upsert import merge
from app.store.tables import alarm_hours

HOUR_US = 3_600_000_000


def count_hours(connection: Connection, seen: list[tuple[int, str, str]]) -> None:
    """Add new alarms, each as (time in microseconds, cluster, family)."""
    counts = Counter((at // HOUR_US, cluster, family) for at, cluster, family in seen)
    merge(
        connection,
        alarm_hours,
        [
            {"hour": hour, "cluster": cluster, "family": family, "alarms": count}
            for (hour, cluster, family), count in counts.items()
        ],
        {"alarms": "add"},
    )
