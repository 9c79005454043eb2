"""What has to be true before a suspect GPU may work again, what of it is known, and what proves it?

Nothing here clears a device: a fault can show once in a million replays, and most tests miss most
faults. The list says how much was looked at. A reboot is no repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from witness.rules.coverage import bound

State = Literal["true", "false", "not known"]
REPLAYS_NEEDED = 20
WITNESSES_NEEDED = 2
REBOOT = (
    "A reboot is no repair: GPUs passed every test after one and corrupted again a month later."
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How often the suspect did the triggering step again, beside how many witnesses."""

    replays: int
    wrong: int
    witnesses: int


@dataclass(frozen=True, slots=True)
class TestDone:
    """The test that speaks for the machine; `recall` None: not known how much it finds.

    `counts` False: it passed before the newest alarm, or at a time that nobody knows.
    """

    __test__ = False  # no test of ours

    name: str
    result: str
    recall: float | None
    counts: bool


@dataclass(frozen=True, slots=True)
class Probation:
    """Close audits after a release: passes of those wanted; `state` as the standing order's."""

    state: str
    passes: int
    wanted: int
    until: str


@dataclass(frozen=True, slots=True)
class Watch:
    """How long a released GPU has been watched by its UUID, in days; `alarmed`: it fired again."""

    days: int
    needed: int
    alarmed: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """The new machine; `gpus` None: no rank map has named its GPUs yet."""

    instance_id: str
    gpus: int | None
    condemned: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known; `uuid_known` False: there is no UUID to watch."""

    uuid_known: bool
    replays: tuple[Replayed, ...] = ()
    tests: tuple[TestDone, ...] = ()
    released: bool = False
    probation: Probation | None = None
    watch: Watch | None = None
    replacement: Replacement | None = None
    rebooted: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that has to be true; `proves_not` says what it leaves open.

    `after_release`: it can only come true on a machine that works again.
    """

    code: str
    title: str
    state: State
    why: str
    proves_not: str
    after_release: bool = False


@dataclass(frozen=True, slots=True)
class Checklist:
    """The items in the order in which they come true, and what has to be said beside them."""

    items: tuple[Item, ...]
    remarks: tuple[str, ...]

    @property
    def before_release(self) -> State:
        """Sum up what can be known before a release: one that is false outweighs all."""
        states = {one.state for one in self.items if not one.after_release}
        if "false" in states:
            return "false"
        return "not known" if "not known" in states else "true"


def checklist(facts: Facts) -> Checklist:
    """List what has to be true before, and after, a machine takes work again."""
    if facts.replacement is not None:
        first = [_new_gpus(facts.replacement), _test(facts.tests)]
    else:
        first = [_replays(facts.replays), _test(facts.tests)]
    items = (*first, _probation(facts), _watch(facts))
    remarks = [REBOOT] if facts.rebooted else []
    if facts.replacement is None and any(one.wrong for one in facts.replays):
        remarks.append("It was wrong when it repeated: no test outweighs that.")
    return Checklist(items, tuple(remarks))


def _replays(found: Sequence[Replayed]) -> Item:
    title = (
        f"The triggering step, done again at least {REPLAYS_NEEDED} times beside "
        f"{WITNESSES_NEEDED} witnesses, was never wrong"
    )
    wrong = sum(one.wrong for one in found)
    total = sum(one.replays for one in found)
    # Of one count of replays alone: several short ones do not make a long one.
    best = max((one.replays for one in found if one.witnesses >= WITNESSES_NEEDED), default=0)
    left = bound(best).exact if best else None
    open_ = "A fault that shows in few replays shows in none of twenty."
    if left is not None:
        open_ = f"{best} replays without an error bound its rate at {left:.0%} only."
    if wrong:
        return Item("replays", title, "false", f"Wrong in {wrong} of {total} replays.", open_)
    if best >= REPLAYS_NEEDED:
        why = f"Wrong in none of {best} replays beside {WITNESSES_NEEDED} witnesses or more."
        return Item("replays", title, "true", why, open_)
    why = "No replay was reported."
    if found:
        why = f"Wrong in none of {total} replays; {best} of one count had two witnesses."
    return Item("replays", title, "not known", why, open_)


def _test(found: Sequence[TestDone]) -> Item:
    title = "A test of the hardware passed, and how much it finds is known"
    failed = next((one for one in found if one.result == "failed"), None)
    if failed is not None:
        return Item("test", title, "false", f"{failed.name} failed.", "")
    passed = [one for one in found if one.result == "passed"]
    good = next((one for one in passed if one.counts and one.recall is not None), None)
    if good is not None and good.recall is not None:
        why = f"{good.name} passed; it finds an assumed {good.recall:.0%} of defective GPUs."
        missed = f"About {1 - good.recall:.0%} of defective GPUs pass it."
        return Item("test", title, "true", why, missed)
    why = "No test was run since the first alarm."
    if passed and not passed[0].counts:
        why = f"{passed[0].name} passed, before the newest alarm or at a time that is not known."
    elif passed:
        why = f"{passed[0].name} passed; how much it finds is not known."
    elif found:
        why = f"{found[0].name}: {found[0].result}."
    return Item("test", title, "not known", why, "Most tests miss most silent faults.")


def _probation(facts: Facts) -> Item:
    title = "Closer audits passed for as long as the probation lasts"
    open_ = "Audits see what the job's own work brings out, on the audited steps."
    one = facts.probation
    if one is None:
        why = "Released without probation." if facts.released else "It begins with the release."
        return Item("probation", title, "not known", why, open_, after_release=True)
    done = f"{one.passes} of {one.wanted} audits passed"
    if one.state == "alarmed":
        why = f"An alarm came in it, after {done}."
        return Item("probation", title, "false", why, open_, after_release=True)
    if one.state == "passed":
        return Item("probation", title, "true", f"{done}, and no alarm.", open_, True)
    over = one.state in ("expired", "withdrawn")
    why = f"It ended with {done}." if over else f"{done}; it lasts until {one.until}."
    return Item("probation", title, "not known", why, open_, after_release=True)


def _watch(facts: Facts) -> Item:
    one = facts.watch
    needed = 90 if one is None else one.needed
    title = f"No alarm on this UUID for {needed} days after the release, in whatever machine"
    open_ = "Some defects show after a year. The history by UUID never ends."
    if facts.replacement is not None:
        title = f"No alarm on the new GPUs for {needed} days"
    elif not facts.uuid_known:
        why = "No UUID is known, so it is not recognised elsewhere."
        return Item("watch", title, "false", why, open_, after_release=True)
    if one is None:
        return Item("watch", title, "not known", "It begins with the release.", open_, True)
    if one.alarmed:
        why = f"It raised an alarm again within {one.days} days."
        return Item("watch", title, "false", why, open_, after_release=True)
    state: State = "true" if one.days >= one.needed else "not known"
    why = f"{one.days} of {one.needed} days without an alarm."
    return Item("watch", title, state, why, open_, after_release=True)


def _new_gpus(one: Replacement) -> Item:
    title = "The GPUs of the new machine are known, and none of them is condemned"
    open_ = "A new machine is no proof of a sound one: a quarter of defects show at first use."
    if one.condemned:
        why = f"{one.condemned} of its GPUs are condemned."
        return Item("new_gpus", title, "false", why, open_)
    if one.gpus is None:
        why = f"No rank map has named the GPUs of {one.instance_id} yet."
        return Item("new_gpus", title, "not known", why, open_)
    why = f"{one.gpus} GPUs of {one.instance_id} are known, none is condemned."
    return Item("new_gpus", title, "true", why, open_)
