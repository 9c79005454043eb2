"""Does each rail refuse what it is there for, at the decision and again before sending?"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from app.actions import brakes, rails, vetoes
from app.actions.decide import Choice, decide
from app.actions.undo import undo
from app.errors import Problem
from app.store import held_nodes, node_places, proposals
from app.store.proposals import Proposal
from tests.approvals.house import ADMIN, ALICE, ANN, CLUSTER, House, named, node_name, placed


def refusal(house: House, proposal: Proposal) -> str | None:
    """Approve; give the code of what refused it, None where it was approved."""
    try:
        house.approve(proposal)
    except Problem as problem:
        code, words = problem.code, problem.message
    else:
        return None
    assert house.row(proposal).status == "proposed"
    assert "Nothing was approved." in words
    return code


def before_sending(house: House, proposal: Proposal) -> str | None:
    """Ask as a worker that claims the row does."""
    with house.context.store.reading() as connection:
        found = proposals.get(connection, proposal.id)
        assert found is not None
        rail = rails.before_sending(connection, found, house.time)
    return None if rail is None else rail.code


def cordoned(house: House, *numbers: int) -> list[Proposal]:
    """Cordon some nodes through all rails, proven by reading."""
    house.suspect(*numbers)
    found = [house.waiting()[node_name(number)] for number in numbers]
    for one in found:
        assert refusal(house, one) is None
        house.ends(one, "verified", "ours")
    return found


@pytest.mark.parametrize(
    ("limit", "fleet", "code"),
    [
        ({"max_nodes": 2}, 40, "max_nodes"),
        ({"max_per_hour": 2}, 40, "max_per_hour"),
        ({"max_per_day": 2, "max_per_hour": 2}, 40, "max_per_hour"),
        ({"max_per_group": 2}, 40, "max_per_group"),
        ({"max_per_zone": 2}, 40, None),  # nodes 0 and 2 are in zone0, node 1 is not
        ({"max_per_domain": 2}, 40, "max_per_domain"),
        ({"max_share": 0.1, "max_destroyed_share": 0.1}, 8, None),  # a share allows four at least
        ({}, 40, None),
    ],
)
def test_the_third_cordon_meets_each_cap(
    house: House, limit: dict[str, Any], fleet: int, code: str | None
) -> None:
    house.read_fleet(fleet)
    house.limit(**limit)
    cordoned(house, 0, 1)
    house.suspect(2)
    assert refusal(house, house.waiting()[node_name(2)]) == code


def test_a_day_forgets_an_hour_and_a_lifted_cordon_frees_its_place(house: House) -> None:
    house.read_fleet()
    house.limit(max_nodes=2, max_per_hour=2, max_per_day=3)
    first, _ = cordoned(house, 0, 1)
    house.suspect(2, 3)
    third, fourth = house.waiting()[node_name(2)], house.waiting()[node_name(3)]
    assert refusal(house, third) == "max_nodes"
    house.context.store.write(lambda c: _note(c, first, house))
    assert refusal(house, third) == "max_per_hour"
    house.wait(minutes=61)
    assert refusal(house, third) is None
    house.ends(third, "refused")
    assert refusal(house, fourth) is None, "what was refused uses nothing up"


def _note(connection: Any, proposal: Proposal, house: House) -> None:
    assert proposal.node_id is not None
    held_nodes.note(connection, proposal.node_id, None, "none", house.time)


def test_what_others_took_out_counts_for_the_share(house: House) -> None:
    out = {f"n{number}": {"out": "other"} for number in range(10, 19)}
    house.read_fleet(40, **out)
    house.suspect(0, 1)
    assert refusal(house, house.waiting()[node_name(0)]) is None
    assert refusal(house, house.waiting()[node_name(1)]) == "max_share"


def test_what_destroys_waits_until_the_fleet_is_known(house: House) -> None:
    cordoned(house, 0)
    replace = house.add(house.row(cordon_of(house, 0)), "replace")
    # Nothing is configured for this cluster, so it is read as a dry run: nothing can be sent.
    assert refusal(house, replace) is None
    with house.context.store.reading() as connection:
        fleet = node_places.fleet(connection, CLUSTER)
    assert fleet is not None
    assert fleet.source == "dry run"
    assert before_sending(house, replace) is None
    house.read_fleet()
    house.wait(hours=25)
    assert before_sending(house, replace) == "stale_approval"


def cordon_of(house: House, number: int) -> Proposal:
    """Find the cordon of a node, however it stands."""
    with house.context.store.reading() as connection:
        newest = proposals.newest_action_on_node(connection, CLUSTER, node_name(number))
    assert newest is not None
    return newest


def test_few_are_destroyed_at_one_time(house: House) -> None:
    house.read_fleet()
    cordons = cordoned(house, 0, 1, 2, 3, 4)
    orders = [house.add(one, "replace") for one in cordons]
    for one in orders[:4]:
        assert refusal(house, one) is None
        house.ends(one, "waiting")
    assert refusal(house, orders[4]) == "max_destroyed_share"
    assert "4 of at most 4 of the cluster’s 40 GPU nodes" in said(house, orders[4])


def said(house: House, proposal: Proposal) -> str:
    """Give the words of the rail in the way."""
    with house.context.store.reading() as connection:
        rail = rails.in_the_way(connection, proposal, house.time)
    assert rail is not None
    return rail.message


def test_a_node_rests_after_something_destroyed_it(house: House) -> None:
    house.read_fleet()
    (cordon,) = cordoned(house, 0)
    first = house.add(cordon, "deep_health_check")
    assert refusal(house, first) is None
    second = house.add(cordon, "replace")
    assert refusal(house, second) == "node_busy"
    house.ends(first, "verified")
    house.wait(minutes=10)
    assert refusal(house, second) == "cooldown"
    house.wait(minutes=20)
    assert refusal(house, second) is None


def test_attempts_are_counted_over_their_time(house: House) -> None:
    house.read_fleet()
    house.limit(attempts=2, cooldown_minutes=0)
    (cordon,) = cordoned(house, 0)
    for _ in range(2):
        order = house.add(cordon, "reboot")
        assert refusal(house, order) is None
        house.ends(order, "failed")
        house.wait(minutes=1)
    third = house.add(cordon, "reboot")
    assert refusal(house, third) == "attempts"
    house.wait(hours=25)
    house.read_fleet()
    assert refusal(house, third) is None


def test_one_action_a_machine_also_under_another_name(house: House) -> None:
    house.read_fleet()
    house.suspect(0)
    cordon = house.waiting()[node_name(0)]
    renamed = house.add(cordon, "replace", node_name="renamed")
    assert refusal(house, cordon) is None
    assert refusal(house, renamed) == "node_busy"


def test_a_veto_holds_by_name_and_by_instance_until_its_end(house: House) -> None:
    house.read_fleet()
    house.suspect(0)
    cordon = house.waiting()[node_name(0)]
    until = house.time + timedelta(hours=2)
    veto = vetoes.forbid(house.context, CLUSTER, node_name(0), ALICE, "bring-up", until=until)
    assert refusal(house, cordon) == "veto"
    assert "alice forbids to touch" in said(house, cordon)
    assert refusal(house, house.add(cordon, "replace", node_name="renamed")) == "veto"
    with pytest.raises(Problem, match="already"):
        vetoes.forbid(house.context, CLUSTER, node_name(0), ANN, "me too")
    house.wait(hours=3)
    assert before_sending(house, house.approve(cordon)) is None
    vetoes.forbid(house.context, CLUSTER, node_name(0), ANN, "wait for the vendor")
    assert before_sending(house, cordon) == "veto"
    with pytest.raises(Problem, match="needs the role operator"):
        vetoes.lift(house.context, veto.id, type(ALICE)("eve", "viewer"), "x")


@pytest.mark.parametrize("why", ["a control-plane node", "a system node"])
def test_protected_nodes_are_never_touched(house: House, why: str) -> None:
    house.read_fleet(40, n0={"protected": f"It is {why}: it is never changed from here."})
    house.suspect(0)
    assert refusal(house, house.waiting()[node_name(0)]) == "protected"


def test_what_changed_after_the_approval_is_not_sent(house: House) -> None:
    house.read_fleet()
    house.suspect(0, 1, 2)
    cordons = [house.approve(one) for one in house.waiting().values()]
    assert [before_sending(house, one) for one in cordons] == [None, None, None]
    house.limit(max_nodes=2)
    assert before_sending(house, cordons[0]) == "max_nodes"
    house.limit(max_nodes=9)
    house.post(*_second_alarm(house))
    codes = {one.node_name: before_sending(house, one) for one in cordons}
    assert codes[node_name(0)] == "evidence_changed"
    assert codes[node_name(1)] is None
    house.wait(minutes=16)
    assert before_sending(house, cordons[1]) == "stale_approval"


def _second_alarm(house: House) -> list[dict[str, Any]]:
    return [placed(40, "moe", house.time), named([0], 50, "moe", house.time)]


def test_undoing_passes_every_rail(house: House) -> None:
    house.read_fleet()
    (cordon,) = cordoned(house, 0)
    house.limit(max_nodes=1, max_per_hour=1, max_per_day=1, attempts=1)
    vetoes.forbid(house.context, CLUSTER, node_name(0), ANN, "hands off")
    brakes.set_by_hand(house.context, True, "stop", "ann")
    lifted = undo(house.context, cordon.id, ALICE, "a mistake")
    house.wait(days=30)
    assert before_sending(house, lifted) is None


def test_undoing_takes_back_what_is_approved_and_unsent(house: House) -> None:
    house.read_fleet()
    (cordon,) = cordoned(house, 0)
    replace = house.approve(house.add(cordon, "replace"))
    undo(house.context, cordon.id, ALICE, "a mistake")
    after = house.row(replace)
    assert after.status == "superseded"
    assert "alice lifts the cordon" in (after.outcome or "")


def test_a_rejection_is_never_held_back(house: House) -> None:
    house.read_fleet()
    house.limit(max_nodes=1, max_per_hour=1, max_per_day=1)
    cordoned(house, 0)
    house.suspect(1, 2)
    one, two = house.waiting()[node_name(1)], house.waiting()[node_name(2)]
    vetoes.forbid(house.context, CLUSTER, node_name(1), ANN, "hands off")
    brakes.set_by_hand(house.context, True, "stop", "ann")
    done = decide(house.context, one.id, ALICE, Choice("rejected", house.evidence_of(one)))
    assert done.status == "rejected"
    # New evidence does not hold a no up either: what is known now is proposed anew.
    decide(house.context, two.id, ALICE, Choice("rejected", house.evidence_of(two) - 1))
    again = house.waiting()[node_name(2)]
    assert again.ordinal == two.ordinal + 1


def test_of_two_processes_one_takes_the_last_place(make_house: Callable[..., House]) -> None:
    house = make_house()
    house.read_fleet()
    house.limit(max_nodes=3)
    house.suspect(*range(12))
    rows = list(house.waiting().values())
    second = house.another()
    try:
        contexts = [house.context, second]
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda n: _try(contexts[n % 2], rows[n], house), range(12)))
    finally:
        second.store.close()
    assert sorted(done) == ["approved"] * 3 + ["max_nodes"] * 9
    assert sum(house.row(one).status == "approved" for one in rows) == 3


def _try(context: Any, proposal: Proposal, house: House) -> str:
    choice = Choice("approved", house.evidence_of(proposal))
    try:
        return decide(context, proposal.id, ADMIN, choice).status
    except Problem as problem:
        return problem.code
