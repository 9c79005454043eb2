"""Is a machine replaced once, seen to be replaced, and never said to be before it is?"""

from __future__ import annotations

import pytest

from app.cluster.label_orders import HEALTH_STATUS, PENDING_REBOOT
from app.store import machine_links, proposals
from tests.doubles.sagemaker import Fault, throttled
from tests.orders.conftest import MakeYard
from tests.orders.yard import CLUSTER, Yard, instance

REPLACE = "BatchReplaceClusterNodes"


def test_a_replacement_is_followed_until_the_new_node_is_ready(
    make_yard_on_each: MakeYard,
) -> None:
    yard = make_yard_on_each()
    sent = yard.run(yard.approve("replace", 2))
    assert sent.status == "accepted", sent.outcome
    yard.pass_time(5)
    assert yard.row(sent.id).status == "waiting"
    yard.pass_time(60)
    done = yard.row(sent.id)
    assert done.status == "verified", done.outcome
    (link,) = _links(yard, sent.id)
    assert link.old_instance_id == instance(2)
    assert link.new_node == f"hyperpod-{link.new_instance_id}"
    assert link.new_instance_id in str(done.outcome)
    assert len(yard.sagemaker.calls) == 1
    assert yard.verbs(sent)[-1] == "proposal.verified"
    with yard.context.store.reading() as connection:
        assert machine_links.line(connection, CLUSTER, link.new_instance_id) == (link,)


def test_what_waits_for_the_old_machine_is_taken_back(yard: Yard) -> None:
    sent = yard.run(yard.approve("replace", 2))
    waiting = {number: yard.approve("reboot", number) for number in (2, 3)}
    for one in waiting.values():
        yard.context.store.write(
            lambda c, one=one: proposals.move(c, one.id, ("approved",), {"status": "proposed"})  # type: ignore[misc]
        )
    yard.pass_time(60)
    assert yard.row(sent.id).status == "verified"
    assert yard.row(waiting[2].id).status == "superseded"
    assert yard.row(waiting[3].id).status == "proposed"


@pytest.mark.parametrize("keeps", [True, False])
def test_the_link_is_found_with_and_without_a_logical_id(make_yard: MakeYard, keeps: bool) -> None:
    yard = make_yard(keeps_logical_id=keeps, continuous=keeps)
    sent = yard.run(yard.approve("replace", 1))
    yard.pass_time(60)
    (link,) = _links(yard, sent.id)
    assert link.how == ("logical_id" if keeps else "only_new_one")


def test_two_at_once_are_not_mistaken_for_each_other(make_yard: MakeYard) -> None:
    yard = make_yard(keeps_logical_id=True)
    sent = [yard.run(yard.approve("replace", number)) for number in (1, 2)]
    yard.pass_time(60)
    for one, number in zip(sent, (1, 2), strict=True):
        (link,) = _links(yard, one.id)
        assert link.old_instance_id == instance(number)
    assert len({_links(yard, one.id)[0].new_instance_id for one in sent}) == 2


def test_two_at_once_that_nothing_tells_apart_wait_for_a_person(make_yard: MakeYard) -> None:
    yard = make_yard(keeps_logical_id=False, continuous=False)
    sent = [yard.run(yard.approve("replace", number)) for number in (1, 2)]
    yard.pass_time(120)
    for one in sent:
        row = yard.row(one.id)
        assert row.status == "waiting"
        assert "No machine is known yet to have taken its place" in str(row.details["standing"])
        assert row.details["stuck_since"]
        assert "proposal.stuck" in yard.verbs(one)
        assert not _links(yard, one.id)


def test_with_karpenter_nothing_comes_back_and_nobody_waits_for_it(make_yard: MakeYard) -> None:
    yard = make_yard(autoscaler="Karpenter")
    sent = yard.run(yard.approve("replace", 3))
    yard.pass_time(30)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert "nothing comes back by itself" in str(done.outcome)


def test_on_slurm_the_new_machine_keeps_the_host_name(make_yard: MakeYard) -> None:
    yard = make_yard(orchestrator="Slurm", keeps_logical_id=False, continuous=False)
    sent = yard.run(yard.approve("replace", 4))
    yard.pass_time(60)
    done = yard.row(sent.id)
    assert done.status == "verified", done.details
    assert _links(yard, sent.id)[0].how == "same_name"


def test_what_the_platform_does_already_is_not_ordered_again(yard: Yard) -> None:
    yard.sagemaker.platform_replaces(instance(2))
    sent = yard.run(yard.approve("replace", 2))
    assert sent.status == "waiting"
    assert "Already under way" in str(sent.outcome)
    assert yard.sagemaker.calls == []
    yard.pass_time(60)
    assert yard.row(sent.id).status == "verified"
    assert _links(yard, sent.id)[0].old_instance_id == instance(2)


def test_a_platform_that_was_faster_by_a_moment_is_no_error(yard: Yard) -> None:
    reply = {"Failed": [_failed(2, "InvalidInstanceStatus")]}
    yard.sagemaker.answer_with(REPLACE, {"status": 200, "body": reply})
    proposal = yard.approve("replace", 2)
    # The label comes between our look and the order.
    yard.sagemaker.before_time_passes(lambda: None)
    kubernetes = yard.kubernetes
    calls: list[str] = []
    original = yard.context.providers[CLUSTER].replace

    def overtaken(ids: list[str]) -> object:
        calls.extend(ids)
        yard.sagemaker.platform_replaces(instance(2))
        return original(ids)

    object.__setattr__(yard.context.providers[CLUSTER], "replace", overtaken)
    sent = yard.run(proposal)
    assert calls == [instance(2)]
    assert sent.status == "waiting", sent.outcome
    assert "Already under way" in str(sent.outcome)
    assert kubernetes.calls == []


