"""What keeps a launcher that restarts at once from resuming inside a suspect window?

A marker beside the checkpoints. Every alarm adds a file of its own under `SDC_HOLD.d`, every
release another one; nothing is ever changed or removed, so any number of ranks and nodes may write
at once on shared storage without locks, and the lowest window start wins whoever comes last.
`SDC_HOLD.json` sums them up for people and for programs in other languages.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from witness import wire
from witness.report import durable
from witness.report.resume_floor import ResumeFloor
from witness.rules.resume import Checkpoint, newest_before
from witness.rules.suspect_window import reported_window
from witness.wire import Envelope

SUMMARY, FACTS = "SDC_HOLD.json", "SDC_HOLD.d"
HOLD, RELEASE, LEFT_BEHIND = "hold", "release", "left_behind"
_TRIES = 5


class HoldUnreadableError(Exception):
    """The marker is there and cannot be read: which checkpoints are safe is not known."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One alarm's hold: steps `first` to `last` are suspect.

    `at` is when the alarm was raised, RFC 3339. `released`: somebody said that it holds no more.
    `left_behind`: a later run went back before it and saved a state beyond it.
    """

    key: str
    first: int
    last: int
    at: str
    released: bool
    left_behind: bool
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which checkpoint to resume from, None where none may be used, and why."""

    checkpoint: Checkpoint | None
    why: str


def write_hold(
    directory: str | Path,
    alarm: Mapping[str, Any],
    envelope: Envelope | None = None,
    by: str = "",
) -> int:
    """Leave a hold for an alarm beside the checkpoints; give the step that it holds from.

    Call it on one rank of each node, or on all: equal alarms leave one file. Raises OSError.
    """
    first, last = window_of(alarm)
    who = envelope.as_document(HOLD) if envelope else {"time": wire.now_text()}
    said = {
        **who,
        "kind": HOLD,
        "window": [first, last],
        "check": alarm.get("check"),
        "step": alarm.get("step"),
        "by": by,
    }
    apart = {key: value for key, value in said.items() if key not in ("time", "by")}
    key = hashlib.sha256(wire.to_line({**apart, "alarm": dict(alarm)})).hexdigest()[:32]
    _add(Path(directory), f"{HOLD}-{key}", {**said, "key": key})
    return first


def release(
    directory: str | Path, reason: str, by: str, keys: Iterable[str] | None = None
) -> list[str]:
    """Lift holds, all of them unless `keys` says which; give the keys lifted. Raises OSError.

    For a person who found an alarm harmless. What was held stays on record, with who lifted it.
    """
    return _close(Path(directory), RELEASE, keys, {"reason": reason, "by": by})


def leave_behind(directory: str | Path, resumed_from: int, saved: int, by: str) -> list[str]:
    """Note that this run resumed before held windows and saved a state beyond them.

    Call it on rank 0 once checks passed at `saved`, else every later restart goes back as far. The
    checkpoints that the alarmed run had saved inside a window are refused from then on as well.
    """
    held = [
        one.key
        for one in read_holds(directory)
        if not one.released and resumed_from < one.first and saved > one.last
    ]
    how = {"resumed_from": resumed_from, "saved": saved, "by": by}
    return _close(Path(directory), LEFT_BEHIND, held, how)


def latest_safe(
    checkpoints: Iterable[Checkpoint],
    directory: str | Path,
    floor: ResumeFloor | None = None,
) -> Checkpoint | None:
    """Give the newest checkpoint that neither a hold nor the service's floor forbids.

    None: none may be used, which is not leave to start from the newest one. Call it on one rank
    and broadcast what it gives. Raises HoldUnreadableError, OSError.
    """
    return choose(checkpoints, directory, floor).checkpoint


def choose(
    checkpoints: Iterable[Checkpoint],
    directory: str | Path,
    floor: ResumeFloor | None = None,
) -> Choice:
    """Choose as `latest_safe` does, and say why."""
    known, holds = list(checkpoints), read_holds(directory)
    active = [one for one in holds if not one.released and not one.left_behind]
    bound = min((one.first for one in active), default=None)
    said = [] if bound is None else [f"the hold beside the checkpoints: before step {bound}"]
    if floor is not None and floor.known and floor.highest_step is not None:
        said.append(f"the service: not above step {floor.highest_step}")
        bound = floor.highest_step + 1 if bound is None else min(bound, floor.highest_step + 1)
    elif floor is not None and not floor.known:
        said.append(f"the service's floor is not known ({floor.why})")
    bad = {id(one) for hold in holds if not hold.released for one in _tainted(known, hold)}
    usable = [one for one in known if id(one) not in bad]
    if bound is None:
        bound = max((one.step for one in usable), default=0) + 1
        said.insert(0, "no hold and no floor limits it")
    found = newest_before(usable, bound)
    if found is None:
        said.append("no checkpoint that may be used is known")
    return Choice(found, "; ".join(said))


def read_holds(directory: str | Path) -> list[Hold]:
    """List every hold, the lowest first; raises HoldUnreadableError, OSError."""
    return _holds(_facts(Path(directory)))


