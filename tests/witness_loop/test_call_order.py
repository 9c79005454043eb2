"""Is a loop told plainly when it calls the guard in an order that means nothing?"""

from __future__ import annotations

import re

import pytest

from witness.ddp.call_order import CallOrder, CallOrderError


@pytest.fixture
def order() -> CallOrder:
    return CallOrder(start_step=5)


def take(order: CallOrder, step: int) -> None:
    with order.forward(step):
        pass
    order.inspected()
    order.updated()


def refused(words: str) -> pytest.RaisesExc[CallOrderError]:
    return pytest.raises(CallOrderError, match=re.escape(words))


def test_steps_go_on_and_may_leave_some_out(order: CallOrder) -> None:
    for step in (5, 6, 9):
        take(order, step)
    assert (order.step, order.done, order.applied) == (9, 9, 9)


def test_a_framework_may_leave_out_the_last_call(order: CallOrder) -> None:
    with order.forward(5):
        pass
    order.inspected()
    take(order, 6)


def test_an_update_without_a_forward_is_refused(order: CallOrder) -> None:
    with refused("forward(step) comes before update(loss)"):
        order.inspected()
    take(order, 5)
    with refused("forward(step) comes before update(loss)"):
        order.inspected()


def test_an_update_inside_the_forward_block_is_refused(order: CallOrder) -> None:
    with refused("leave its block first"), order.forward(5):
        order.inspected()


def test_a_second_forward_before_the_update_is_refused(order: CallOrder) -> None:
    with order.forward(5):
        pass
    with refused("all micro-batches of a step run inside one forward()"), order.forward(5):
        pass


def test_steps_that_go_back_are_refused_until_told(order: CallOrder) -> None:
    take(order, 7)
    for earlier in (7, 6):
        with refused("steps only go on"), order.forward(earlier):
            pass
    order.go_on(6)
    take(order, 6)
    with refused("steps only go on"), CallOrder(start_step=5).forward(4):
        pass


def test_a_step_whose_body_failed_may_be_tried_again(order: CallOrder) -> None:
    with pytest.raises(MemoryError), order.forward(5):
        raise MemoryError
    take(order, 5)


def test_what_belongs_between_steps_is_refused_inside_one(order: CallOrder) -> None:
    order.between_steps("check_loaded()")
    with order.forward(5):
        pass
    with refused("check_loaded() belongs between steps"):
        order.between_steps("check_loaded()")


def test_after_an_alarm_every_step_is_refused_until_told_to_go_on(order: CallOrder) -> None:
    take(order, 5)
    order.stop("compute, step 5")
    with refused("compute, step 5"), order.forward(6):
        pass
    with refused("call go_on(step)"):
        order.between_steps("check_weights()")
    order.go_on(3)
    assert (order.step, order.done) == (3, 2)
    take(order, 3)


def test_an_update_that_was_not_checked_is_refused(order: CallOrder) -> None:
    with refused("inspect(loss) comes first"):
        order.updated()
