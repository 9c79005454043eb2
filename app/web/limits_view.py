"""How much of each limit is used, as a page shows it?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from app.actions import rails
from app.actions.counting import Asked
from app.store import rail_counts, rail_policy
from app.store.connection import Connection
from app.store.rail_policy import InForce
from witness.rules.rails import Cap

BAR = 96  # width of a bar in its own units
# These count over all clusters; the others belong to one.
OVER_ALL = ("max_nodes", "max_per_hour", "max_per_day")
NAMES = {
    "max_nodes": "held or being destroyed now",
    "max_per_hour": "approved within an hour",
    "max_per_day": "approved within a day",
    "max_share": "out of service",
    "max_destroyed_share": "being destroyed",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One limit with what is used of it; `added`: what the decision at hand would add."""

    name: str
    used: int
    limit: int
    bar: Markup
    added: int = 0

    @property
    def is_full(self) -> bool:
        """Tell whether nothing more goes through."""
        return self.used + self.added >= self.limit


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of all limits."""

    over_all: tuple[Line, ...]
    clusters: tuple[tuple[str, tuple[Line, ...]], ...]
    unread: tuple[str, ...]  # clusters whose GPU nodes nobody could count
    in_force: InForce


def read_left(connection: Connection, now: datetime) -> Left:
    """Count what is left, for every cluster in which something waits or is under way."""
    names = rail_counts.clusters(connection)
    budgets = {name: rails.budget_for(connection, Asked(name, "replace"), now) for name in names}
    first = next(iter(budgets.values()), None)
    if first is None:
        first = rails.budget_for(connection, Asked("", "replace"), now)
    of_clusters = {
        name: tuple(
            _line(cap) for cap in one.caps if cap.code in NAMES and cap.code not in OVER_ALL
        )
        for name, one in budgets.items()
    }
    return Left(
        over_all=tuple(_line(cap) for cap in first.caps if cap.code in OVER_ALL),
        clusters=tuple((name, lines) for name, lines in of_clusters.items() if lines),
        unread=tuple(name for name, lines in of_clusters.items() if not lines),
        in_force=rail_policy.in_force(connection),
    )


def _line(cap: Cap) -> Line:
    return line(cap, cap)


def line(before: Cap, after: Cap, cluster: str = "") -> Line:
    """Show a limit before and after a decision."""
    name = NAMES.get(before.code, before.what)
    if before.code not in OVER_ALL and cluster:
        name = f"{name}, {cluster}"
    added = after.used - before.used
    return Line(name, before.used, before.limit, bar(before.used, added, before.limit), added)


def bar(used: int, added: int, limit: int) -> Markup:
    """Draw a limit: what is used is solid, what would be added is hatched by a lighter tone."""
    full = max(limit, used + added, 1)
    solid, more = BAR * used / full, BAR * added / full
    label = f"{used + added} of {limit}"
    return Markup(
        '<svg class="left" width="{w}" height="8" viewBox="0 0 {w} 8" '
        'preserveAspectRatio="none" role="img" aria-label="{l}">'
        '<rect width="{w}" height="8" class="f-sunk"/>'
        '<rect width="{s:.1f}" height="8" class="f-acc"/>'
        '<rect x="{s:.1f}" width="{m:.1f}" height="8" class="f-amb"/></svg>'
    ).format(w=BAR, l=label, s=solid, m=more)
