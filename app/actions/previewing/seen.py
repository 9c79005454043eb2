"""What did a person see before the click, and what of it is different now?

A form carries what the page showed. It is the word of the one who approves about what that person
saw, compared with a new reading; it grants nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from app.actions.previewing.about_platform import Platform
from app.actions.previewing.live import Live
from app.actions.previewing.machine_now import MachineNow
from app.actions.previewing.parts import counted, listed
from app.actions.reaching import cordon_of

PODS = 200
"""Pods that a form names; of more only their number is compared."""
LONGEST = 100_000
UNREAD = "not read"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a preview showed, in words that can be compared; "not read" where nothing was read."""

    uid: str = UNREAD
    instance: str = UNREAD
    cordon: str = UNREAD
    platform: tuple[str, ...] = ()  # what the platform had begun
    recovery: str = UNREAD
    machine: str = UNREAD  # how the provider lists it
    launched: str = UNREAD
    pods: tuple[str, ...] | None = None  # None: not read
    number: int | None = None

    @property
    def written(self) -> str:
        """Write it for a form."""
        return json.dumps(asdict(self), separators=(",", ":"))


def seen_of(live: Live, now: MachineNow, platform: Platform) -> Seen:
    """Keep of a reading what an approval depends on."""
    state, machine = live.state, now.machine
    pods = None
    if live.pods is not None:
        pods = tuple(f"{one.namespace}/{name}" for one in live.pods for name in one.names)
    return Seen(
        uid="gone" if live.gone else (state.uid or UNREAD) if state else UNREAD,
        instance=(state.instance_id or "not told") if state else UNREAD,
        cordon=cordon_of(state) if state else UNREAD,
        platform=tuple(dict.fromkeys(one.doing for one in platform.already)),
        recovery=(now.fleet.node_recovery or "not said") if now.fleet else UNREAD,
        machine="gone" if now.gone else machine.status if machine else UNREAD,
        launched=str(machine.launched_at) if machine else UNREAD,
        pods=None if pods is None else pods[:PODS],
        number=None if pods is None else len(pods),
    )


def read_seen(text: str) -> Seen | None:
    """Read what a form carries; None where it carries nothing that can be read."""
    if not text or len(text) > LONGEST:
        return None
    try:
        raw = json.loads(text)
    except ValueError:
        return None
    if not isinstance(raw, dict) or raw.keys() != {one.name for one in fields(Seen)}:
        return None
    return _checked(raw)


def _checked(raw: Mapping[str, Any]) -> Seen | None:
    texts = ("uid", "instance", "cordon", "recovery", "machine", "launched")
    if not all(isinstance(raw[name], str) for name in texts):
        return None
    pods, number = raw["pods"], raw["number"]
    if (pods is not None and not _texts(pods)) or not _texts(raw["platform"]):
        return None
    if number is not None and not isinstance(number, int):
        return None
    listed_pods = None if pods is None else tuple(pods)
    return Seen(**{**raw, "platform": tuple(raw["platform"]), "pods": listed_pods})


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def changes(before: Seen, now: Seen, *, destroys: bool) -> tuple[str, ...]:
    """Say in sentences what is different; a reversible action does not depend on the pods."""
    found = []
    if before.uid != now.uid:
        found.append(f"the node is another one: uid {now.uid}, it was {before.uid}")
    if before.instance != now.instance:
        found.append(f"the instance is {now.instance}, it was {before.instance}")
    if before.cordon != now.cordon:
        words = {"ours": "cordoned from here", "other": "cordoned by somebody else"}
        found.append(
            f"the node is {words.get(now.cordon, now.cordon.replace('none', 'not cordoned'))}, "
            f"it was {words.get(before.cordon, before.cordon.replace('none', 'not cordoned'))}"
        )
    new = [one for one in now.platform if one not in before.platform]
    if new:
        found.append(f"the platform has begun something itself: {', '.join(new)}")
    if destroys:
        found += _about_machine(before, now) + _about_pods(before, now)
    return tuple(found)


def _about_machine(before: Seen, now: Seen) -> list[str]:
    said = (
        ("recovery", "NodeRecovery is"),
        ("machine", "the provider lists the machine as"),
        ("launched", "the machine was launched"),
    )
    return [
        f"{words} {getattr(now, name)}, it was {getattr(before, name)}"
        for name, words in said
        if getattr(before, name) != getattr(now, name)
    ]


def _about_pods(before: Seen, now: Seen) -> list[str]:
    if before.pods is None and now.pods is None:
        return []
    if before.pods is None or now.pods is None:
        there, was = ("known" if one.pods is not None else "not known" for one in (now, before))
        return [f"what runs on the node is {there}, it was {was}"]
    if before.number != len(before.pods) or now.number != len(now.pods):
        if before.number == now.number:
            return []
        return [f"{now.number or 0:,} pods end with the node, it were {before.number or 0:,}"]
    came = _new(now.pods, before.pods)
    # A pod that has ended meanwhile makes the loss smaller: no new look is needed for that.
    return [f"{counted(len(came), 'pod')} came to the node: {listed(came)}"] if came else []


def _new(now: Collection[str], before: Collection[str]) -> list[str]:
    known = frozenset(before)
    return [one for one in now if one not in known]
