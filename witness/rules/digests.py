"""Do the digests that came with an alarm bear out what it names?

Expected shape: an object with one entry a rank, the rank as its key, each an object with `own`
(the rank's own result) and, for the ring, `replay` (its replay of its target). Other shapes are
kept as evidence and not read.
"""

from collections.abc import Mapping

from witness.rules import words
from witness.rules.alarm import COMPUTE, WEIGHTS, Alarm, Pair
from witness.rules.majority import suspects_by_majority

Entries = Mapping[int, Mapping[str, object]]


def entries(digests: Mapping[str, object] | None) -> Entries:
    """Read the digests by rank; what has another shape is left out."""
    found: dict[int, Mapping[str, object]] = {}
    for key, entry in (digests or {}).items():
        if isinstance(entry, Mapping) and key.isascii() and key.isdigit():
            found[int(key)] = entry
    return found


def compare(by_rank: Entries, offset: int, world_size: int) -> dict[Pair, bool]:
    """Tell of each comparison that can be made again whether it differs."""
    result: dict[Pair, bool] = {}
    for replayer, entry in by_rank.items():
        target = (replayer + offset) % world_size
        own = by_rank.get(target)
        if "replay" in entry and own is not None and "own" in own:
            result[target, replayer] = entry["replay"] != own["own"]
    return result


def contradiction(alarm: Alarm, offset: int | None, world_size: int | None) -> str | None:
    """Say where the digests contradict the alarm; None where they agree or cannot be read."""
    if alarm.digests is None:
        return None
    by_rank = entries(alarm.digests)
    if alarm.check == COMPUTE and offset is not None and world_size is not None:
        return _of_ring(alarm, compare(by_rank, offset, world_size))
    if alarm.check == WEIGHTS and alarm.suspects_state in {"named", "null"}:
        return _of_weights(alarm, by_rank, world_size)
    return None


def _of_ring(alarm: Alarm, compared: Mapping[Pair, bool]) -> str | None:
    posted = set(alarm.mismatched_pairs)
    missing = sorted(pair for pair, differs in compared.items() if differs and pair not in posted)
    wrong = sorted(pair for pair in posted if compared.get(pair) is False)
    if missing:
        pair = words.pair(*missing[0])
        return f"By the digests {pair} differs as well, which the alarm does not list."
    if wrong:
        return f"By the digests {words.pair(*wrong[0])} agrees, which the alarm lists as differing."
    return None


def _of_weights(alarm: Alarm, by_rank: Entries, world_size: int | None) -> str | None:
    """Count a majority again, only where every rank's digest has come."""
    own = {rank: repr(entry["own"]) for rank, entry in by_rank.items() if "own" in entry}
    if world_size is None or set(own) != set(range(world_size)):
        return None
    counted = suspects_by_majority(own).suspects
    posted = None if alarm.suspects is None else tuple(sorted(set(alarm.suspects)))
    if counted == posted:
        return None
    said = "nobody" if counted is None else words.ranks(counted)
    named = "nobody" if posted is None else words.ranks(posted)
    return f"By the digests a strict majority is against {said}, but the alarm names {named}."
