"""Does the brake pull itself where machines are not to blame, and does no old queue run after?"""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.actions import brakes, execute
from app.actions.decide import Choice, decide
from app.actions.undo import ask_again
from app.errors import Problem
from app.store import run_settings
from app.store.run_settings import Brake
from tests.approvals.house import ALICE, ANN, START, House, named, placed


def brake(house: House) -> Brake:
    """Read the brake."""
    with house.context.store.reading() as connection:
        return run_settings.brake(connection)


def release(house: House, reason: str = "seen") -> bool:
    """Release it as an administrator does."""
    return brakes.set_by_hand(house.context, False, reason, "root")


def test_half_a_job_named_at_once_pulls_it_with_a_reason(house: House) -> None:
    house.post(named(range(19), 30))
    assert not brakes.look(house.context), "19 of 40 are less than half"
    house.post(named(range(20), 40))
    assert brakes.look(house.context)
    state = brake(house)
    assert (state.pulled, state.changed_by) == (True, "service")
    assert "20 of 40 nodes by one alarm at step 40" in state.reason
    assert not brakes.look(house.context), "it is pulled already"


def test_a_small_job_of_which_half_is_named_pulls_nothing(house: House) -> None:
    house.post(placed(4, "small"), named(range(4), 30, "small"))
    assert not brakes.look(house.context)


def test_one_code_digest_behind_many_cases_pulls_it(house: House) -> None:
    jobs = [f"job-{number}" for number in range(12)]
    for number, job in enumerate(jobs):
        house.post(placed(40, job, code_digest="sha256:abc"))
        house.post(named([number], 30, job, house.time, code_digest="sha256:abc"))
        assert brakes.look(house.context) == (number == 11)
        house.wait(minutes=20)
    assert "behind 12 open cases (sha256:abc)" in brake(house).reason


def test_a_cordon_storm_pulls_it_and_only_new_ones_do_again(house: House) -> None:
    house.limit(brake_storm_nodes=6, brake_storm_minutes=10)
    house.suspect(0, 1, 2, 3, 4)
    assert not brakes.look(house.context)
    house.wait(minutes=11)
    house.suspect(5, 6)
    assert not brakes.look(house.context), "the first five were proposed too long ago"
    house.suspect(7, 8, 9, 10)
    assert brakes.look(house.context)
    assert "cordons of 6 nodes" in brake(house).reason
    assert release(house)
    assert not brakes.look(house.context), "nobody proposed anything since"
    house.wait(minutes=1)
    house.suspect(*range(11, 16))
    assert not brakes.look(house.context)
    house.suspect(16)
    assert brakes.look(house.context), "six new ones are a new storm"


def test_what_a_person_released_it_on_does_not_pull_it_again(house: House) -> None:
    house.post(named(range(20), 30))
    assert brakes.look(house.context)
    assert release(house, "a known bad rack")
    house.wait(minutes=1)
    assert not brakes.look(house.context)
    house.post(named(range(21), 50, at=house.time))
    assert brakes.look(house.context), "another alarm is new evidence"


def test_what_stood_when_it_was_pulled_by_hand_is_seen_as_well(house: House) -> None:
    assert brakes.set_by_hand(house.context, True, "a look first", "ann")
    house.post(named(range(20), 30))
    assert not brakes.look(house.context)
    assert release(house)
    assert not brakes.look(house.context)


def test_pulling_refuses_what_is_approved_and_it_can_be_asked_for_again(house: House) -> None:
    house.read_fleet()
    house.suspect(0, 1)
    first, second = house.waiting().values()
    house.approve(first)
    assert brakes.set_by_hand(house.context, True, "stop it", "ann")
    after = house.row(first)
    assert after.status == "refused"
    assert "stop it" in (after.outcome or "")
    with pytest.raises(Problem, match="brake was pulled by ann"):
        house.approve(second)
    house.wait(minutes=1)
    assert release(house)
    assert not execute.run_one(house.context, first.id, "worker"), "an old queue never runs"
    again = ask_again(house.context, first.id, ALICE)
    assert house.approve(again, ANN).status == "approved"
    verbs = house.verbs()
    assert verbs.index("brake.pulled") < verbs.index("proposal.refused")
    assert "brake.released" in verbs


def test_an_approval_older_than_a_release_is_not_sent(house: House) -> None:
    house.suspect(0)
    (cordon,) = house.waiting().values()
    approved = house.approve(cordon)
    house.wait(minutes=1)

    # A process that was away saw neither the pulling nor the release.
    def unseen(pulled: bool) -> None:
        house.context.store.write(
            lambda c: run_settings.set_brake(c, pulled, "x", by="ann", at=house.time)
        )

    unseen(True)
    unseen(False)
    assert execute.run_one(house.context, approved.id, "worker")
    after = house.row(approved)
    assert after.status == "refused"
    assert "before the brake was pulled" in (after.outcome or "")


def test_a_reason_is_needed_and_a_rejection_goes_through(house: House) -> None:
    with pytest.raises(Problem, match="Say why"):
        brakes.set_by_hand(house.context, True, "  ", "ann")
    house.suspect(0)
    (cordon,) = house.waiting().values()
    brakes.set_by_hand(house.context, True, "stop", "ann")
    choice = Choice("rejected", house.evidence_of(cordon))
    assert decide(house.context, cordon.id, ALICE, choice).status == "rejected"
    assert house.time - START < timedelta(days=1)
