"""What does a suspect's node say of its deep health check, and since when can that be?

A label carries no time. What was seen to change is dated by that; anything else may be older than
the alarm, which is said beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from app.actions import writing
from app.actions.hardware_tests import note_test, recall_of
from app.actions.reaching import port_of
from app.cluster.errors import ClusterError, ClusterRefused, NodeGone
from app.cluster.ports import NodeState
from app.config import Settings
from app.context import Context
from app.store import case_machines, hardware_tests
from app.store.case_machines import SuspectNode
from app.store.connection import Connection
from app.store.hardware_tests import DEEP, LABEL, Machine, NewTest, Result, Test

STATUS_LABEL = "sagemaker.amazonaws.com/deep-health-check-status"
RESULTS: dict[str, Result] = {"InProgress": "running", "Passed": "passed", "Failed": "failed"}
LOOKED_AT = 50  # nodes of open cases a round, the most urgent


@dataclass(frozen=True, slots=True)
class Labelled:
    """What the label of a node means; `result` None: no label, or one that is not known."""

    result: Result | None
    text: str | None


def read_label(state: NodeState) -> Labelled:
    """Read the label that a deep health check leaves."""
    text = state.labels.get(STATUS_LABEL)
    return Labelled(RESULTS.get(text or ""), text)


def watch(context: Context, limit: int = LOOKED_AT) -> int:
    """Read the nodes of open cases and note what their labels say; give how many were new."""
    with context.store.reading() as connection:
        suspects = case_machines.suspect_nodes(connection, limit)
    silent: set[str] = set()
    noted = 0
    for one in suspects:
        if one.cluster in silent:
            continue
        try:
            state = port_of(context, one.cluster).node(one.node)
        except ClusterError as error:
            if not isinstance(error, NodeGone | ClusterRefused):
                silent.add(one.cluster)  # the rest of that cluster can wait as well
            continue
        if same_machine(one, state) and read_label(state).result is not None:
            work = partial(_note, settings=context.settings, node=one, state=state)
            noted += writing.write(context, partial(work, now=context.now()))
    return noted


def same_machine(known: SuspectNode, state: NodeState) -> bool:
    """Tell whether the node that was read is the one of the case: a name can pass to another."""
    if known.instance_id is not None and (state.instance_id or state.provider_id):
        return known.instance_id == state.instance_id  # None: its sources contradict each other
    return known.uid is None or state.uid is None or known.uid == state.uid


def _note(
    connection: Connection, settings: Settings, node: SuspectNode, state: NodeState, now: datetime
) -> bool:
    machine = Machine(node.cluster, node.node_id, node.instance_id)
    label = read_label(state)
    before = next(
        (
            one
            for one in hardware_tests.newest_of(connection, machine, None, DEEP)
            if one.source == LABEL
        ),
        None,
    )
    if label.result is None or (before is not None and before.result == label.result):
        return False
    return note_test(connection, settings, _test(settings, machine, label, before, now))


def _test(
    settings: Settings, machine: Machine, label: Labelled, before: Test | None, now: datetime
) -> NewTest:
    assert label.result is not None
    begun = now if label.result == "running" else None
    words = f"The node’s label says {label.text}. Labels carry no time: it can be older."
    if before is not None:
        begun = before.begun_at if before.result == "running" else before.at
        begun = now if label.result == "running" else begun
        words = f"The node’s label changed to {label.text} after {before.at:%Y-%m-%d %H:%M} UTC."
    return NewTest(
        machine=machine,
        kind=DEEP,
        result=label.result,
        source=LABEL,
        words=words,
        at=now,
        recall=recall_of(settings, DEEP),
        begun_at=begun,
    )
