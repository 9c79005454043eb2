"""Does the double of SageMaker keep to the wire and to the service's own model?"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from tests.doubles.sagemaker import Fault, SagemakerDouble, model
from tests.provider.conftest import IDS, StartSagemaker

HEADERS = {
    "content-type": "application/x-amz-json-1.1",
    "authorization": "AWS4-HMAC-SHA256 Credential=a/20260302/us-west-2/sagemaker/aws4_request",
}


def client(double: SagemakerDouble) -> Any:
    """Make the real client, as somebody else would."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=5)
    return Session().create_client("sagemaker", "us-west-2", endpoint_url=double.url, config=config)


def post(double: SagemakerDouble, operation: str, body: Any, **headers: str) -> Any:
    """Send what no client would send."""
    content = body if isinstance(body, str) else json.dumps(body)
    more = {**HEADERS, "x-amz-target": f"SageMaker.{operation}", **headers}
    return httpx2.post(double.url, content=content, headers=more)


def test_the_wire_is_json_1_1_with_target_and_signature(sagemaker: SagemakerDouble) -> None:
    answer = post(sagemaker, "DescribeCluster", {"ClusterName": "alpine"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-amz-json-1.1"
    assert answer.json()["ClusterArn"].endswith(":cluster/4k2xq9mlunpa")


@pytest.mark.parametrize(
    ("how", "code", "status"),
    [
        ({"authorization": "Bearer x"}, "MissingAuthenticationTokenException", 403),
        ({"content-type": "application/json"}, "UnknownOperationException", 400),
        ({"x-amz-target": "SageMaker.Nothing"}, "UnknownOperationException", 400),
        ({"x-amz-target": "Other.DescribeCluster"}, "UnknownOperationException", 400),
    ],
)
def test_another_wire_is_refused(
    how: dict[str, str], code: str, status: int, sagemaker: SagemakerDouble
) -> None:
    answer = post(sagemaker, "DescribeCluster", {"ClusterName": "alpine"}, **how)
    assert (answer.status_code, answer.json()["__type"]) == (status, code)


def test_a_body_that_is_no_json_is_refused(sagemaker: SagemakerDouble) -> None:
    answer = post(sagemaker, "DescribeCluster", "{")
    assert (answer.status_code, answer.json()["__type"]) == (400, "SerializationException")


def config(**more: Any) -> dict[str, Any]:
    """Write a configuration of a deep health check, changed as a test wants."""
    base = {"InstanceGroupName": "gpu", "InstanceIds": [IDS[0]]}
    return {**base, "DeepHealthChecks": ["InstanceStress"], **more}


def check(**more: Any) -> dict[str, Any]:
    return {"ClusterName": "alpine", "DeepHealthCheckConfigurations": [config(**more)]}


BATCH = "BatchReplaceClusterNodes"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    (BATCH, {"ClusterName": "alpine", "NodeIds": [f"i-{n:08x}" for n in range(26)]},
     "length less than or equal to 25"),
    (BATCH, {"ClusterName": "alpine", "NodeIds": []}, "length greater than or equal to 1"),
    (BATCH, {"ClusterName": "alpine", "NodeIds": ["hyperpod-i-0c0ffee000000001"]},
     "regular expression pattern"),
    (BATCH, {"ClusterName": "alpine", "NodeIds": "i-0c0ffee1"}, "must be a list"),
    (BATCH, {"ClusterName": "alpine", "NodeIds": [1]}, "must be a string"),
    (BATCH, {"NodeIds": ["i-0c0ffee1"]}, "at 'clusterName' failed"),
    (BATCH, {"ClusterName": "a_b", "NodeIds": ["i-0c0ffee1"]}, "regular expression pattern"),
    (BATCH, {"ClusterName": "alpine", "ClientToken": "x"}, "Unknown member ClientToken"),
    (BATCH, {"ClusterName": "alpine"}, "NodeIds or NodeLogicalIds"),
    ("StartClusterHealthCheck", check(DeepHealthChecks=["MultiNodeTraining"]), "enum value set"),
    ("StartClusterHealthCheck", check(DeepHealthChecks=[]), "greater than or equal to 1"),
    ("StartClusterHealthCheck", check(InstanceIds=[f"i-{n:08x}" for n in range(501)]),
     "less than or equal to 500"),
    ("StartClusterHealthCheck", check(InstanceGroupName=None), "must not be null"),
    ("ListClusterNodes", {"ClusterName": "alpine", "MaxResults": 101}, "less than or equal to 100"),
    ("ListClusterNodes", {"ClusterName": "alpine", "MaxResults": "9"}, "must be a number"),
    ("ListClusterNodes", {"ClusterName": "alpine", "SortBy": "AGE"}, "enum value set"),
    ("DescribeClusterNode", {"ClusterName": "alpine"}, "either NodeId or NodeLogicalId"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "body", "words"), WRONG)
def test_what_the_client_lets_through_the_service_refuses(
    operation: str, body: dict[str, Any], words: str, sagemaker: SagemakerDouble
) -> None:
    answer = post(sagemaker, operation, body)
    assert answer.status_code == 400
    assert answer.json()["__type"] == "ValidationException"
    assert words in answer.json()["message"]


def test_the_real_client_sends_26_ids_and_a_name_in_place_of_an_id(
    sagemaker: SagemakerDouble,
) -> None:
    real = client(sagemaker)
    for ids in ([f"i-{n:08x}" for n in range(26)], ["hyperpod-i-0c0ffee0000000001"]):
        with pytest.raises(ClientError, match="ValidationException"):
            real.batch_replace_cluster_nodes(ClusterName="alpine", NodeIds=ids)
    assert len(sagemaker.calls) == 2


def test_an_empty_list_of_successes_is_left_out(sagemaker: SagemakerDouble) -> None:
    answer = client(sagemaker).batch_replace_cluster_nodes(
        ClusterName="alpine", NodeIds=["i-0c0ffee1"]
    )
    assert "Successful" not in answer
    assert answer["Failed"][0]["ErrorCode"] == "InstanceIdNotFound"


def test_every_answer_keeps_to_the_model_with_every_switch(start: StartSagemaker) -> None:
    for switches in (
        {"autoscaler": "Karpenter", "missing_as": "ValidationException"},
        {"orchestrator": "Slurm", "continuous": False, "node_recovery": "None"},
        {"orchestrator": None, "node_recovery": None},
    ):
        double = start(**switches)
        double.add_group("head", slurm_role="Controller", patching="DrainFirst")
        real = client(double)
        double.node(IDS[1]).check_ends = "replace"
        real.start_cluster_health_check(**check(InstanceIds=list(IDS[1:3])))
        real.batch_replace_cluster_nodes(ClusterName="alpine", NodeIds=[IDS[0], "i-0c0ffee1"])
        for _ in range(20):
            double.advance(minutes=7)
            real.describe_cluster(ClusterName="alpine")
            for node in real.list_cluster_nodes(ClusterName="alpine")["ClusterNodeSummaries"]:
                real.describe_cluster_node(ClusterName="alpine", NodeId=node["InstanceId"])
        listed = real.list_cluster_operations(ClusterName="alpine")["ClusterOperationSummaries"]
        assert [one["Status"] for one in listed] == ["Done"]
        real.describe_cluster_operation(ClusterName="alpine", OperationId=listed[0]["OperationId"])
        if double.cluster.continuous:
            real.list_cluster_events(ClusterName="alpine")
        assert double.wrong_answers == []


def test_a_wrong_answer_of_the_double_itself_is_found() -> None:
    assert model.wrong_answer("BatchReplaceClusterNodes", {"Successful": []}) != []
    wrong = {"NodeDetails": {"InstanceStatus": {"Status": "Failed"}}}
    assert "enum value set" in model.wrong_answer("DescribeClusterNode", wrong)[0]
    assert model.wrong_answer("StartClusterHealthCheck", {}) != []


def test_a_throttled_call_can_have_taken_effect(sagemaker: SagemakerDouble) -> None:
    words = "Rate exceeded"
    sagemaker.set_fault(Fault(BATCH, 400, "ThrottlingException", words, after=True, times=1))
    real = client(sagemaker)
    with pytest.raises(ClientError, match="ThrottlingException"):
        real.batch_replace_cluster_nodes(ClusterName="alpine", NodeIds=[IDS[0]])
    again = real.batch_replace_cluster_nodes(ClusterName="alpine", NodeIds=[IDS[0]])
    assert again["Failed"][0]["ErrorCode"] == "InstanceIdInUse"
