"""Are many proposals decided at once, each by itself, and is what would happen told before?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.actions.batch import Picked, attempt, decide_together
from app.actions.decide import Choice, Decider, decide
from app.errors import Problem
from app.store import batches
from app.store.proposals import Proposal
from tests.approvals.house import ALICE, ANN, House, named, node_name, placed

YES = Choice("approved", 0, "bad batch of machines")


def picked(house: House, rows: list[Proposal]) -> list[Picked]:
    """Pick proposals on what is known now."""
    return [Picked(one.id, house.evidence_of(one)) for one in rows]


def replacements(house: House, number: int) -> list[Proposal]:
    """Give replacements that wait, one a node."""
    house.read_fleet()
    house.suspect(*range(number))
    waiting = house.waiting()
    return [house.add(waiting[node_name(n)], "replace") for n in range(number)]


def test_of_27_the_limits_let_22_through_and_each_is_told(house: House) -> None:
    rows = replacements(house, 27)
    house.limit(
        max_nodes=22, max_share=1, max_destroyed_share=1, max_per_group=40, max_per_zone=40,
        max_per_hour=40, max_per_domain=8,
    )  # fmt: skip
    trial = attempt(house.context, picked(house, rows), ANN, YES)
    assert Counter(one.code for one in trial.members) == {None: 22, "max_nodes": 5}
    assert {house.row(one).status for one in rows} == {"proposed"}, "a trial keeps nothing"
    uses = {one.before.code: (one.before.used, one.after.used) for one in trial.uses}
    assert uses["max_nodes"] == (0, 22)
    assert uses["max_destroyed_share"] == (0, 22)
    done = decide_together(house.context, picked(house, rows), ANN, YES)
    assert (done.asked, done.kept) == (27, 22)
    held = [one for one in done.members if not one.kept]
    assert {one.code for one in held} == {"max_nodes"}
    assert all("22 of at most 22" in one.words for one in held)
    after = [house.row(one) for one in rows]
    assert Counter(one.status for one in after) == {"approved": 22, "proposed": 5}
    assert {one.batch_id for one in after if one.status == "approved"} == {done.id}
    with house.context.store.reading() as connection:
        assert batches.get(connection, done.id) == done
    assert house.verbs().count("batch.approved") == 1
    assert house.verbs().count("proposal.approved") == 22


def test_members_that_moved_meanwhile_are_told_one_by_one(house: House) -> None:
    house.read_fleet()
    house.suspect(0, 1, 2, 3)
    rows = [house.waiting()[node_name(number)] for number in range(4)]
    chosen = picked(house, rows)
    decide(house.context, rows[0].id, ALICE, Choice("rejected", chosen[0].evidence_version))
    house.post(placed(40, "moe", house.time), named([1], 50, "moe", house.time))
    missing = Picked(12345, 1)
    done = decide_together(house.context, [*chosen, missing], ALICE, YES)
    assert [(one.kept, one.code) for one in done.members] == [
        (False, "already_decided"),
        (False, "evidence_changed"),
        (True, None),
        (True, None),
        (False, "not_found"),
    ]
    assert "rejected" in done.members[0].words


def test_roles_rights_and_eyes_hold_for_each_member(house: House) -> None:
    order, *_ = replacements(house, 1)
    mine = house.add(order, "reboot", recommended_by="ann")
    cordon = house.waiting()[node_name(0)]
    chosen = picked(house, [order, mine, cordon])
    done = decide_together(house.context, chosen, ALICE, YES)
    assert [one.code for one in done.members] == ["forbidden", "forbidden", None]
    house.ends(cordon, "verified", "ours")
    chosen = picked(house, [mine, order])
    done = decide_together(house.context, chosen, ANN, YES, lambda one: one.action != "replace")
    assert [one.code for one in done.members] == ["forbidden", "forbidden"]


def test_a_batch_is_rejected_while_the_limits_are_used_up(house: House) -> None:
    house.limit(max_nodes=1, max_per_hour=1, max_per_day=1)
    house.suspect(*range(5))
    rows = list(house.waiting().values())
    no = Choice("rejected", 0, "software")
    done = decide_together(house.context, picked(house, rows), ALICE, no)
    assert (done.asked, done.kept) == (5, 5)


@pytest.mark.parametrize("wrong", ["none", "twice", "too many"])
def test_a_batch_that_cannot_be_is_refused(house: House, wrong: str) -> None:
    one = Picked(1, 1)
    chosen = {"none": [], "twice": [one, one], "too many": [Picked(n, 1) for n in range(201)]}
    with pytest.raises(Problem) as refused:
        decide_together(house.context, chosen[wrong], ANN, YES)
    assert (refused.value.status, refused.value.field) == (422, "members")


def test_two_batches_at_once_never_take_more_than_there_is(
    make_house: Callable[..., House],
) -> None:
    house = make_house()
    house.read_fleet()
    house.limit(max_nodes=7)
    house.suspect(*range(20))
    rows = [house.waiting()[node_name(number)] for number in range(20)]
    chosen = picked(house, rows)
    second = house.another()
    bob = Decider("bob", "operator")
    try:
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(decide_together, house.context, chosen[:14], ALICE, YES)
            two = pool.submit(decide_together, second, chosen[6:][::-1], bob, YES)
            done = [one.result(), two.result()]
    finally:
        second.store.close()
    assert sum(one.kept for one in done) == 7
    decided = Counter(house.row(one).status for one in rows)
    assert decided == {"approved": 7, "proposed": 13}
