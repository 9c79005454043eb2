"""Which signs of a deep health check are there: at the provider, on the node, in earlier looks?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.actions.orders import looking_at
from app.actions.orders.check_result import Signs
from app.actions.orders.looking_at import BEFORE, Found, boot_id
from app.actions.orders.machines import CLOCKS, sent_at
from app.cluster.ports import NodeState
from app.cluster.provider.ports import PENDING, TESTING, Machine, TestRun
from app.context import Context
from app.store.proposals import Proposal
from witness.rules.node_faults import faults_on_node
from witness.rules.platform_signs import DEEP_CHECK, HEALTH

RUN = "test_run"
RUN_BEGAN = "test_run_at"
SUPERSEDED = "Superseded"


def with_labels(found: Found, checks: Sequence[str]) -> Mapping[str, Any]:
    """Add what the node's labels said before: one of an older check must not be read as ours."""
    labels = found.node.labels if found.node else {}
    before = dict(found.kept.get(BEFORE) or {})
    before |= {"check_label": labels.get(DEEP_CHECK), "faults": faults(found.node)}
    return {**found.kept, BEFORE: before, **({"checks": list(checks)} if checks else {})}


def own_run(runs: Sequence[TestRun], proposal: Proposal) -> TestRun | None:
    """Find the request for this machine: the one that was seen before, else the newest.

    One that was superseded has handed its machines to a newer one.
    """
    known = next((run for run in runs if run.id == proposal.details.get(RUN)), None)
    if known is not None and known.status != SUPERSEDED:
        return known
    group, since = looking_at.kept(proposal).get("group"), sent_at(proposal)
    for run in runs:
        fits = run.created_at is None or run.created_at >= since
        if fits and names(run, proposal.instance_id or "", group):
            return run
    return known


def names(run: TestRun, instance_id: str, group: str | None) -> bool:
    """Tell whether a request is about a machine; a group without ids is all of it."""
    if any(instance_id in ids for ids in run.machines.values()):
        return True
    return group is not None and run.machines.get(group) == ()


def runs_since(proposal: Proposal) -> datetime:
    """Give a time before which the request was not made."""
    began = proposal.details.get(RUN_BEGAN)
    sent = sent_at(proposal)
    return min(sent, datetime.fromisoformat(str(began)) - CLOCKS) if began else sent


def signs_of(
    context: Context,
    proposal: Proposal,
    machine: Machine,
    node: NodeState | None,
    run: TestRun | None,
    *,
    recovers: bool,
) -> Signs:
    """Gather what this look and the earlier ones, kept in the row, have seen."""
    before = proposal.details.get(BEFORE) or {}
    labels: Mapping[str, str] = node.labels if node else {}
    label = labels.get(DEEP_CHECK)
    testing = machine.status == TESTING or label == "InProgress"
    seen_testing = testing or bool(proposal.details.get("seen_testing"))
    down = machine.status == PENDING and seen_testing
    was, now = before.get("boot_id"), boot_id(node)
    failed_at = proposal.details.get("failed_at")
    return Signs(
        status=machine.status,
        run=run.status if run else None,
        label=label,
        label_before=before.get("check_label"),
        health=labels.get(HEALTH),
        faults=faults(node),
        faults_before=before.get("faults"),
        seen_testing=seen_testing,
        seen_down=down or bool(proposal.details.get("seen_down")),
        restarted=bool(was and now and was != now),
        recovers=recovers,
        failed_for=context.now() - datetime.fromisoformat(failed_at) if failed_at else None,
    )


def faults(node: NodeState | None) -> str | None:
    """Give the faults that the platform's label names; None where it names none."""
    if node is None:
        return None
    return next((one.kind for one in faults_on_node(node.labels, {}, ()) if one.kind), None)