def test_a_machine_that_is_gone_is_gone_for_good(yard: Yard) -> None:
    proposal = yard.approve("replace", 2)
    yard.sagemaker.cluster.nodes.pop(instance(2))
    yard.kubernetes.remove(f"hyperpod-{instance(2)}")
    sent = yard.run(proposal)
    assert sent.status == "gone"
    assert "gone" in str(sent.outcome)
    before = len(yard.sagemaker.requests)
    yard.pass_time(5, step=1)
    assert len(yard.sagemaker.requests) == before


@pytest.mark.parametrize(
    ("code", "status", "retry"),
    [
        ("InstanceIdNotFound", "gone", False),
        ("InvalidInstanceStatus", "refused", False),
        ("InstanceIdInUse", "waiting", False),
        ("InternalServerError", "failed", True),
    ],
)
def test_each_refusal_under_http_200_is_what_it_is(
    yard: Yard, code: str, status: str, retry: bool
) -> None:
    reply = {"Failed": [_failed(3, code)]}
    yard.sagemaker.answer_with(REPLACE, {"status": 200, "body": reply})
    sent = yard.run(yard.approve("replace", 3))
    assert sent.status == status, sent.outcome
    assert ("retry" in sent.details) == retry
    assert len(yard.sagemaker.calls) == 1


@pytest.mark.parametrize("how", ["reset", "status", "throttled"])
def test_an_order_whose_answer_is_lost_is_found_by_looking_and_never_sent_twice(
    yard: Yard, how: str
) -> None:
    faults = {
        "reset": Fault(REPLACE, reset=True, after=True, times=1),
        "status": Fault(REPLACE, status=500, after=True, times=1),
        "throttled": throttled(REPLACE, after=True, status=503, times=1),
    }
    yard.sagemaker.set_fault(faults[how])
    sent = yard.run(yard.approve("replace", 1))
    assert sent.status == "unknown", sent.outcome
    yard.pass_time(90)
    done = yard.row(sent.id)
    assert done.status == "verified", done.details
    assert len(yard.sagemaker.calls) == 1


def test_an_order_that_never_arrived_stays_unknown_until_a_person_decides(yard: Yard) -> None:
    yard.sagemaker.set_fault(Fault(REPLACE, reset=True, times=1))
    sent = yard.run(yard.approve("replace", 1))
    assert sent.status == "unknown"
    yard.pass_time(180, step=15)
    row = yard.row(sent.id)
    assert row.status == "unknown"
    assert "is still there: Running" in str(row.details["standing"])
    assert len(yard.sagemaker.calls) == 1


def test_the_label_is_only_set_where_somebody_acts_on_it(make_yard: MakeYard) -> None:
    yard = make_yard(node_recovery="None")
    sent = yard.run(yard.approve("replace", 1, way="label"))
    assert sent.status == "refused"
    assert "automatic node recovery is None" in str(sent.outcome)
    assert yard.kubernetes.calls == []


def test_a_replacement_by_label_is_seen_like_any_other(yard: Yard) -> None:
    sent = yard.run(yard.approve("replace", 1, way="label"))
    assert sent.status == "accepted", sent.outcome
    assert len(yard.kubernetes.changes()) == 1
    yard.pass_time(90)
    assert yard.row(sent.id).status == "verified"
    assert yard.sagemaker.calls == []


def test_another_machine_than_the_one_approved_is_left_alone(yard: Yard) -> None:
    proposal = yard.approve("replace", 2)
    yard.sagemaker.node(instance(2)).logical_id = "node-other"
    sent = yard.run(proposal)
    assert sent.status == "refused"
    assert "Another machine than the one approved" in str(sent.outcome)
    assert yard.sagemaker.calls == []


def test_a_replacement_that_fails_to_come_up_is_said_to_have_failed(make_yard: MakeYard) -> None:
    yard = make_yard(replacement_fails=True)
    sent = yard.run(yard.approve("replace", 2))
    yard.pass_time(60)
    row = yard.row(sent.id)
    assert row.status == "failed"
    assert "took its place, and failed" in str(row.outcome)


def _failed(number: int, code: str) -> dict[str, str]:
    return {"NodeId": instance(number), "ErrorCode": code, "Message": "as the test asked"}


def _links(yard: Yard, proposal_id: int) -> tuple[machine_links.MachineLink, ...]:
    with yard.context.store.reading() as connection:
        return machine_links.of_proposal(connection, proposal_id)


def test_a_reboot_that_the_platform_was_faster_with_is_no_refusal(yard: Yard) -> None:
    reply = {"Failed": [_failed(2, "InvalidInstanceStatus")]}
    yard.sagemaker.answer_with("BatchRebootClusterNodes", {"status": 200, "body": reply})
    port = yard.context.providers[CLUSTER]
    original = port.reboot

    def overtaken(ids: list[str]) -> object:
        yard.kubernetes.change(
            f"hyperpod-{instance(2)}",
            lambda obj: obj["metadata"]["labels"].update({HEALTH_STATUS: PENDING_REBOOT}),
        )
        return original(ids)

    object.__setattr__(port, "reboot", overtaken)
    sent = yard.run(yard.approve("reboot", 2))
    assert sent.status == "waiting", sent.outcome
    assert "Already under way" in str(sent.outcome)
