"""Which error counters of the suspect rose, when, and more than before or than its neighbours'?

A counter of what the hardware says of itself (uncorrected errors, remapped rows) counts wherever in
the samples it rose. Any other counts where it rose in the suspect window or after it, unless the
samples show that it does so all the time, or that most GPUs that compare rose alike.
"""

from dataclasses import dataclass

from witness.rules import words
from witness.rules.amounts import amount, number, percent
from witness.rules.around import Around
from witness.rules.bursts import Burst, burst
from witness.rules.cleaning import Clean
from witness.rules.counting import Counted, Fall, Rise, counted
from witness.rules.dcgm_fields import Field
from witness.rules.levels import FEWEST_PEERS
from witness.rules.moments import at, span
from witness.rules.observations import FALSE_ALARMS, Observation, When


@dataclass(frozen=True, slots=True)
class _Rose:
    """One counter of the suspect, its parts (links, instances) put together."""

    field: Field
    parts: tuple[tuple[Clean, Counted], ...]

    def rises(self, around: Around, *whens: When) -> tuple[Rise, ...]:
        found = [
            rise
            for _, count in self.parts
            for rise in count.rises
            if around.window.when(rise.before, rise.at) in whens
        ]
        return tuple(sorted(found, key=lambda rise: (rise.at, rise.before)))


def counter_rises(around: Around) -> tuple[Observation, ...]:
    """Read every counter of the suspect that is evidence and has no part of its own reading."""
    found: list[Observation] = []
    for field, cleans in around.fields("counter"):
        if field.resets != "exporter":
            rose = _Rose(field, tuple((one, _count(one)) for one in cleans))
            found += _observed(around, rose)
    return (*found, *_falls(around))


def _count(one: Clean) -> Counted:
    return counted(one.times, one.values, one.field.resets)


def _observed(around: Around, rose: _Rose) -> list[Observation]:
    inside = rose.rises(around, "window", "after")
    before = rose.rises(around, "before")
    if not inside and not before:
        return []
    shown = inside or before
    compared = _compared(around, rose) if inside else None
    alike, neighbours = _neighbours(around, rose.field, inside)
    hardware = rose.field.evidence == "hardware"
    habit = compared is None or compared.habit
    when: When = "before"
    if inside:
        when = "window" if rose.rises(around, "window") else "after"
    return [
        Observation(
            code="increase",
            field_id=rose.field.id,
            evidence=rose.field.evidence,
            risen=hardware or not (habit or alike),
            when=when,
            text=" ".join(
                sentence
                for sentence in (
                    _what(rose, shown),
                    _in_all(rose, shown),
                    _against_past(compared, when),
                    neighbours,
                )
                if sentence
            ),
            first=shown[0].before,
            last=shown[-1].at,
            amount=sum(rise.amount for rise in shown),
            chance=None if compared is None else compared.chance,
        )
    ]


def _compared(around: Around, rose: _Rose) -> Burst:
    """Compare with the past of the part that rose most in the window."""

    def most(pair: tuple[Clean, Counted]) -> float:
        return sum(one.amount for one in pair[1].between(around.window.suspect_from, float("inf")))

    clean, count = max(rose.parts, key=most)
    return burst(clean, {rise.at: rise.amount for rise in count.rises}, around.window)


def _neighbours(around: Around, field: Field, inside: tuple[Rise, ...]) -> tuple[bool, str]:
    """Tell whether most GPUs that compare rose alike, and say how many rose."""
    peers = around.of_peers(field.id)
    if not peers or not inside:
        return False, ""
    amounts = [
        sum(
            rise.amount
            for one in parts
            for rise in _count(one).between(around.window.suspect_from, around.window.end)
        )
        for parts in peers
    ]
    rose = [one for one in amounts if one > 0]
    own = sum(rise.amount for rise in inside)
    largest = max(amounts)
    chance = largest / own / (len(peers) + 1) if own > largest else 1.0
    alike = len(peers) >= FEWEST_PEERS and 2 * len(rose) >= len(peers) and chance > FALSE_ALARMS
    if not rose:
        return False, f"None of the {words.counted(len(peers), 'GPU')} that compare rose."
    text = f"{len(rose)} of {len(peers)} GPUs that compare rose as well"
    return alike, f"{text}, so it is not particular to this one." if alike else f"{text}."


