"""Is what was read of one machine, or written for one case, never taken for another's?"""

from __future__ import annotations

import sqlalchemy as sa

from app.actions import verify
from app.store import proposals
from app.store.connection import Connection
from app.store.tables import cases, nodes
from tests.orders.conftest import MakeYard
from tests.orders.yard import Yard


def test_a_cordon_that_stood_already_is_not_said_to_be_changed_by_somebody(
    make_yard: MakeYard,
) -> None:
    yard = make_yard()
    _second_case(yard)
    first = yard.run(yard.approve("cordon", 1))
    assert first.status == "verified", first.outcome
    yard.sagemaker.advance(minutes=1)
    second = yard.approve("cordon", 1)
    _change(yard, second.id, case_id=2)
    done = yard.run(second)
    assert (done.status, done.result) == ("verified", "already_ours")
    assert verify.watch_held_nodes(yard.context) == 0
    assert "node.drifted" not in [*yard.verbs(first), *yard.verbs(second)]


def test_the_uid_of_another_machine_under_the_name_is_not_kept(
    make_yard: MakeYard,
) -> None:
    yard = make_yard()
    proposal = yard.approve("cordon", 1)
    name = "ip-10-0-0-1"
    yard.kubernetes.put("nodes", {"metadata": {"name": name, "uid": "uid-of-a-newcomer"}})
    _change(yard, proposal.id, node_name=name, node_uid="uid-that-was", instance_id=None)
    yard.context.store.write(
        lambda c: c.execute(sa.update(nodes).where(nodes.c.id == 1).values(uid="uid-that-was"))
    )
    done = yard.run(proposal)
    assert done.status == "refused", done.outcome
    assert "Another machine carries the name" in str(done.outcome)
    with yard.context.store.reading() as connection:
        kept = connection.execute(sa.select(nodes.c.uid).where(nodes.c.id == 1)).scalar_one()
    assert kept == "uid-that-was"


def _change(yard: Yard, row_id: int, **values: object) -> None:
    yard.context.store.write(lambda c: proposals.move(c, row_id, ("approved",), values))


def _second_case(yard: Yard) -> None:
    def write(connection: Connection) -> None:
        row = connection.execute(sa.select(cases).where(cases.c.id == 1)).mappings().one()
        connection.execute(sa.insert(cases).values({**row, "id": 2, "ordinal": 2}))

    yard.context.store.write(write)
