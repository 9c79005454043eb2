"""How is a deep health check ordered for one machine, and how is its result seen?

It is no reading: a machine that fails may be restarted or replaced by the platform without asking
again. The call gives no result, only that the request was taken; the result is seen later, or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import Any

from app.actions import intent
from app.actions.orders import looking_at
from app.actions.orders.check_result import Signs, Verdict, judge
from app.actions.orders.check_signs import (
    RUN,
    RUN_BEGAN,
    names,
    own_run,
    runs_since,
    signs_of,
    with_labels,
)
from app.actions.orders.looking_at import Found, answered, look_before
from app.actions.orders.machines import sent_at, successor
from app.actions.orders.ports import Sight, TestSeen
from app.actions.reaching import provider_of
from app.cluster.errors import ClusterError, MachineGone
from app.cluster.ports import ActionResult, NodeState, Outcome
from app.cluster.provider.ports import (
    CHECKS,
    RUNNING,
    TESTING,
    Answer,
    MachineAnswer,
    TestRequest,
    TestRun,
)
from app.cluster.provider.reading import SLURM_NODES_WITHOUT_CHECKS, slurm_role
from app.context import Context
from app.store import proposals
from app.store.hardware_tests import DEEP
from app.store.proposals import Proposal
from witness.rules.platform_signs import HEALTH

DEFAULT_CHECKS = ("InstanceStress",)
SOURCE = "provider"
RUNS_BACK = timedelta(days=2)  # a request that has been in progress for longer hangs
KARPENTER = "Karpenter"


class DeepCheck:
    """Tests one machine for an hour or more; nothing else can run on it meanwhile."""

    stuck_after = timedelta(hours=4)
    look_every = timedelta(minutes=1)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look at node, machine and cluster once more, then ask for the check, once."""
        found = look_before(context, proposal)
        if isinstance(found, ActionResult):
            return found
        checks = _checks(proposal)
        no = _why_not(found, checks)
        if no is not None:
            return no
        busy = _other_run(context, proposal, found)
        if busy is not None:
            return busy
        found = changed(found, kept=with_labels(found, checks))
        held = intent.hold(context, proposal, found.kept)
        if held is not None:
            return held
        machine = found.machine
        request = TestRequest({str(machine.group): (machine.instance_id,)}, checks)
        (answer,) = provider_of(context, proposal.cluster).test(request)
        if answer.answer is Answer.FAILED and answer.code is not None:
            answer = _taken_all_the_same(context, proposal, answer)
        return answered(answer, found, "Deep health check")

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read how far the check has come, and its result where something shows one."""
        provider = provider_of(context, proposal.cluster)
        try:
            machine = provider.machine(proposal.instance_id or "")
        except MachineGone:
            return self._gone(context, proposal)
        except ClusterError as error:
            return Sight(None, error.message)
        try:
            run = own_run(provider.test_runs(runs_since(proposal)), proposal)
            recovers = provider.fleet().node_recovery != "None"
        except ClusterError as error:
            return Sight(None, error.message)
        node = looking_at.node_or_none(context, proposal)
        signs = signs_of(context, proposal, machine, node, run, recovers=recovers)
        verdict = judge(signs)
        if proposal.status == "unknown" and run is None and not signs.seen_testing:
            words = f"{machine.instance_id} {verdict.words}. No request for it is listed."
            return Sight(None, words, node)
        return self._seen(context, proposal, verdict, signs, run, node)

    def _seen(
        self,
        context: Context,
        proposal: Proposal,
        verdict: Verdict,
        signs: Signs,
        run: TestRun | None,
        node: NodeState | None,
    ) -> Sight:
        words = f"{proposal.instance_id} {verdict.words}."
        details: dict[str, Any] = {"seen_testing": signs.seen_testing, "seen_down": signs.seen_down}
        if run is not None:
            details[RUN] = run.id
        if verdict.result == "failed":
            details["failed_at"] = _failed_at(context, proposal).isoformat()
        result: Any = verdict.result
        if verdict.state != "verified" and result != "failed" and self._is_stuck(context, proposal):
            result, words = "stuck", f"No result after {_hours(context, proposal)} hours: {words}"
        test = None if result is None else _test(proposal, result, words)
        return Sight(verdict.state, words, node, details, None, test)

    def _gone(self, context: Context, proposal: Proposal) -> Sight:
        """Find what came in the place of a machine that went; the check may have done it."""
        known, gone = looking_at.kept(proposal), f"{proposal.instance_id} is gone"
        if not (proposal.details.get("seen_testing") or proposal.details.get("failed_at")):
            words = f"{gone}; nothing shows whether the check did that."
            return Sight("gone", words, test=_test(proposal, "inconclusive", words))
        words = f"{gone}: it failed the check, and the platform replaced it by itself."
        test = _test(proposal, "failed", words)
        try:
            found = successor(context, proposal, known, alone=_is_alone(context, proposal))
            fleet = provider_of(context, proposal.cluster).fleet()
        except ClusterError as error:
            return Sight("waiting", f"{words} What came is not known: {error.message}", test=test)
        if found is not None:
            link = found.link
            told = f"{words} {link.new_instance_id} took its place, and is {found.machine.status}."
            details = {"new_instance_id": link.new_instance_id, "linked_by": link.how}
            over = found.machine.status == RUNNING
            status: Any = "verified" if over else "waiting"
            return Sight(status, told, found.node, details, link, test)
        if fleet.autoscaler == KARPENTER or self._is_stuck(context, proposal):
            return Sight("verified", f"{words} Nothing is known to have come back.", test=test)
        return Sight("waiting", f"{words} Nothing has taken its place yet.", test=test)

    def _is_stuck(self, context: Context, proposal: Proposal) -> bool:
        return context.now() - sent_at(proposal) > self.stuck_after


def _checks(proposal: Proposal) -> tuple[str, ...]:
    wanted = proposal.parameters.get("checks")
    return tuple(str(one) for one in wanted) if wanted else DEFAULT_CHECKS


def _why_not(found: Found, checks: Sequence[str]) -> ActionResult | None:
    """Refuse what would test a whole group, be passed over, or get in the platform's way."""
    machine, node = found.machine, found.node
    unknown = [one for one in checks if one not in CHECKS]
    role = slurm_role(found.fleet, machine.group)
    health = node.labels.get(HEALTH) if node else None
    rules = (
        (not machine.group, "its instance group is not known, and a whole group is never tested"),
        (role in SLURM_NODES_WITHOUT_CHECKS, f"{machine.group} is a group of {role} nodes"),
        (bool(unknown), f"there is no check {unknown[:1]}"),
        (bool(health and health.startswith("UnschedulablePending")),
         f"the platform is at work on it ({HEALTH}={health})"),
        (machine.status not in (RUNNING, TESTING), f"it is {machine.status}"),
    )  # fmt: skip
    for broken, why in rules:
        if broken:
            words = f"No deep health check of {machine.instance_id}: {why}. Nothing was sent."
            return ActionResult(Outcome.REFUSED, words, node)
    return None


