"""Is an order sent once at most, and does every answer become the right outcome of each machine?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cluster.provider.ports import Answer, ProviderPort, TestRequest
from tests.doubles.sagemaker import Fault, SagemakerDouble, throttled
from tests.provider.conftest import IDS, PortTo, StartSagemaker

REPLIES = Path(__file__).parent.parent / "data" / "hyperpod" / "replies_27_machines.json"
STRESS = ("InstanceStress",)


def test_a_replacement_is_accepted_and_only_later_comes_about(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    (answer,) = port.replace([IDS[0]])
    assert (answer.instance_id, answer.answer) == (IDS[0], Answer.ACCEPTED)
    assert port.machine(IDS[0]).status == "ShuttingDown"
    (call,) = sagemaker.calls
    assert call.operation == "BatchReplaceClusterNodes"
    assert call.asked == {"ClusterName": "alpine", "NodeIds": [IDS[0]]}


def test_a_repeat_is_under_way_and_afterwards_the_machine_is_gone(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    port.replace([IDS[0]])
    (again,) = port.replace([IDS[0]])
    assert (again.answer, again.code) == (Answer.UNDER_WAY, "InstanceIdInUse")
    sagemaker.advance(hours=1)
    (later,) = port.replace([IDS[0]])
    assert (later.answer, later.code) == (Answer.GONE, "InstanceIdNotFound")


def test_a_machine_that_the_platform_replaces_is_refused_with_its_status(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.platform_replaces(IDS[0])
    (answer,) = port.replace([IDS[0]])
    assert (answer.answer, answer.code) == (Answer.REFUSED, "InvalidInstanceStatus")
    assert "ShuttingDown" in answer.message


def test_a_reboot_keeps_the_machine(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    (answer,) = port.reboot([IDS[0]])
    assert answer.answer is Answer.ACCEPTED
    assert [call.operation for call in sagemaker.calls] == ["BatchRebootClusterNodes"]
    sagemaker.advance(hours=1)
    assert port.machine(IDS[0]).status == "Running"
    assert sagemaker.node(IDS[0]).bootings == 2


def test_27_machines_go_out_as_25_and_2_and_each_has_its_own_outcome(
    start: StartSagemaker, port_to: PortTo
) -> None:
    ids = [f"i-0c0ffee00000000{number:02x}" for number in range(0x64, 0x7F)]
    double = start(())
    double.answer_with(
        "BatchReplaceClusterNodes", *json.loads(REPLIES.read_text())["BatchReplaceClusterNodes"]
    )
    answers = port_to(double).replace(ids)
    assert [len(call.asked["NodeIds"]) for call in double.calls] == [25, 2]
    assert [one.instance_id for one in answers] == ids
    found = [one.answer for one in answers]
    assert found.count(Answer.ACCEPTED) == 22
    odd = {one.instance_id[-2:]: (one.answer, one.code) for one in answers}
    assert odd["79"] == (Answer.GONE, "InstanceIdNotFound")
    assert odd["7a"] == (Answer.REFUSED, "InvalidInstanceStatus")
    assert odd["7b"] == (Answer.UNDER_WAY, "InstanceIdInUse")
    assert odd["7d"] == odd["7e"] == (Answer.FAILED, "InternalServerError")
    assert "SystemUpdating" in next(one.message for one in answers if "7a" in one.instance_id[-2:])


def test_an_id_that_the_answer_does_not_name_is_unknown(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.answer_with(
        "BatchReplaceClusterNodes", {"status": 200, "body": {"Successful": [IDS[1]]}}
    )
    first, second = port.replace(IDS[:2])
    assert (first.answer, second.answer) == (Answer.UNKNOWN, Answer.ACCEPTED)


def test_an_id_that_is_named_as_taken_and_as_refused_is_unknown(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    failed = {"NodeId": IDS[0], "ErrorCode": "InternalServerError", "Message": "?"}
    body = {"Successful": [IDS[0]], "Failed": [failed]}
    sagemaker.answer_with("BatchReplaceClusterNodes", {"status": 200, "body": body})
    assert port.replace([IDS[0]])[0].answer is Answer.UNKNOWN


@pytest.mark.parametrize(
    "bad", ["hyperpod-i-0c0ffee0000000001", "i-0C0FFEE0000000001", "i-123", "", "node-1a"]
)
def test_what_is_no_instance_id_is_refused_before_the_wire(
    bad: str, sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    wrong, good = port.replace([bad, IDS[0]])
    assert (wrong.answer, good.answer) == (Answer.REFUSED, Answer.ACCEPTED)
    assert "no instance id: nothing was sent" in wrong.message
    assert port.reboot([bad])[0].answer is Answer.REFUSED
    assert [call.asked["NodeIds"] for call in sagemaker.calls] == [[IDS[0]]]


def test_a_machine_that_is_named_twice_is_ordered_once(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    answers = port.replace([IDS[0], IDS[0]])
    assert [one.answer for one in answers] == [Answer.ACCEPTED, Answer.ACCEPTED]
    assert [call.asked["NodeIds"] for call in sagemaker.calls] == [[IDS[0]]]


OP = "BatchReplaceClusterNodes"
NOT_TAKEN: list[tuple[Fault, Answer]] = [
    (throttled(OP), Answer.FAILED),
    (Fault(OP, 400, "ValidationException", "1 validation error"), Answer.REFUSED),
    (Fault(OP, 400, "ResourceNotFound", "Cluster not found"), Answer.REFUSED),
    (Fault(OP, 400, "ConflictException", "updating"), Answer.REFUSED),
    (Fault(OP, 400, "AccessDeniedException", "not you"), Answer.REFUSED),
    (Fault(OP, 403, html=True), Answer.REFUSED),
    (Fault(OP, 400, "ExpiredTokenException", "old"), Answer.FAILED),
]


@pytest.mark.parametrize(("fault", "answer"), NOT_TAKEN)
def test_a_no_of_the_service_ordered_nothing(
    fault: Fault, answer: Answer, sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(fault)
    (got,) = port.replace([IDS[0]])
    assert got.answer is answer
    assert "nothing was ordered" in got.message
    assert len(sagemaker.calls) == 1
    assert sagemaker.node(IDS[0]).status == "Running"


PROVES_NOTHING: list[Fault] = [
    Fault(OP, 500, "InternalFailure", after=True),
    Fault(OP, 503, "ServiceUnavailable", after=True),
    Fault(OP, html=True, after=True),
    Fault(OP, 200, html=True, after=True),
    Fault(OP, 429, "TooManyRequestsException", after=True),
    throttled(OP, after=True, status=503),
    Fault(OP, 408, "RequestTimeout", after=True),
    Fault(OP, reset=True, after=True),
    Fault(OP, hang=True, after=True),
    Fault(OP, half=True),
]


@pytest.mark.parametrize("fault", PROVES_NOTHING)
def test_an_answer_that_proves_nothing_is_unknown_and_nothing_is_sent_again(
    fault: Fault, start: StartSagemaker, port_to: PortTo
) -> None:
    double = start()
    double.set_fault(fault)
    (got,) = port_to(double, read_timeout_s=0.2).replace([IDS[0]])
    assert got.answer is Answer.UNKNOWN
    assert "not known" in got.message
    assert len(double.calls) == 1
    assert double.node(IDS[0]).status == "ShuttingDown"  # it was taken all the same


def test_a_refusal_for_too_many_requests_that_was_taken_all_the_same_is_unknown(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(throttled(OP, after=True, times=1))
    (got,) = port.replace([IDS[0]])
    assert (got.answer, got.code) == (Answer.UNKNOWN, "ThrottlingException")
    assert "and yet the machine is ShuttingDown" in got.message
    assert len(sagemaker.calls) == 1


def test_a_refusal_for_too_many_requests_stands_where_the_machine_cannot_be_read(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(throttled("*"))
    assert port.replace([IDS[0]])[0].answer is Answer.FAILED
    assert sagemaker.node(IDS[0]).status == "Running"


def test_a_slow_answer_is_waited_for(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    sagemaker.set_fault(Fault(OP, delay_s=0.3))
    assert port.replace([IDS[0]])[0].answer is Answer.ACCEPTED
    assert len(sagemaker.calls) == 1


def test_after_a_riddle_the_next_25_are_not_sent(start: StartSagemaker, port_to: PortTo) -> None:
    ids = tuple(f"i-0c0ffee00000000{number:02x}" for number in range(30))
    double = start(ids)
    double.set_fault(Fault(OP, 500, after=True, times=1))
    answers = port_to(double).replace(ids)
    assert {one.answer for one in answers[:25]} == {Answer.UNKNOWN}
    assert {one.answer for one in answers[25:]} == {Answer.FAILED}
    assert all(one.message.startswith("It was not sent") for one in answers[25:])
    assert len(double.calls) == 1


def test_where_nobody_listens_nothing_was_sent(start: StartSagemaker, port_to: PortTo) -> None:
    (got,) = port_to(start(), endpoint_url="http://127.0.0.1:1").replace([IDS[0]])
    assert (got.answer, got.message[:15]) == (Answer.FAILED, "It was not sent")


def test_without_credentials_nothing_was_sent(
    sagemaker: SagemakerDouble, port: ProviderPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    (got,) = port.replace([IDS[0]])
    assert (got.answer, got.message[:15]) == (Answer.FAILED, "It was not sent")
    assert sagemaker.requests == []


def test_a_cluster_whose_software_was_never_updated_is_refused(
    start: StartSagemaker, port_to: PortTo
) -> None:
    (got,) = port_to(start(software_updated=False)).replace([IDS[0]])
    assert got.answer is Answer.REFUSED
    assert "updated once" in got.message


def test_a_check_names_group_and_machines(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    answers = port.test(TestRequest({"gpu": IDS[:2]}, STRESS))
    assert [one.answer for one in answers] == [Answer.ACCEPTED, Answer.ACCEPTED]
    assert "no result" in answers[0].message
    (call,) = sagemaker.calls
    assert call.asked["DeepHealthCheckConfigurations"] == [
        {
            "InstanceGroupName": "gpu",
            "InstanceIds": list(IDS[:2]),
            "DeepHealthChecks": ["InstanceStress"],
        }
    ]


WRONG: list[tuple[dict[str, tuple[str, ...]], tuple[str, ...], str]] = [
    ({"gpu": ()}, STRESS, "a group names no machine"),
    ({}, STRESS, "a group names no machine"),
    ({"gpu": (f"hyperpod-{IDS[0]}",)}, STRESS, "no instance id"),
    ({"gpu": IDS[:1]}, ("MultiNodeTraining",), "no check 'MultiNodeTraining'"),
    ({"gpu": IDS[:1]}, (), "no check is named"),
    ({"gpu": IDS[:1]}, STRESS * 2, "a check is named twice"),
    ({"gpu": (IDS[0], IDS[0])}, STRESS, "a machine is named twice"),
    ({"a b": IDS[:1]}, STRESS, "no proper name"),
    ({"gpu": tuple(f"i-{number:08x}" for number in range(501))}, STRESS, "more than 500"),
]


@pytest.mark.parametrize(("machines", "checks", "words"), WRONG)
def test_a_malformed_request_for_checks_is_refused_before_the_wire(
    machines: dict[str, tuple[str, ...]],
    checks: tuple[str, ...],
    words: str,
    sagemaker: SagemakerDouble,
    port: ProviderPort,
) -> None:
    answers = port.test(TestRequest(machines, checks))
    assert sagemaker.requests == []
    assert all(one.answer is Answer.REFUSED and words in one.message for one in answers)
    assert len(answers) == sum(map(len, machines.values()))


def test_a_second_request_for_checks_is_refused_in_words(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    port.test(TestRequest({"gpu": IDS[:1]}, STRESS))
    (got,) = port.test(TestRequest({"gpu": IDS[1:2]}, STRESS))
    assert got.answer is Answer.REFUSED
    assert "already in progress" in got.message
    assert len(sagemaker.checks.operations) == 1


@pytest.mark.parametrize("how", [Fault("*", 200, html=True, after=True), Fault("*", half=True)])
def test_a_request_for_checks_without_a_readable_answer_is_unknown(
    how: Fault, sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(how)
    assert port.test(TestRequest({"gpu": IDS[:1]}, STRESS))[0].answer is Answer.UNKNOWN
    assert len(sagemaker.checks.operations) == 1


def test_no_setting_of_the_machine_makes_an_order_go_out_twice(
    start: StartSagemaker, port_to: PortTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    monkeypatch.setenv("AWS_RETRY_MODE", "legacy")
    for fault in (Fault("*", 503), throttled("*"), Fault("*", reset=True)):
        double = start()
        double.set_fault(fault)
        port = port_to(double)
        port.replace([IDS[0]])
        port.reboot([IDS[0]])
        port.test(TestRequest({"gpu": IDS[:1]}, STRESS))
        assert len(double.calls) == 3


def test_credentials_that_are_not_accepted_any_more_are_read_anew(
    sagemaker: SagemakerDouble, port: ProviderPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    sagemaker.set_fault(Fault(OP, 400, "ExpiredTokenException", "old", times=1))
    assert port.replace([IDS[0]])[0].answer is Answer.FAILED
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDNEW")
    assert port.replace([IDS[0]])[0].answer is Answer.ACCEPTED
    assert [call.key for call in sagemaker.calls] == ["AKIDEXAMPLE", "AKIDNEW"]