def _what(rose: _Rose, shown: tuple[Rise, ...]) -> str:
    field = rose.field
    whole = sum(rise.amount for rise in shown)
    again = sum(rise.amount for rise in shown if rise.after_reset)
    text = f"{field.title} rose by {amount(field, whole)}, {span(shown[0].before, shown[-1].at)}"
    if again:
        text += f", {number(again)} of them counted anew after a reset"
    links = [
        words.cut(value, 20)
        for clean, count in rose.parts
        if count.rises
        for name, value in clean.series.part
        if name in {"link", "mig"}
    ]
    return f"{text} (on {words.listed(links)})." if links else f"{text}."


def _in_all(rose: _Rose, shown: tuple[Rise, ...]) -> str:
    """Say the rise over all samples where it is more than what is shown, and around resets."""
    whole = sum(count.total for _, count in rose.parts)
    falls = [fall for _, count in rose.parts for fall in count.falls if not fall.kept]
    if not falls:
        more = whole != sum(rise.amount for rise in shown)
        return f"Over all samples it rose by {number(whole)}." if more else ""
    reset = falls[0]
    before = sum(r.amount for _, c in rose.parts for r in c.rises if r.at <= reset.before)
    return (
        f"Over all samples it rose by {number(whole)}: {number(before)} before and "
        f"{number(whole - before)} after it was set back, {span(reset.before, reset.at)}."
    )


def _against_past(compared: Burst | None, when: When) -> str:
    if compared is None:
        return "It did not rise in the suspect window." if when == "before" else ""
    if compared.chance is None:
        return "No samples from before the suspect window tell whether it rises often."
    if compared.before == 0:
        return "It had not risen before, in these samples."
    often = f"It rose in {words.counted(compared.before, 'step')} before as well"
    if compared.lowest > FALSE_ALARMS:
        return f"{often}; that is too little to tell a habit."
    return f"{often}; by chance as dense in {percent(compared.chance)} of cases."


def _falls(around: Around) -> list[Observation]:
    """Say where counters went back, once for all that went back together."""
    resets: dict[tuple[float, float], list[tuple[Field, Fall]]] = {}
    found = []
    for cleans in around.own.values():
        for one in cleans:
            for fall in _count(one).falls if one.field.kind == "counter" else ():
                if fall.kept:
                    found.append(_contradiction(one.field, fall))
                else:
                    resets.setdefault((fall.before, fall.at), []).append((one.field, fall))
    return [*found, *(_reset(around, key, resets[key]) for key in sorted(resets))]


def _reset(
    around: Around, between: tuple[float, float], fallen: list[tuple[Field, Fall]]
) -> Observation:
    told = [f"{field.title_inside} from {number(fall.was)}" for field, fall in fallen]
    names = words.listed(list(dict.fromkeys(told)), 4)
    exporter = all(field.resets == "exporter" for field, _ in fallen)
    why = (
        "the exporter was started again"
        if exporter
        else "the driver was reloaded, or the GPU reset, or the node started again"
    )
    return Observation(
        code="reset",
        field_id=fallen[0][0].id,
        evidence="context",
        risen=False,
        when=around.window.when(*between),
        text=(
            f"Counters were set back, {span(*between)} ({names}): {why}. "
            "It removes no error that was counted before."
        ),
        first=between[0],
        last=between[1],
    )


def _contradiction(field: Field, fall: Fall) -> Observation:
    return Observation(
        code="contradiction",
        field_id=field.id,
        evidence="context",
        risen=False,
        when="unknown",
        text=(
            f"{field.title} fell from {number(fall.was)} to {number(fall.became)} "
            f"by {at(fall.at)}. The board keeps this counter, so it cannot: "
            "a damaged sample, or two devices."
        ),
        first=fall.before,
        last=fall.at,
    )
