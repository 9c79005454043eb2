"""Would one more node be one too many, and how much is left?

Counts in, the first refusal out.  What is not known is said to be unknown: the absolute caps hold
all the same, and what destroys waits until the share of the fleet can be told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from witness.rules.rail_policy import RailPolicy

Effect = Literal["undoes", "asks", "holds", "destroys"]
EFFECTS: dict[str, Effect] = {
    "uncordon": "undoes",
    "targeted_audit": "asks",
    "cordon": "holds",
    "deep_health_check": "destroys",
    "reboot": "destroys",
    "replace": "destroys",
}
"""A deep health check may restart or replace a machine by itself."""
NODES_OF_ONE_ALARM = 4
"""A share never goes below this many for a cordon: one alarm can name so many, and it is undone."""


def effect_of(action: str) -> Effect:
    """Tell what an action does to a node; one that is not known counts as destroying."""
    return EFFECTS.get(action, "destroys")


@dataclass(frozen=True, slots=True)
class Counts:
    """What is out of service beside the node that is asked for; that node is in none of these.

    None is "not known". `fleet` are the GPU nodes of the cluster as read last; `dry_run` says that
    nothing would be sent to it.
    """

    out: int = 0
    out_in_cluster: int = 0  # also what others took out, as read last
    destroying_in_cluster: int = 0
    fleet: int | None = None
    dry_run: bool = False
    group: str | None = None
    out_in_group: int = 0
    zone: str | None = None
    out_in_zone: int = 0
    domains: tuple[tuple[str, int], ...] | None = None  # ("the rack 7", nodes out in it)
    last_hour: int = 0
    last_day: int = 0
    attempts: int = 0  # of this action on this node
    rests_minutes: float | None = None  # since something destroyed this node; None: nothing did


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit with what is used of it; the node that is asked for would be one more."""

    code: str
    what: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """Count the nodes that it still lets through."""
        return max(0, self.limit - self.used)

    @property
    def words(self) -> str:
        """Say it with its figures."""
        return f"{self.used} of at most {self.limit} {self.what}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one more is refused: a code for programs, a sentence with its figures for people."""

    code: str
    words: str


def share_limit(fleet: int, share: float, effect: Effect) -> int:
    """Count the nodes that a share allows, rounded down, at least one; see NODES_OF_ONE_ALARM."""
    # 0.07 of 100 is 7.000000000000001, and 0.29 of 100 is 28.999999999999996.
    least = 1 if effect == "destroys" else NODES_OF_ONE_ALARM
    return max(least, math.floor(fleet * share + 1e-9))


def caps(policy: RailPolicy, action: str, counts: Counts) -> tuple[Cap, ...]:
    """List every limit that this action uses of, those that cannot be told left out."""
    effect = effect_of(action)
    if effect in ("undoes", "asks"):
        return ()
    found = [
        Cap("max_nodes", "nodes held or being destroyed at one time", counts.out, policy.max_nodes)
    ]
    if counts.fleet is not None:
        found += _shares(policy, effect, counts, counts.fleet)
    if counts.group is not None:
        what = f"nodes out of service in the instance group {counts.group}"
        found.append(Cap("max_per_group", what, counts.out_in_group, policy.max_per_group))
    if counts.zone is not None:
        what = f"nodes out of service in the zone {counts.zone}"
        found.append(Cap("max_per_zone", what, counts.out_in_zone, policy.max_per_zone))
    found += [
        Cap("max_per_domain", f"nodes out of service in {name}", used, policy.max_per_domain)
        for name, used in counts.domains or ()
    ]
    hours = f"{policy.attempts_hours:g} hours"
    found += [
        Cap("max_per_hour", "nodes an hour", counts.last_hour, policy.max_per_hour),
        Cap("max_per_day", "nodes a day", counts.last_day, policy.max_per_day),
        Cap("attempts", f"attempts on this node in {hours}", counts.attempts, policy.attempts),
    ]
    return tuple(found)


def _shares(policy: RailPolicy, effect: Effect, counts: Counts, fleet: int) -> list[Cap]:
    nodes = f"of the cluster’s {fleet} GPU nodes"
    limit = share_limit(fleet, policy.max_share, "holds")
    found = [Cap("max_share", f"{nodes} out of service", counts.out_in_cluster, limit)]
    if effect == "destroys":
        limit = share_limit(fleet, policy.max_destroyed_share, effect)
        used = counts.destroying_in_cluster
        found.append(Cap("max_destroyed_share", f"{nodes} being destroyed", used, limit))
    return found


def first_refusal(policy: RailPolicy, action: str, counts: Counts) -> Refusal | None:
    """Find the first limit that one more node would break; None: none that is known would."""
    effect = effect_of(action)
    for cap in caps(policy, action, counts):
        if cap.left == 0:
            return Refusal(cap.code, f"{cap.words}.")
    if effect != "destroys":
        return None
    if counts.fleet is None and not counts.dry_run:
        return Refusal(
            "fleet_unknown",
            "How many GPU nodes the cluster has is not known, so the share cannot be checked: "
            "what destroys waits until the cluster can be read.",
        )
    rests = counts.rests_minutes
    if rests is not None and rests < policy.cooldown_minutes:
        return Refusal(
            "cooldown",
            f"The node rests {policy.cooldown_minutes:g} minutes after something was done to it "
            f"that destroys; {max(0.0, rests):.0f} have passed.",
        )
    return None


def unknowns(action: str, counts: Counts) -> tuple[str, ...]:
    """Say which limits could not be checked, for an action that is let through all the same."""
    if effect_of(action) in ("undoes", "asks"):
        return ()
    found = []
    if counts.fleet is None:
        found.append(
            "How many GPU nodes the cluster has is not known: the share was not checked, "
            "the absolute caps were."
        )
    if counts.group is None:
        found.append("The node’s instance group is not known: its cap was not checked.")
    if counts.zone is None and not counts.domains:
        found.append("The node’s zone and rack are not known: their caps were not checked.")
    return tuple(found)
