"""What did tests say of a machine, and which of them speaks last?

A result is a fact beside the alarms. One row is one test: seen running first, settled later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.tables import hardware_tests

Result = Literal["running", "passed", "failed", "inconclusive", "stuck"]
Kept = Literal["new", "changed", "same"]
DEEP = "deep_health_check"
AUDIT = "targeted_audit"
LABEL = "node label"
# A test that is seen to be over says nothing else later.
_OVER = ("passed", "failed")
NEWEST = 50  # of one machine: more of them only repeat it


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as it is known here; one of node and instance may be unknown, not both."""

    cluster: str
    node_id: int | None
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class NewTest:
    """A test as it was seen now.

    `begun_at` None: not known. `recall` is the share of defective GPUs that it finds, None: not
    known. `gpu_id` None: the machine as a whole.
    """

    machine: Machine
    kind: str
    result: Result
    source: str
    words: str
    at: datetime
    gpu_id: int | None = None
    checks: tuple[str, ...] = ()
    recall: float | None = None
    begun_at: datetime | None = None
    proposal_id: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Test:
    """A test as it is kept."""

    __test__ = False  # no test of ours

    id: int
    cluster: str
    node_id: int | None
    instance_id: str | None
    gpu_id: int | None
    kind: str
    checks: tuple[str, ...]
    result: Result
    recall: float | None
    at: datetime
    begun_at: datetime | None
    source: str
    words: str
    proposal_id: int | None
    details: Mapping[str, Any]

    @property
    def dated(self) -> bool:
        """Tell whether it is known when the test ran: a label on a node says no time."""
        return self.source != LABEL or self.begun_at is not None

    @property
    def since(self) -> datetime:
        """Give when it began, as far as that is known: then it was not there before."""
        return self.begun_at or self.at


_TABLE = hardware_tests
_COLUMNS = tuple(_TABLE.c)


def keep(connection: Connection, test: NewTest) -> Kept:
    """Keep what a test says; the same test is one row, and what is over stays as it is."""
    row_id = _id_of(test)
    before = connection.execute(sa.select(_TABLE.c.result).where(_TABLE.c.id == row_id)).scalar()
    if before is None:
        connection.execute(_TABLE.insert().values(_row(row_id, test)))
        return "new"
    if before == test.result or before in _OVER or test.result == "running":
        return "same"
    values = _row(row_id, test)
    for name in ("id", "begun_at", "recall"):
        values.pop(name)
    connection.execute(_TABLE.update().where(_TABLE.c.id == row_id).values(values))
    return "changed"


def newest_of(
    connection: Connection, machine: Machine, since: datetime | None, kind: str | None = None
) -> list[Test]:
    """List the newest tests of a machine since a time, the newest first; `kind` None: of all."""
    found = of_machines(connection, [machine], since, kind)
    return found.get(machine, [])


def of_machines(
    connection: Connection,
    machines: Iterable[Machine],
    since: datetime | None = None,
    kind: str | None = None,
) -> dict[Machine, list[Test]]:
    """List the newest tests of each machine, the newest first, in one statement."""
    wanted = list(dict.fromkeys(machines))
    node_ids = sorted({one.node_id for one in wanted if one.node_id is not None})
    instances = sorted({one.instance_id for one in wanted if one.instance_id is not None})
    if not node_ids and not instances:
        return {}
    query = sa.select(*_COLUMNS).where(
        sa.or_(_TABLE.c.node_id.in_(node_ids), _TABLE.c.instance_id.in_(instances))
    )
    if since is not None:
        query = query.where(_TABLE.c.at >= since)
    if kind is not None:
        query = query.where(_TABLE.c.kind == kind)
    query = query.order_by(_TABLE.c.at.desc(), _TABLE.c.id).limit(NEWEST * len(wanted))
    found = [_test(row) for row in connection.execute(query)]
    return {one: mine for one in wanted if (mine := [t for t in found if _is_of(t, one)])}


def of_proposals(connection: Connection, proposal_ids: Collection[int]) -> list[Test]:
    """List the tests that came from some orders, the newest first."""
    query = sa.select(*_COLUMNS).where(_TABLE.c.proposal_id.in_(proposal_ids))
    return [_test(row) for row in connection.execute(query.order_by(_TABLE.c.at.desc()))]


def _is_of(test: Test, machine: Machine) -> bool:
    if test.cluster != machine.cluster:
        return False
    if test.instance_id is not None and machine.instance_id is not None:
        return test.instance_id == machine.instance_id  # a name can pass to another machine
    return test.node_id is not None and test.node_id == machine.node_id


def _id_of(test: NewTest) -> int:
    machine = test.machine
    host = machine.instance_id or f"node {machine.node_id}"
    begun = micros(test.begun_at or test.at)
    which = f"order {test.proposal_id}" if test.proposal_id is not None else begun
    return ids.derive("hardware test", machine.cluster, host, test.kind, test.source, which)


def _row(row_id: int, test: NewTest) -> dict[str, Any]:
    return {
        "id": row_id,
        "cluster": test.machine.cluster,
        "node_id": test.machine.node_id,
        "instance_id": test.machine.instance_id,
        "gpu_id": test.gpu_id,
        "kind": test.kind,
        "checks": ",".join(test.checks) or None,
        "result": test.result,
        "recall": test.recall,
        "at": test.at,
        "begun_at": test.begun_at,
        "source": test.source,
        "words": test.words,
        "proposal_id": test.proposal_id,
        "details": json.dumps(dict(test.details)) if test.details else None,
    }


def _test(row: Any) -> Test:
    values = row._asdict()
    values["checks"] = tuple(values["checks"].split(",")) if values["checks"] else ()
    values["details"] = json.loads(values["details"]) if values["details"] else {}
    return Test(**values)