def _holds(facts: Mapping[str, dict[str, Any]]) -> list[Hold]:
    closed: dict[str, set[str]] = {RELEASE: set(), LEFT_BEHIND: set()}
    for fact in facts.values():
        if fact.get("kind") in closed and isinstance(fact.get("keys"), list):
            closed[fact["kind"]].update(fact["keys"])
    holds = []
    for name, fact in facts.items():
        if fact.get("kind") != HOLD:
            continue
        try:
            key, (first, last) = str(fact["key"]), fact["window"]
            at = str(fact.get("time", ""))
            ended = (key in closed[RELEASE], key in closed[LEFT_BEHIND])
            holds.append(Hold(key, int(first), int(last), at, *ended, fact))
        except (KeyError, TypeError, ValueError) as error:
            raise HoldUnreadableError(f"{name}: a hold without key or window") from error
    return sorted(holds, key=lambda one: (one.first, one.key))


def window_of(alarm: Mapping[str, Any]) -> tuple[int, int]:
    """Give the steps that an alarm holds suspect; its own step where it does not say."""
    window = alarm.get("suspect_window")
    if isinstance(window, list | tuple) and len(window) == 2:
        return int(window[0]), int(window[1])
    step = int(alarm["step"])
    start = (alarm.get("schedule") or {}).get("start_step") or 0
    passes = (alarm.get("last_audit_pass"), alarm.get("last_weight_check_pass"))
    return reported_window(str(alarm.get("check")), step, start, *passes) or (step, step)


def _tainted(checkpoints: list[Checkpoint], hold: Hold) -> list[Checkpoint]:
    """List what the alarmed run saved inside a window, and what descends from that."""
    inside = [one for one in checkpoints if hold.first <= one.step <= hold.last]
    bad = [one for one in inside if not _saved_after(one, hold)]
    uris = {one.uri for one in bad if one.uri is not None}
    heirs = bad
    while heirs:
        taken = {id(one) for one in bad}
        heirs = [one for one in checkpoints if one.parent in uris and id(one) not in taken]
        bad = bad + heirs
        uris |= {one.uri for one in heirs if one.uri is not None}
    return bad


def _saved_after(checkpoint: Checkpoint, hold: Hold) -> bool:
    """Tell whether a state was saved by a later run; where a time is missing, it was not."""
    if checkpoint.saved_at is None:
        return False
    try:
        return checkpoint.saved_at > datetime.fromisoformat(hold.at)
    except (ValueError, TypeError):  # no time, or one of them without a zone
        return False


def _close(
    directory: Path, kind: str, keys: Iterable[str] | None, how: Mapping[str, Any]
) -> list[str]:
    wanted = None if keys is None else set(keys)
    found = [
        one.key
        for one in read_holds(directory)
        if not one.released and (wanted is None or one.key in wanted)
    ]
    if found:
        said = {"kind": kind, "keys": found, **how, "time": wire.now_text()}
        _add(directory, f"{kind}-{secrets.token_hex(8)}", said)
    return found


def _add(directory: Path, name: str, fact: dict[str, Any]) -> None:
    folder = directory / FACTS
    folder.mkdir(parents=True, exist_ok=True)
    durable.write(folder / f"{name}.json", wire.to_line(fact))
    durable.sync_folder(directory)
    for _ in range(_TRIES):  # another rank may add a file between our reading and our summary
        facts = _facts(directory)
        durable.write(directory / SUMMARY, _summary(facts))
        if len(_facts(directory)) == len(facts):
            return


def _summary(facts: dict[str, dict[str, Any]]) -> bytes:
    active = [one for one in _holds(facts) if not one.released and not one.left_behind]
    said = {
        "resume_before_step": min((one.first for one in active), default=None),
        "note": "Written by silent-witness. Do not edit: see the folder beside it.",
        "facts": facts,
    }
    return json.dumps(wire.plain(said), indent=1).encode("ascii")


def _facts(directory: Path) -> dict[str, dict[str, Any]]:
    """Read every fact by name; the summary has those whose files did not come along (a copy)."""
    facts: dict[str, dict[str, Any]] = {}
    try:
        files = sorted((directory / FACTS).iterdir())
    except FileNotFoundError:
        files = []
    for file in files:
        if file.suffix != ".json":
            continue
        fact = _read(file)
        if fact is not None:
            facts[file.stem] = fact
        elif file.name.startswith(HOLD):
            raise HoldUnreadableError(f"{file} cannot be read")
    return {**_summed_up(directory / SUMMARY, needed=not facts), **facts}


def _summed_up(summary: Path, needed: bool) -> dict[str, dict[str, Any]]:
    try:
        said = _read(summary)
    except FileNotFoundError:
        return {}
    facts = None if said is None else said.get("facts")
    if isinstance(facts, dict):
        return {name: fact for name, fact in facts.items() if isinstance(fact, dict)}
    if needed:
        raise HoldUnreadableError(f"{summary} cannot be read")
    return {}


def _read(file: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(file.read_bytes())
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
