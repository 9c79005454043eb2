"""What does torchrun tell a worker, and what do its agent's events tell about a job?

    torchrun --event-log-handler=console … train.py 2>&1 | python -m witness.ddp.adapters.torchrun

passes every line on and reports starts and ends of the job as elastic events. In a shell with
`set -o pipefail` the exit code stays torchrun's.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness import wire
from witness.report import Reporter

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_EVENT = "torchelastic.worker.status."


def restarts_left(environ: Mapping[str, str] | None = None) -> int | None:
    """Say how often torchrun would still start this job again, at once and on the same machines.

    None outside torchrun. The service counts starts: `attempt` is the restart count plus 1, which
    `wire.envelope_from_environment` already does.
    """
    given = os.environ if environ is None else environ
    try:
        done, most = given["TORCHELASTIC_RESTART_COUNT"], given["TORCHELASTIC_MAX_RESTARTS"]
        return max(int(most) - int(done), 0)
    except (KeyError, ValueError):
        return None


def record_alarm(alarm: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> bool:
    """Leave the alarm in the error file that torchrun gave this worker; False where it has none.

    torchrun shows it as the cause and puts it into its event of the failed worker. A worker that
    only exits with code 3 leaves nothing there, and torchrun itself exits with code 1. Call it on
    one rank or on all, before leaving. Never raises.
    """
    file = (os.environ if environ is None else environ).get(ERROR_FILE)
    if not file:
        return False
    text = f"SilentCorruption: check {alarm.get('check')!r} at step {alarm.get('step')}"
    # torchrun shows the call stack where there is one: the sentence stands in for it.
    extra = {"py_callstack": text, "timestamp": str(int(time.time())), "alarm": wire.plain(alarm)}
    try:
        Path(file).write_text(json.dumps({"message": {"message": text, "extraInfo": extra}}))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One event of a torchrun agent.

    `state` is its word: START, FAILED, SUCCEEDED, TERMINATED, RENDEZVOUS and more. `rank` is None
    for the agent itself. `exit_code` is negative for a signal. `alarm` is the document that
    `record_alarm` left. torchrun gives no times.
    """

    state: str
    run_id: str
    host: str
    restarts: int
    rank: int | None
    exit_code: int | None
    error: str | None
    alarm: dict[str, Any] | None


def read_event(line: str) -> AgentEvent | None:
    """Read one line of the handler `console`, prefixed or not; None where it is no event."""
    at = line.find('{"name": "' + _EVENT)
    if at < 0:
        return None
    try:
        said = json.loads(line[at:])["metadata"]
        inner = json.loads(said.get("metadata") or "{}")
        error = json.loads(said.get("raw_error") or "{}")
        return AgentEvent(
            state=str(said["state"]),
            run_id=str(said["run_id"]),
            host=str(said["hostname"]),
            restarts=int(said["agent_restarts"]),
            rank=said.get("global_rank"),
            exit_code=_first(inner.get("exit_code")),
            error=_message(error),
            alarm=_alarm(error),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def elastic_events(lines: Iterable[str]) -> Iterator[tuple[AgentEvent, str, dict[str, Any]]]:
    """Give each start and end of the job with the name and fields of its elastic event.

    One start a restart, and one end at the last. torchrun reports no worker that failed before a
    restart, so the end of every attempt but the last is known from the next start alone. A worker
    that was ended together with another is no cause.
    """
    started: set[int] = set()
    for event in filter(None, map(read_event, lines)):
        fields = {"attempt_no": event.restarts + 1, "nodes": [event.host]}
        if event.state == "START" and event.restarts not in started:
            started.add(event.restarts)
            yield event, "attempt_start", fields
        elif event.state in ("FAILED", "SUCCEEDED") and event.rank is not None:
            code = event.exit_code
            if event.state == "SUCCEEDED" and event.rank == 0:
                yield event, "attempt_end", {**fields, "reason": "succeeded"}
            elif code is not None and code > 0:
                why = {"rank": event.rank, "exit_code": code, "error": event.error}
                yield event, "attempt_end", {**fields, "reason": "failed", **why}


def follow(lines: Iterable[str], pass_on: Callable[[str], object], **options: Any) -> None:
    """Pass each line on and report the job's starts and ends; `options` go to the `Reporter`.

    The reporter is made at the first event, under the names that the job's own workers use.
    """
    reporter: Reporter | None = None

    def seen() -> Iterator[str]:
        for line in lines:
            pass_on(line)
            yield line

    for event, name, fields in elastic_events(seen()):
        envelope = wire.envelope_from_environment(
            {
                **os.environ,
                "TORCHELASTIC_RUN_ID": event.run_id,
                "TORCHELASTIC_RESTART_COUNT": str(event.restarts),
            }
        )
        if reporter is None:
            reporter = Reporter.from_environment(0, 0, **{"envelope": envelope, **options})
        reporter.adopt(envelope.attempt, envelope.attempt_uid)
        reporter.elastic(name, **fields)
    if reporter is not None:
        reporter.close()


def _first(value: Any) -> int | None:
    """Read what torchrun wraps into a list of one."""
    one = value[0] if isinstance(value, list) and value else value
    return one if isinstance(one, int) else None


def _message(error: Mapping[str, Any]) -> str | None:
    message = error.get("message")
    text = message.get("message") if isinstance(message, dict) else message
    return None if text in (None, "<NONE>") else str(text)


def _alarm(error: Mapping[str, Any]) -> dict[str, Any] | None:
    message = error.get("message")
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    alarm = extra.get("alarm") if isinstance(extra, dict) else None
    return alarm if isinstance(alarm, dict) else None


if __name__ == "__main__":
    follow(sys.stdin, sys.stdout.write)
