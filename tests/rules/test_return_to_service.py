"""What must be true before a suspect works again, and is "not known" never taken for true?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.return_to_service import (
    Facts,
    Item,
    Probation,
    Replacement,
    Replayed,
    TestDone,
    Watch,
    checklist,
)

CLEAN = Replayed(20, 0, 2)
PASSED = TestDone("Deep health check", "passed", 0.25, counts=True)


def item(code: str, **facts: object) -> Item:
    """Give one item of the list for some facts."""
    given_facts = Facts(**{"uuid_known": True, **facts})  # type: ignore[arg-type]
    return next(one for one in checklist(given_facts).items if one.code == code)


@pytest.mark.parametrize(
    ("replays", "state"),
    [
        ((), "not known"),
        ((CLEAN,), "true"),
        ((Replayed(19, 0, 2),), "not known"),
        ((Replayed(19, 0, 2), Replayed(19, 0, 2)), "not known"),
        ((Replayed(40, 0, 1),), "not known"),
        ((CLEAN, Replayed(20, 1, 2)), "false"),
        ((Replayed(1, 1, 0),), "false"),
    ],
)
def test_replays(replays: tuple[Replayed, ...], state: str) -> None:
    found = item("replays", replays=replays)
    assert found.state == state
    if state == "true":
        assert "15%" in found.proves_not, "twenty clean replays bound a rate at 15 %, no lower"


@pytest.mark.parametrize(
    ("tests", "state", "said"),
    [
        ((), "not known", "No test was run"),
        ((PASSED,), "true", "25%"),
        ((TestDone("Deep health check", "passed", 0.25, counts=False),), "not known", "before"),
        ((TestDone("Targeted audit", "passed", None, counts=True),), "not known", "how much"),
        ((TestDone("Deep health check", "stuck", 0.25, counts=True),), "not known", "stuck"),
        ((PASSED, TestDone("Targeted audit", "failed", None, counts=True)), "false", "failed"),
    ],
)
def test_tests(tests: tuple[TestDone, ...], state: str, said: str) -> None:
    found = item("test", tests=tests)
    assert found.state == state
    assert said in found.why


@pytest.mark.parametrize(
    ("probation", "released", "state"),
    [
        (None, False, "not known"),
        (None, True, "not known"),
        (Probation("open", 0, 20, "later"), True, "not known"),
        (Probation("taken", 20, 20, "later"), True, "not known"),
        (Probation("passed", 20, 20, "now"), True, "true"),
        (Probation("expired", 3, 20, "now"), True, "not known"),
        (Probation("alarmed", 3, 20, "now"), True, "false"),
    ],
)
def test_probation(probation: Probation | None, released: bool, state: str) -> None:
    assert item("probation", probation=probation, released=released).state == state


def test_watch() -> None:
    assert item("watch").state == "not known"
    assert item("watch", watch=Watch(89, 90, alarmed=False)).state == "not known"
    assert item("watch", watch=Watch(90, 90, alarmed=False)).state == "true"
    assert item("watch", watch=Watch(90, 90, alarmed=True)).state == "false"
    assert item("watch", uuid_known=False).state == "false"


def test_a_new_machine_is_asked_about_its_gpus() -> None:
    assert item("new_gpus", replacement=Replacement("i-1", None)).state == "not known"
    assert item("new_gpus", replacement=Replacement("i-1", 8)).state == "true"
    assert item("new_gpus", replacement=Replacement("i-1", 8, 1)).state == "false"
    codes = [one.code for one in checklist(Facts(True, replacement=Replacement("i-1", 8))).items]
    assert codes == ["new_gpus", "test", "probation", "watch"]


def test_a_reboot_is_no_repair() -> None:
    rebooted = checklist(Facts(True, rebooted=True))
    assert any("no repair" in one for one in rebooted.remarks)
    assert rebooted.items == checklist(Facts(True)).items
    assert checklist(Facts(True)).remarks == ()


def test_the_sum_is_as_good_as_its_worst_item() -> None:
    assert checklist(Facts(True)).before_release == "not known"
    assert checklist(Facts(True, replays=(CLEAN,))).before_release == "not known"
    assert checklist(Facts(True, replays=(CLEAN,), tests=(PASSED,))).before_release == "true"
    wrong = Facts(True, replays=(Replayed(20, 20, 2),), tests=(PASSED,))
    assert checklist(wrong).before_release == "false"
    assert any("no test outweighs" in one for one in checklist(wrong).remarks)


@given(
    st.lists(
        st.builds(Replayed, st.integers(1, 40), st.just(0), st.integers(0, 3)), max_size=4
    ).map(tuple),
    st.lists(
        st.builds(
            TestDone,
            st.sampled_from(["Deep health check", "Targeted audit"]),
            st.sampled_from(["passed", "failed", "running", "inconclusive", "stuck"]),
            st.none() | st.floats(0, 0.99),
            st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    st.booleans(),
)
def test_nothing_is_true_without_its_ground(
    replays: tuple[Replayed, ...], tests: tuple[TestDone, ...], uuid_known: bool
) -> None:
    found = {one.code: one for one in checklist(Facts(uuid_known, replays, tests)).items}
    enough = any(one.replays >= 20 and one.witnesses >= 2 for one in replays)
    assert (found["replays"].state == "true") is enough
    good = any(one.result == "passed" and one.counts and one.recall is not None for one in tests)
    failed = any(one.result == "failed" for one in tests)
    assert (found["test"].state == "true") is (good and not failed)
    assert all(one.why and one.title for one in found.values())
