"""Is a deep health check asked for once, for one machine, and never called passed without proof?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.actions import looking
from app.store import hardware_tests, machine_links, proposals
from app.store.hardware_tests import Test
from app.store.proposals import Proposal
from tests.doubles.sagemaker import Fault, throttled
from tests.doubles.sagemaker.platform import CHECK, FAULT_TYPES, HEALTH
from tests.orders.conftest import MakeYard
from tests.orders.yard import Yard, instance

START = "StartClusterHealthCheck"
TEST = "deep_health_check"


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Use one kind of database: what is asked here is what was seen, not how it is kept."""
    return migrated_sqlite_url


def result(yard: Yard, proposal: Proposal) -> Test:
    """Give what the test said, as it is kept beside the alarms."""
    with yard.context.store.reading() as connection:
        (found,) = hardware_tests.of_proposals(connection, [proposal.id])
    return found


def results(yard: Yard, proposal: Proposal) -> list[str]:
    with yard.context.store.reading() as connection:
        return [one.result for one in hardware_tests.of_proposals(connection, [proposal.id])]


def label(yard: Yard, number: int, key: str, text: str) -> None:
    """Put a label on a node, as if it had been there before."""

    def edit(node: dict[str, Any]) -> None:
        node["metadata"]["labels"][key] = text

    yard.kubernetes.change(f"hyperpod-{instance(number)}", edit)


def test_taken_is_not_passed_and_running_is_seen_before_the_result(yard: Yard) -> None:
    sent = yard.run(yard.approve(TEST, 2))
    assert (sent.status, sent.result) == ("accepted", "accepted")
    assert results(yard, sent) == []
    yard.pass_time(5)
    assert yard.row(sent.id).status == "waiting"
    assert result(yard, sent).result == "running"
    yard.pass_time(90, step=15)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert result(yard, sent).result == "passed"
    assert "clears nothing" in str(done.outcome)
    (call,) = yard.sagemaker.calls
    assert call.asked["DeepHealthCheckConfigurations"] == [
        {
            "InstanceGroupName": "gpu",
            "InstanceIds": [instance(2)],
            "DeepHealthChecks": ["InstanceStress"],
        }
    ]


def test_the_checks_are_those_that_were_approved(yard: Yard) -> None:
    wanted = ["InstanceStress", "InstanceConnectivity"]
    sent = yard.run(yard.approve(TEST, 1, checks=wanted))
    (call,) = yard.sagemaker.calls
    assert call.asked["DeepHealthCheckConfigurations"][0]["DeepHealthChecks"] == wanted
    yard.pass_time(5)
    assert result(yard, sent).checks == tuple(wanted)


def test_passed_needs_no_service_that_watched_all_the_time(yard: Yard) -> None:
    sent = yard.run(yard.approve(TEST, 2))
    yard.sagemaker.advance(hours=3)  # nobody looked meanwhile; only the label is there
    looking.look_due(yard.context)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "passed"


def test_a_label_of_an_older_check_is_not_taken_for_a_result(yard: Yard) -> None:
    label(yard, 2, CHECK, "Passed")
    yard.sagemaker.node(instance(2)).busy = True  # it will be passed over
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(30)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert result(yard, sent).result == "inconclusive"
    assert "may have been passed over" in str(done.outcome)


def test_without_a_label_a_machine_that_was_seen_in_progress_and_runs_again_passed(
    make_yard: MakeYard,
) -> None:
    yard = make_yard(orchestrator="Slurm", continuous=False)
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(100, step=15)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "passed"


def test_a_machine_that_fails_and_stays_has_failed(make_yard: MakeYard) -> None:
    yard = make_yard(node_recovery="None")
    yard.sagemaker.node(instance(2)).check_ends = "fail"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(100, step=15)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "failed"


def test_a_failed_machine_that_the_platform_leaves_alone_is_waited_for_and_then_told(
    yard: Yard,
) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "fail"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(80)
    assert yard.row(sent.id).status == "waiting"
    assert result(yard, sent).result == "failed"
    yard.pass_time(60, step=15)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert "has done nothing about it" in str(done.outcome)