def _other_run(context: Context, proposal: Proposal, found: Found) -> ActionResult | None:
    """Tell of a request that is in progress: the provider takes one a cluster at a time."""
    try:
        runs = provider_of(context, proposal.cluster).test_runs(context.now() - RUNS_BACK)
    except ClusterError as error:
        return ActionResult(Outcome.FAILED, f"{error.message} Nothing was sent.", found.node)
    machine = found.machine
    active = next((run for run in runs if run.status == "InProgress"), None)
    if machine.status == TESTING or (active and names(active, machine.instance_id, machine.group)):
        kept = dict(with_labels(found, ()))
        if active is not None:
            kept |= {RUN: active.id, RUN_BEGAN: _text(active.created_at)}
        words = f"A deep health check of {machine.instance_id} is under way already."
        return ActionResult(
            Outcome.UNDER_WAY, f"{words} Nothing was sent.", found.node, False, kept
        )
    if active is None:
        return None
    began = f" since {active.created_at:%H:%M} UTC" if active.created_at else ""
    words = (
        f"Another request for deep health checks is in progress on this cluster{began} "
        f"({active.id}), and it takes one at a time. Nothing was sent."
    )
    return ActionResult(Outcome.REFUSED, words, found.node)


def _taken_all_the_same(
    context: Context, proposal: Proposal, answer: MachineAnswer
) -> MachineAnswer:
    """Look for the request after a refusal for too many requests: it can have been taken."""
    try:
        runs = provider_of(context, proposal.cluster).test_runs(sent_at(proposal))
    except ClusterError:
        return answer
    run = own_run(runs, proposal)
    if run is None:
        return answer
    words = f"{answer.message} Yet the request is listed: it was taken."
    details = {**answer.details, RUN: run.id}
    return changed(answer, answer=Answer.ACCEPTED, message=words, details=details)


def _test(proposal: Proposal, result: Any, words: str) -> TestSeen:
    return TestSeen(DEEP, result, SOURCE, words, _checks(proposal))


def _failed_at(context: Context, proposal: Proposal) -> datetime:
    known = proposal.details.get("failed_at")
    return datetime.fromisoformat(str(known)) if known else context.now()


def _hours(context: Context, proposal: Proposal) -> int:
    return int((context.now() - sent_at(proposal)).total_seconds() // 3600)


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _is_alone(context: Context, proposal: Proposal) -> bool:
    """Tell whether no other machine of this cluster can have been replaced since this order."""
    with context.store.reading() as connection:
        return not proposals.others_since(
            connection, proposal, ("replace", DEEP), sent_at(proposal)
        )
