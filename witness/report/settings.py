"""Which settings of the reporter does the environment hold?"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from witness.report.delivery import Options
from witness.report.sinks import (
    AlarmEvent,
    EmbeddedMetrics,
    LogLine,
    PodApi,
    PutMetrics,
    SDCReports,
    Sink,
)
from witness.report.sinks.cloudwatch import NAMESPACE
from witness.report.sinks.kubernetes import REPORT_API

log = logging.getLogger("witness.report")


def from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read the keyword arguments of `Reporter` from WITNESS_ variables; never raises."""
    given = os.environ if environ is None else environ
    holding = _text(given, "WITNESS_CHECKPOINTS")
    return {
        "url": _text(given, "WITNESS_URL"),
        "token": _token(given),
        "spool": _text(given, "WITNESS_SPOOL") or default_spool(),
        "options": Options(
            ca_file=_text(given, "WITNESS_CA_FILE"),
            hold_directory=None if holding is None else Path(holding),
            sinks=_sinks(given),
            closer_audits=_text(given, "WITNESS_CLOSER_AUDITS") not in ("off", "0", "no"),
        ),
    }


def default_spool() -> Path:
    """Give a folder of this user's own that outlives the process, though not a replaced machine.

    Where somebody else made it first (anybody may, in a temporary folder) another one is given,
    which no later process will find.
    """
    try:
        usual = Path(tempfile.gettempdir()) / f"silent-witness-spool-{os.getuid()}"
        with suppress(FileExistsError):
            usual.mkdir(mode=0o700)
        found = usual.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            return usual
        log.warning("%s is not this user's own: what is left unsent will not be resent", usual)
        return Path(tempfile.mkdtemp(prefix="silent-witness-spool-"))
    except OSError:  # no temporary folder can be written: the report says so
        return Path(tempfile.gettempprefix()) / "silent-witness-spool"


def ranks_here(rank: int, local_rank: int, environ: Mapping[str, str]) -> range | None:
    """Give the ranks on this machine, which launchers number in one piece; None if not known."""
    text = environ.get("LOCAL_WORLD_SIZE", "")
    if not text.isdecimal():
        return None
    first = rank - local_rank
    return range(first, first + int(text))


def _text(given: Mapping[str, str], name: str) -> str | None:
    return given.get(name, "").strip() or None


def _token(given: Mapping[str, str]) -> Callable[[], str | None]:
    """Read the token anew each time where it lies in a file: a mounted secret is rotated."""
    file, token = _text(given, "WITNESS_TOKEN_FILE"), _text(given, "WITNESS_TOKEN")

    def read() -> str | None:
        if file is None:
            return token
        return Path(file).read_text("utf-8").strip() or None

    return read


def _sinks(given: Mapping[str, str]) -> tuple[Sink, ...]:
    """Make the sinks of WITNESS_SINKS, a list with commas; `log` alone where it is not set."""
    found: list[Sink] = []
    for name in given.get("WITNESS_SINKS", "log").split(","):
        if not name.strip():
            continue
        sink = _sink(name.strip(), given)
        if sink is None:
            log.warning("WITNESS_SINKS: %r is not known here, or this is no pod", name.strip())
        else:
            found.append(sink)
    return tuple(found)


def _sink(name: str, given: Mapping[str, str]) -> Sink | None:
    namespace = _text(given, "WITNESS_METRIC_NAMESPACE") or NAMESPACE
    if name == "log":
        return LogLine()
    if name == "emf":
        file = _text(given, "WITNESS_EMF_FILE")
        return EmbeddedMetrics(None if file is None else Path(file), namespace)
    if name == "cloudwatch":
        return PutMetrics(namespace)
    if name in ("event", "sdcreport"):
        api = PodApi.from_environment(given)
        if api is None:
            return None
        group_version = _text(given, "WITNESS_SDCREPORT_API") or REPORT_API
        return AlarmEvent(api) if name == "event" else SDCReports(api, group_version)
    return None
