"""May a person say what became of an order that nothing shows, and only of such a one?"""

from __future__ import annotations

import pytest

from app.actions.deciders import Decider
from app.actions.settle import settle
from app.errors import Problem
from tests.doubles.sagemaker import Fault
from tests.orders.yard import Yard

ANN = Decider("ann", "approver")


def test_what_nobody_knows_is_settled_by_a_persons_word_and_never_sent_again(yard: Yard) -> None:
    yard.sagemaker.set_fault(Fault("BatchReplaceClusterNodes", reset=True, times=1))
    sent = yard.run(yard.approve("replace", 1))
    assert sent.status == "unknown"
    after = settle(yard.context, sent.id, ANN, done=False, reason="the vendor saw no order")
    assert after.status == "failed"
    assert "ann says that it was not done: the vendor saw no order" in str(after.outcome)
    yard.pass_time(30, step=10)
    assert yard.row(sent.id).status == "failed"
    assert len(yard.sagemaker.calls) == 1
    assert yard.verbs(sent)[-1] == "proposal.settled"
    with pytest.raises(Problem, match="nothing to settle"):
        settle(yard.context, sent.id, ANN, done=True, reason="again")


def test_what_is_under_way_and_what_destroys_are_not_anybodys_to_settle(yard: Yard) -> None:
    sent = yard.run(yard.approve("replace", 2))
    with pytest.raises(Problem, match="nothing to settle"):
        settle(yard.context, sent.id, ANN, done=True, reason="impatient")
    with pytest.raises(Problem, match="role approver"):
        settle(yard.context, sent.id, Decider("bob", "operator"), done=True, reason="x")
    with pytest.raises(Problem, match="reason"):
        settle(yard.context, sent.id, ANN, done=True, reason=" ")
