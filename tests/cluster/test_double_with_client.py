"""Does the official Python client take the double for an API server?"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import NODE_1, NODE_2, NODE_3
from tests.doubles.kubernetes import KubernetesDouble


@pytest.fixture
def core(double: KubernetesDouble, tmp_path: Path) -> Iterator[Any]:
    """Give the client's typed core API."""
    from kubernetes import client, config

    loader: Any = config
    file = double.kubeconfig(tmp_path / "kubeconfig")
    api = loader.new_client_from_config(config_file=str(file))
    yield client.CoreV1Api(api)
    api.close()


def test_typed_reading(core: Any) -> None:
    node = core.read_node(NODE_1)
    assert node.spec.provider_id.endswith("i-0c0ffee0000000001")
    assert node.status.conditions[0].type == "Ready"
    assert [one.metadata.name for one in core.list_node().items][:2] == [NODE_1, NODE_2]


def test_pages(core: Any) -> None:
    first = core.list_node(limit=3)
    assert len(first.items) == 3
    assert first.metadata.remaining_item_count == 1
    rest = core.list_node(limit=3, _continue=first.metadata._continue)
    assert len(rest.items) == 1
    assert rest.metadata._continue is None


def test_a_page_after_compaction_has_expired(core: Any, double: KubernetesDouble) -> None:
    from kubernetes.client.exceptions import ApiException

    first = core.list_node(limit=3)
    double.change(NODE_1, lambda node: node["metadata"]["labels"].update(a="b"))
    double.store.compact()
    with pytest.raises(ApiException) as caught:
        core.list_node(limit=3, _continue=first.metadata._continue)
    assert caught.value.status == 410


def test_patches_by_the_type_of_the_body(core: Any, double: KubernetesDouble) -> None:
    core.patch_node(NODE_1, {"spec": {"unschedulable": True}})
    core.patch_node(NODE_1, [{"op": "add", "path": "/spec/taints", "value": []}])
    types = [call.content_type for call in double.changes()]
    assert types == ["application/strategic-merge-patch+json", "application/json-patch+json"]
    version = core.read_node(NODE_1).metadata.resource_version
    core.patch_node(NODE_1, {"spec": {"unschedulable": None}}, dry_run="All")
    assert core.read_node(NODE_1).metadata.resource_version == version


def test_a_stale_version_is_a_conflict(core: Any) -> None:
    from kubernetes.client.exceptions import ConflictException

    stale = core.read_node(NODE_1).metadata.resource_version
    core.patch_node(NODE_1, {"spec": {"unschedulable": True}})
    body = {"metadata": {"resourceVersion": stale}, "spec": {"unschedulable": None}}
    with pytest.raises(ConflictException):
        core.patch_node(NODE_1, body)


def test_watch_gives_only_what_is_newer(core: Any, double: KubernetesDouble) -> None:
    from kubernetes import watch

    version = core.list_node().metadata.resource_version
    double.change(NODE_2, lambda node: node["spec"].update(unschedulable=True))

    def later() -> None:
        time.sleep(0.2)
        double.change(NODE_3, lambda node: node["spec"].update(unschedulable=True))
        double.remove(NODE_3)

    threading.Thread(target=later, daemon=True).start()
    begun = time.monotonic()
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in watch.Watch().stream(
            core.list_node, resource_version=version, timeout_seconds=1
        )
    ]
    assert seen == [("MODIFIED", NODE_2), ("MODIFIED", NODE_3), ("DELETED", NODE_3)]
    assert time.monotonic() - begun == pytest.approx(1.0, abs=0.6)


def test_watch_sees_an_object_come_into_its_selector(core: Any, double: KubernetesDouble) -> None:
    from kubernetes import watch

    version = core.list_node().metadata.resource_version
    double.change(NODE_2, lambda node: node["spec"].update(unschedulable=True))
    double.change(NODE_2, lambda node: node["spec"].pop("unschedulable"))
    seen = [
        event["type"]
        for event in watch.Watch().stream(
            core.list_node,
            resource_version=version,
            field_selector="spec.unschedulable=true",
            timeout_seconds=1,
        )
    ]
    assert seen == ["ADDED", "DELETED"]


def test_watch_ends_with_a_bookmark(core: Any, double: KubernetesDouble) -> None:
    answer = core.list_node(
        watch=True,
        timeout_seconds=1,
        resource_version=str(double.store.version),
        allow_watch_bookmarks=True,
        _preload_content=False,
    )
    assert b'"type": "BOOKMARK"' in answer.data


def test_watch_from_before_the_compaction_is_gone(core: Any, double: KubernetesDouble) -> None:
    from kubernetes import watch
    from kubernetes.client.exceptions import ApiException

    double.change(NODE_2, lambda node: node["spec"].update(unschedulable=True))
    double.store.compact()
    with pytest.raises(ApiException) as caught:
        list(watch.Watch().stream(core.list_node, resource_version="1", timeout_seconds=1))
    assert caught.value.status == 410


def test_eviction_and_its_budget(core: Any, double: KubernetesDouble) -> None:
    from kubernetes.client.exceptions import ApiException

    for number in (1, 2):
        pod = {
            "metadata": {"name": f"p{number}", "namespace": "research", "labels": {"a": "b"}},
            "spec": {"nodeName": NODE_1, "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        }
        double.put("pods", pod)
    budget = {
        "metadata": {"name": "keep", "namespace": "research"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
        "status": {"disruptionsAllowed": 0},
    }
    double.put("poddisruptionbudgets", budget)
    body = {"metadata": {"name": "p1", "namespace": "research"}}
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("p1", "research", body)
    assert caught.value.status == 429
    assert len(core.list_namespaced_pod("research").items) == 2


def test_tokens_of_service_accounts_are_reviewed(core: Any, double: KubernetesDouble) -> None:
    from kubernetes import client

    core.create_namespace({"metadata": {"name": "research"}})
    core.create_namespaced_service_account("research", {"metadata": {"name": "trainer"}})
    spec = {"spec": {"audiences": ["silent-witness"]}}
    issued = core.create_namespaced_service_account_token("trainer", "research", spec)
    reviews: Any = client.AuthenticationV1Api(core.api_client)
    body = {"spec": {"token": issued.status.token, "audiences": ["silent-witness"]}}
    status = reviews.create_token_review(body).status
    assert status.authenticated is True
    assert status.user.username == "system:serviceaccount:research:trainer"
    assert not reviews.create_token_review({"spec": {"token": "x"}}).status.authenticated


def test_leases(core: Any) -> None:
    from kubernetes import client

    leases: Any = client.CoordinationV1Api(core.api_client)
    made = leases.create_namespaced_lease(
        "default", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}}
    )
    taken = leases.patch_namespaced_lease(
        "leader",
        "default",
        {
            "metadata": {"resourceVersion": made.metadata.resource_version},
            "spec": {"holderIdentity": "b"},
        },
    )
    assert taken.spec.holder_identity == "b"
