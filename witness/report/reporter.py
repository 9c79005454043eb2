"""How does a training job tell the service what it found, without ever waiting for it?

    reporter = Reporter.from_environment(rank, local_rank, world_size)
    reporter.rank_map(rows, world_size)
    reporter.passed("ring", step, gpus=world_size)
    reporter.alarm(document)
    reporter.close()

What is said goes to a spool on disk and from there to the service; see `docs/reporter.md` for what
is promised when the disk, the network, the service or this process fails.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from witness import wire
from witness.report import ending, settings
from witness.report.announcing import Announcer
from witness.report.audit_requests import TIMEOUT_S as AUDITS_TIMEOUT_S
from witness.report.audit_requests import AuditRequest, ask_audit_requests
from witness.report.beats import Beat, Beats
from witness.report.delivery import Delivery, Options
from witness.report.entries import Entry
from witness.report.health import Health
from witness.report.never_raising import never_raises
from witness.report.poster import Target
from witness.report.resume_floor import TIMEOUT_S, ResumeFloor, ask_resume_floor
from witness.wire import Envelope


class Reporter:
    """Reports for one rank.

    Local rank 0 writes alarms and replays, so that one disk on every node has them (the disks of a
    replaced node are destroyed); rank 0 writes maps, passes and checkpoints. Other ranks may call
    everything; nothing comes of it.

    No method raises or waits for the network. `alarm` alone waits for the disk, at most
    `options.spool_wait_s` seconds. Failures are counted and logged once: `status()`.
    """

    def __init__(
        self,
        envelope: Envelope,
        *,
        url: str | None,
        token: str | Callable[[], str | None] | None,
        spool: str | Path,
        rank: int = 0,
        local_rank: int = 0,
        options: Options | None = None,
    ) -> None:
        self.envelope = envelope
        self.rank, self.local_rank = rank, local_rank
        self.health = Health()
        self._options = options or Options()
        self._beats = Beats()
        self._url, self._token = url, token
        target = None
        if url:
            asked = token if callable(token) else lambda: token
            target = Target(url, asked, self._options.ca_file)
        self._delivery = Delivery(Path(spool), target, self.health, self._options, self._flush_old)
        self._announcer = Announcer(self._options.hold_directory, self._options.sinks, self.health)
        self._ranks_here = settings.ranks_here(rank, local_rank, os.environ)
        self._used = False
        self._audits: tuple[str, ...] = ()
        ending.watch(self)
        if target is not None and local_rank == 0:
            self._begin()
            self._delivery.adopt(every=rank == 0)

    @classmethod
    def from_environment(
        cls, rank: int, local_rank: int, world_size: int | None = None, **given: Any
    ) -> Self:
        """Make the reporter that `WITNESS_*` and the launcher's variables describe.

        Without WITNESS_URL everything goes to the spool only. `given` are arguments of the
        constructor that outweigh the environment.
        """
        del world_size  # each rank map says it
        read: dict[str, Any] = {
            "envelope": wire.envelope_from_environment(),
            **settings.from_environment(),
            **given,
        }
        return cls(rank=rank, local_rank=local_rank, **read)

    def identity(self) -> tuple[int | None, str | None]:
        """Give this rank's count of starts and the uid of this start, for rank 0 to broadcast."""
        return self.envelope.attempt, self.envelope.attempt_uid

    @never_raises()
    def adopt(self, attempt: int | None, attempt_uid: str | None) -> None:
        """Take over rank 0's `identity()`, before anything is reported.

        Launchers that restart machine by machine count restarts on each machine by itself, and
        then one alarm would seem to come from several starts of the job.
        """
        self._flush()
        self.envelope = replace(self.envelope, attempt=attempt, attempt_uid=attempt_uid)

    @never_raises()
    def rank_map(
        self,
        rows: Iterable[Mapping[str, Any]],
        world_size: int,
        gpus_per_node: int | None = None,
        peer_offset: int | None = None,
    ) -> None:
        """Say at the start where each rank runs: rows of rank, node, instance_id, gpu_uuid."""
        if self.rank != 0:
            return
        taken = [dict(row) for row in rows]
        layout = world_size, gpus_per_node, peer_offset
        said = wire.rank_map(self.envelope, (), *layout, self._audits)
        self._say("rank_map", lambda: {**said, "ranks": taken})

    def passed(
        self,
        check: str,
        step: int,
        *,
        gpus: int,
        mode: str | None = None,
        peer_offset: int | None = None,
        step_time_s: float | None = None,
    ) -> None:
        """Count one pass of `nonfinite`, `ring` or `weights` at a step in which `gpus` took part.

        Summed in memory and written within a minute: a kill loses no more than that.
        """
        if self.rank != 0 or sys.is_finalizing():
            return
        try:
            if self._beats.add((check, mode, peer_offset, gpus), step, step_time_s):
                self._begin()
                self._delivery.start()
        except Exception as error:
            self.health.failed("passed", error)

    @never_raises()
    def checkpoint(
        self,
        step: int,
        uri: str | Path | None,
        tags: Mapping[str, int | None] | None,
        committed: bool | None = True,
        parent: str | int | None = None,
    ) -> None:
        """Say that a state was saved; `tags` hold the last passes, None where nobody knows."""
        if self.rank != 0:
            return
        row = {
            "step": step,
            "uri": None if uri is None else str(uri),
            "saved_at": wire.now_text(),
            "committed": committed,
            "tags": tags,
            "parent": parent,
        }
        said = wire.checkpoints(self.envelope, [row])
        self._say("checkpoints", lambda: said)

    @never_raises(False)
    def alarm(self, document: Mapping[str, Any]) -> bool:
        """Report an alarm; True: it lies on this node's disk or with the service.

        Call it on every rank, with the same document. Also leaves the hold beside the checkpoints,
        where their folder is known, and tells the sinks.
        """
        if self.local_rank != 0:
            return False
        began = time.monotonic()
        if sys.is_finalizing():  # a destructor calls: what takes locks or threads is over
            said = wire.alarm(self.envelope, document, self.rank)
            return self._delivery.say("alarm", lambda: said).path is not None
        self._flush()
        said = wire.alarm(self.envelope, document, self.rank)
        held = self._announcer.hold(self.envelope, said["alarm"], self.rank)
        entry = self._say("alarm", lambda: said, self._options.spool_wait_s)
        self._announcer.tell(self.envelope, said["alarm"], self._ranks_here)
        left = self._options.spool_wait_s - (time.monotonic() - began)
        self._announcer.wait_for_hold(held, left)
        return entry.path is not None or entry.gone == "accepted"

    @never_raises()
    def replays(
        self, step: int, rank: int, witnesses: Sequence[int], replays: int, wrong: int
    ) -> None:
        """Say how often `rank` got other bits than the witnesses on doing a step again."""
        if self.local_rank == 0:
            said = wire.replay(self.envelope, step, rank, witnesses, replays, wrong)
            self._say("replay", lambda: said)

    @never_raises()
    def elastic(self, event: str, /, **fields: Any) -> None:
        """Report one event of an elastic job, in the words and fields of the wire format."""
        if self.rank == 0:
            said = wire.elastic_event(self.envelope, event, **fields)
            self._say("elastic_event", lambda: said)

    elastic_event = elastic

    @never_raises()
    def close(self, timeout_s: float = 2.0) -> None:
        """Write and send what is left, within `timeout_s`; what is not sent stays in the spool.

        May be called more than once; other calls after it begin anew.
        """
        if not self._used or sys.is_finalizing():
            return
        self._used = False
        deadline = time.monotonic() + timeout_s
        self._flush()
        self._used = False
        self._delivery.close(deadline)
        self._announcer.close(deadline)

    def resume_floor(self, timeout_s: float = TIMEOUT_S) -> ResumeFloor:
        """Ask the service up to which step this job may resume, within a time, on one rank."""
        url, token, ca_file = self._url, self._token, self._options.ca_file
        return ask_resume_floor(url, token, self.envelope, timeout_s, ca_file)

    @never_raises(())
    def audit_requests(
        self, rows: Iterable[Mapping[str, Any]], timeout_s: float = AUDITS_TIMEOUT_S
    ) -> tuple[AuditRequest, ...]:
        """Ask the service once which machines of a rank map to audit closely, on rank 0.

        Nothing where it does not answer in time, or where `WITNESS_CLOSER_AUDITS` is `off`.
        """
        if self.rank != 0 or not self._options.closer_audits:
            return ()
        url, token, ca_file = self._url, self._token, self._options.ca_file
        found = ask_audit_requests(url, token, self.envelope, timeout_s, ca_file)
        known = list(rows)
        return tuple(one for one in found if one.concerns(known))

    @never_raises()
    def takes_audits(self, ids: Iterable[str]) -> None:
        """Say from now on which targeted audits this start makes."""
        self._audits = tuple(ids)

    @never_raises({})
    def status(self) -> dict[str, Any]:
        """Tell what was done, what waits and what failed."""
        return {**self._delivery.status(), **self.health.as_document()}

    @property
    def idle(self) -> bool:
        """Tell whether everything that was found or said has been dealt with."""
        return self._delivery.idle

    def begin_in_child(self) -> None:
        """Begin anew after a fork: what the parent said is the parent's to send."""
        self.health.reset()
        self._beats.begin_in_child()
        self._delivery.begin_in_child()
        self._announcer.begin_in_child()
        self._used = False

    def _say(self, kind: str, make: Callable[[], dict[str, Any]], wait_s: float = 0.0) -> Entry:
        self._begin()
        return self._delivery.say(kind, make, wait_s)

    def _begin(self) -> None:
        if not self._used and not sys.is_finalizing():
            self._used = True
            ending.expect()

    def _flush_old(self) -> None:
        self._flush(self._options.beat_s)

    def _flush(self, older_than_s: float = 0.0) -> None:
        for beat in self._beats.take(older_than_s):
            said = _passes(self.envelope, beat, self._audits if beat.check == "ring" else ())
            self._say("passes", lambda said=said: said)  # type: ignore[misc]


def _passes(envelope: Envelope, beat: Beat, audits: Sequence[str]) -> dict[str, Any]:
    said = wire.passes(
        envelope,
        beat.check,
        (beat.first_step, beat.last_step),
        beat.count,
        beat.gpus,
        mode=beat.mode,
        peer_offset=beat.peer_offset,
        step_time_s=beat.step_time_s,
    )
    return {**said, "audit_requests": list(audits)} if audits else said