def test_a_machine_that_the_platform_replaces_by_itself_is_failed_and_linked(yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "replace"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(76)
    assert yard.row(sent.id).status == "waiting"
    assert result(yard, sent).result == "failed"
    yard.pass_time(60, step=15)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert "the platform replaced it by itself" in str(done.outcome)
    with yard.context.store.reading() as connection:
        (link,) = machine_links.of_proposal(connection, sent.id)
    assert link.old_instance_id == instance(2)
    assert link.new_node == f"hyperpod-{link.new_instance_id}"
    assert [call.operation for call in yard.sagemaker.calls] == [START]


def test_with_karpenter_a_failed_machine_goes_and_nothing_comes(make_yard: MakeYard) -> None:
    yard = make_yard(autoscaler="Karpenter")
    yard.sagemaker.node(instance(2)).check_ends = "replace"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(120, step=15)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert "Nothing is known to have come back" in str(done.outcome)
    assert result(yard, sent).result == "failed"


def test_a_machine_that_the_platform_restarts_by_itself_has_failed(yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "reboot"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(100, step=15)
    done = yard.row(sent.id)
    assert done.status == "verified"
    assert result(yard, sent).result == "failed"
    assert "restarted it by itself" in str(done.outcome)


def test_a_machine_that_left_before_it_was_seen_tested_is_gone_and_nothing_is_claimed(
    yard: Yard,
) -> None:
    sent = yard.run(yard.approve(TEST, 2))
    yard.sagemaker.cluster.nodes.pop(instance(2))
    yard.pass_time(2)
    assert yard.row(sent.id).status == "gone"
    assert result(yard, sent).result == "inconclusive"


def test_a_check_that_never_ends_is_stuck_and_still_looked_for(yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "stuck"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(5 * 60, step=15)
    row = yard.row(sent.id)
    assert row.status == "waiting"
    assert row.next_look_at is not None
    assert result(yard, sent).result == "stuck"
    assert "proposal.stuck" in yard.verbs(sent)


def test_one_request_at_a_time_and_another_one_is_refused_in_words(yard: Yard) -> None:
    yard.run(yard.approve(TEST, 1))
    second = yard.run(yard.approve(TEST, 2))
    assert second.status == "refused"
    assert "one at a time" in str(second.outcome)
    assert len(yard.sagemaker.calls) == 1


def test_a_check_of_this_machine_by_somebody_else_is_followed_and_not_repeated(yard: Yard) -> None:
    configuration = {"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}
    yard.sagemaker.checks.start([{**configuration, "InstanceIds": [instance(2)]}])
    yard.sagemaker.advance(minutes=3)
    sent = yard.run(yard.approve(TEST, 2))
    assert (sent.status, sent.result) == ("waiting", "under_way")
    assert yard.sagemaker.calls == []
    yard.pass_time(100, step=15)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "passed"


def test_a_machine_whose_group_is_not_known_is_never_tested(yard: Yard) -> None:
    detail = {"InstanceId": instance(2), "InstanceStatus": {"Status": "Running"}}
    reply = {"status": 200, "body": {"NodeDetails": detail}}
    yard.sagemaker.answer_with("DescribeClusterNode", *[reply] * 3)
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "refused"
    assert "a whole group is never tested" in str(sent.outcome)
    assert yard.sagemaker.calls == []


def test_a_machine_without_an_instance_id_is_never_tested(yard: Yard) -> None:
    proposal, unknown = yard.approve(TEST, 2), {"instance_id": None}
    yard.context.store.write(
        lambda connection: proposals.move(connection, proposal.id, ("approved",), unknown)
    )
    sent = yard.run(yard.row(proposal.id))
    assert sent.status == "refused"
    assert yard.sagemaker.calls == []


def test_a_controller_is_not_tested(make_yard: MakeYard) -> None:
    yard = make_yard(orchestrator="Slurm", continuous=False)
    yard.sagemaker.cluster.groups["gpu"].slurm_role = "Controller"
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "refused"
    assert "Controller nodes" in str(sent.outcome)
    assert yard.sagemaker.calls == []


@pytest.mark.parametrize(
    ("key", "text"),
    [(HEALTH, "UnschedulablePendingReplacement"), (HEALTH, "UnschedulablePendingReboot")],
)
def test_a_machine_that_the_platform_is_at_work_on_is_left_alone(
    key: str, text: str, yard: Yard
) -> None:
    label(yard, 2, key, text)
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "refused"
    assert "the platform is at work on it" in str(sent.outcome)
    assert yard.sagemaker.calls == []


@pytest.mark.parametrize("status", ["ShuttingDown", "Pending", "Failure", "SystemUpdating"])
def test_a_machine_that_does_not_run_is_not_tested(status: str, yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).status = status
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "refused"
    assert status in str(sent.outcome)
    assert yard.sagemaker.calls == []


def test_an_unknown_check_is_refused(yard: Yard) -> None:
    sent = yard.run(yard.approve(TEST, 2, checks=["MultiNodeTraining"]))
    assert sent.status == "refused"
    assert "MultiNodeTraining" in str(sent.outcome)
    assert yard.sagemaker.calls == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(START, 500, after=True, times=1),
        Fault(START, reset=True, after=True, times=1),
        Fault(START, 200, html=True, after=True, times=1),
    ],
)
def test_a_lost_answer_is_settled_by_the_request_that_is_listed(fault: Fault, yard: Yard) -> None:
    yard.sagemaker.set_fault(fault)
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "unknown"
    yard.pass_time(100, step=15)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "passed"
    assert len(yard.sagemaker.calls) == 1


def test_a_lost_answer_of_a_request_that_was_not_taken_stays_unknown(yard: Yard) -> None:
    yard.sagemaker.set_fault(Fault(START, 500, times=1))
    label(yard, 2, CHECK, "Passed")
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(100, step=15)
    row = yard.row(sent.id)
    assert row.status == "unknown"
    assert "No request for it is listed" in str(row.details["standing"])
    assert results(yard, sent) == []
    assert len(yard.sagemaker.calls) == 1


def test_a_refusal_for_too_many_requests_that_was_taken_all_the_same_is_seen(yard: Yard) -> None:
    yard.sagemaker.set_fault(throttled(START, after=True, times=1))
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "accepted"
    assert "it was taken" in str(sent.outcome)


def test_a_refusal_for_too_many_requests_is_not_done(yard: Yard) -> None:
    yard.sagemaker.set_fault(throttled(START, times=1))
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "failed"
    assert len(yard.sagemaker.calls) == 1
    assert yard.sagemaker.checks.operations == []


def test_a_list_that_cannot_be_read_sends_nothing(yard: Yard) -> None:
    yard.sagemaker.set_fault(Fault("ListClusterOperations", 500))
    sent = yard.run(yard.approve(TEST, 2))
    assert sent.status == "failed"
    assert yard.sagemaker.calls == []


def test_a_new_fault_on_a_machine_that_runs_again_is_a_failure(yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "silent"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(60, step=15)
    label(yard, 2, FAULT_TYPES, "NvidiaErrorTerminate")
    yard.pass_time(30)
    assert result(yard, sent).result == "failed"
    assert yard.row(sent.id).status == "verified"


def test_a_dry_run_tests_nothing(yard: Yard) -> None:
    object.__setattr__(yard.context, "providers", {})
    sent = yard.run(yard.approve(TEST, 2))
    assert (sent.status, sent.result) == ("refused", "dry_run")
    assert yard.sagemaker.requests == []


def test_looks_become_rare_and_end(yard: Yard) -> None:
    yard.sagemaker.node(instance(2)).check_ends = "stuck"
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(60, step=15)
    row = yard.row(sent.id)
    assert row.next_look_at is not None
    assert timedelta() < row.next_look_at - yard.context.now() <= timedelta(minutes=10)


def test_a_request_that_was_superseded_is_followed_in_the_newer_one(make_yard: MakeYard) -> None:
    yard = make_yard(overlap="supersede")
    sent = yard.run(yard.approve(TEST, 2))
    yard.pass_time(0.5)  # its request is known by now, and has not begun
    configuration = {"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}
    yard.sagemaker.checks.start([{**configuration, "InstanceIds": [instance(3)]}])
    looking.look_again(yard.context, sent.id)
    assert yard.row(sent.id).status == "accepted"
    yard.pass_time(100, step=15)
    assert yard.row(sent.id).status == "verified"
    assert result(yard, sent).result == "passed"
