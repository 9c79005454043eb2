"""Is a yes bound to everything that was seen, and single, and by four eyes where it destroys?"""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.actions import policy
from app.actions.comments import comment
from app.actions.decide import Choice, Decider, decide
from app.actions.undo import ask_again
from app.errors import Problem
from app.store import proposal_comments, proposals, rail_policy, tokens
from app.store.connection import Connection
from app.store.proposals import Proposal
from tests.approvals.house import ALICE, ANN, House, named, node_name, placed


def replacement(house: House, **values: object) -> Proposal:
    """Give a replacement that waits, of a node that is suspect."""
    house.read_fleet()
    house.suspect(0)
    return house.add(house.waiting()[node_name(0)], "replace", **values)


def test_an_approval_keeps_what_it_is_bound_to(house: House) -> None:
    order = replacement(house)
    house.limit(execute_minutes=5)
    lineage = {"logical_id": "ln-7", "launched_at": "2026-01-01T00:00:00+00:00"}
    seen = house.evidence_of(order)
    choice = Choice("approved", seen, "tested", "uid-1", policy="1", lineage=lineage)
    done = decide(house.context, order.id, ANN, choice)
    assert done.status == "approved"
    assert done.policy == "1"
    assert done.execute_by == house.time + timedelta(minutes=5)
    assert done.lineage == {
        "node": node_name(0),
        "instance_id": node_name(0).removeprefix("hyperpod-"),
        "node_uid": "uid-1",
        **lineage,
    }
    assert (done.node_uid, done.evidence_version) == ("uid-1", seen)
    with pytest.raises(Problem, match="already decided by ann"):
        decide(house.context, order.id, ANN, choice)


def test_everything_that_changed_since_the_look_is_listed(house: House) -> None:
    order = replacement(house)
    seen = house.evidence_of(order)
    house.wait(minutes=1)
    house.post(placed(40, "moe", house.time), named([0], 50, "moe", house.time))
    house.limit(max_nodes=7)
    with pytest.raises(Problem) as changed:
        decide(house.context, order.id, ANN, Choice("approved", seen, policy="assumed"))
    problem = changed.value
    assert (problem.status, problem.code) == (409, "evidence_changed")
    listed = problem.more["changes"]
    assert isinstance(listed, list)
    assert [one["code"] for one in listed] == ["evidence_changed", "policy_changed"]
    assert "The limits changed: version assumed then, version 1 now." in problem.message
    assert "moe" in problem.message
    # The rules may have taken it back meanwhile; the cordon waits on the new evidence.
    cordon = house.waiting()[node_name(0)]
    choice = Choice("approved", house.evidence_of(cordon), policy="1")
    assert decide(house.context, cordon.id, ALICE, choice).status == "approved"


def test_a_new_decision_table_needs_a_new_judgement(house: House) -> None:
    house.suspect(0)
    cordon = house.waiting()[node_name(0)]

    def age(connection: Connection) -> None:
        proposals.move(connection, cordon.id, ("proposed",), {"table_version": "0"})

    house.context.store.write(age)
    with pytest.raises(Problem, match="decision table changed: version 0") as changed:
        house.approve(cordon)
    assert changed.value.code == "table_changed"
    assert house.approve(house.row(cordon)).status == "approved", "it was judged anew"


def test_two_expiries(house: House) -> None:
    house.suspect(0, 1)
    first, second = house.waiting().values()
    assert first.expires_at == house.time + timedelta(days=7)
    approved = house.approve(first)
    assert approved.execute_by == house.time + timedelta(minutes=15)
    house.wait(days=8)
    with pytest.raises(Problem, match="expired undecided"):
        house.approve(second)
    house.limit(approve_hours=2)
    again = ask_again(house.context, second.id, ALICE)
    assert again.expires_at == house.time + timedelta(hours=2)
    house.suspect(2)
    assert house.waiting()[node_name(2)].expires_at == house.time + timedelta(hours=2)


def test_four_eyes_also_by_the_names_of_tokens(house: House) -> None:
    house.context.store.write(
        lambda c: tokens.create(
            c, name="ci", cluster=None, namespace=None, scope="decide", by="ann", at=house.time
        )
    )
    bob = Decider("bob", "approver")
    by_ann = replacement(house, recommended_by="ann")
    by_token = house.add(by_ann, "reboot", recommended_by="token ci")
    anns_token = Decider("token ci", "approver", "ann")
    for order, who in ((by_ann, ANN), (by_ann, anns_token), (by_token, ANN)):
        with pytest.raises(Problem, match="asked for it") as refused:
            house.approve(order, who)
        assert refused.value.status == 403
    assert house.approve(by_ann, bob).status == "approved"
    cordon = house.waiting()[node_name(0)]
    assert cordon.recommended_by != "ann"


def test_one_pair_of_eyes_where_the_policy_says_so(house: House) -> None:
    order = replacement(house, recommended_by="ann")
    house.limit(four_eyes=False)
    assert house.approve(order, ANN).status == "approved"


def test_limits_are_changed_once_and_every_change_is_written_down(house: House) -> None:
    after, said = policy.change(house.context, {"max_nodes": 5}, "assumed", "root")
    assert (after.name, after.max_nodes) == ("1", 5)
    assert len(said) == 1
    with pytest.raises(Problem, match="version assumed then, version 1 now") as stale:
        policy.change(house.context, {"max_nodes": 6}, "assumed", "eve")
    assert stale.value.code == "policy_changed"
    with pytest.raises(Problem, match="between") as bad:
        policy.change(house.context, {"max_nodes": 0}, "1", "root")
    assert bad.value.field == "max_nodes"
    assert policy.change(house.context, {"max_nodes": 5}, "1", "root") == (after, ())
    with house.context.store.reading() as connection:
        found = rail_policy.in_force(connection)
    assert (found.policy, found.changed_by) == (after, "root")
    assert house.verbs().count("policy.changed") == 1


def test_a_comment_is_kept_once_and_stays_after_the_decision(house: House) -> None:
    house.suspect(0)
    cordon = house.waiting()[node_name(0)]
    assert comment(house.context, cordon.id, ALICE, " vendor says wait ")
    assert not comment(house.context, cordon.id, ALICE, "vendor says wait")
    house.approve(cordon)
    assert comment(house.context, cordon.id, ANN, "done")
    with house.context.store.reading() as connection:
        said = proposal_comments.of_proposal(connection, cordon.id)
    assert [(one.author, one.text) for one in said] == [
        ("alice", "vendor says wait"),
        ("ann", "done"),
    ]
    with pytest.raises(Problem, match="needs the role operator"):
        comment(house.context, cordon.id, Decider("eve", "viewer"), "hm")
    with pytest.raises(Problem, match="needs words"):
        comment(house.context, cordon.id, ANN, " ")
