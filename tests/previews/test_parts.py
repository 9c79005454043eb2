"""Do the parts of a preview say what they were given, whatever is missing or odd?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.actions.previewing.confirming import Confirmation, confirmation, not_typed
from app.actions.previewing.live import Alarmed, Live, grouped
from app.actions.previewing.seen import PODS, Seen, changes, read_seen
from app.actions.previewing.spare import Spare, takes_work
from app.cluster.node_state import read_node
from app.cluster.pods import read_pod
from app.store.proposals import Proposal
from tests.actions.fleet import node

AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SEEN = Seen("u", "i-1", "none", (), "Automatic", "Running", "x", ("a/p",), 1)


def proposal(action: str = "replace") -> Proposal:
    """Give a proposal that was just made."""
    nothing: dict[str, Any] = {
        name: None for name in Proposal.__dataclass_fields__ if name not in ("id",)
    }
    return Proposal(
        **{
            **nothing, "id": 1, "action": action, "node_name": "n", "cluster": "alpine",
            "parameters": {}, "lineage": {}, "details": {}, "status": "proposed",
        }
    )  # fmt: skip


def pod(name: str, namespace: str, **spec: Any) -> Any:
    """Read a running pod."""
    raw = {
        "metadata": {"name": name, "namespace": namespace, **spec.pop("metadata", {})},
        "spec": spec,
        "status": {"phase": "Running"},
    }
    return read_pod(raw)


def test_a_look_survives_the_form() -> None:
    assert read_seen(SEEN.written) == SEEN
    empty = Seen()
    assert read_seen(empty.written) == empty


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "no json", '{"uid": 1}', "x" * 100_001,
     json.dumps({**json.loads(SEEN.written), "pods": [1]}),
     json.dumps({**json.loads(SEEN.written), "more": 1}),
     json.dumps({**json.loads(SEEN.written), "number": "1"})],
)  # fmt: skip
def test_a_form_that_cannot_be_read_is_no_look(text: str) -> None:
    assert read_seen(text) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"uid": "v"}, "the node is another one"),
        ({"instance": "i-2"}, "the instance is i-2"),
        ({"cordon": "ours"}, "cordoned from here, it was not cordoned"),
        ({"platform": ("replacing",)}, "the platform has begun something itself: replacing"),
        ({"recovery": "None"}, "NodeRecovery is None, it was Automatic"),
        ({"machine": "ShuttingDown"}, "lists the machine as ShuttingDown"),
        ({"launched": "y"}, "the machine was launched y"),
        ({"pods": ("a/p", "b/q"), "number": 2}, "1 pod came to the node: b/q"),
        ({"pods": None, "number": None}, "what runs on the node is not known, it was known"),
    ],
)
def test_each_change_is_said(change: dict[str, Any], words: str) -> None:
    (said,) = changes(SEEN, replace(SEEN, **change), destroys=True)
    assert words in said


def test_what_makes_the_loss_smaller_needs_no_new_look() -> None:
    assert changes(SEEN, replace(SEEN, pods=(), number=0), destroys=True) == ()
    both = replace(SEEN, platform=("replacing",))
    assert changes(both, SEEN, destroys=True) == ()


def test_a_cordon_does_not_depend_on_pods_or_machine() -> None:
    other = replace(SEEN, pods=("z/z",), recovery="None", machine="Pending")
    assert changes(SEEN, other, destroys=False) == ()


def test_of_very_many_pods_the_number_counts() -> None:
    many = replace(SEEN, pods=tuple(f"a/{n}" for n in range(PODS)), number=PODS + 5)
    more = replace(many, number=PODS + 6)
    (said,) = changes(many, more, destroys=True)
    assert "206 pods end with the node" in said
    assert changes(many, many, destroys=True) == ()


def test_whose_pods_they_are() -> None:
    own = Alarmed("llama", "research")
    labelled = {"labels": {"HPJob": "llama"}}
    pods = [
        pod("x-1", "research", metadata=labelled),
        pod("llama-worker-1", "research"),
        pod("llamas-1", "research"),
        pod("v-1", "vision"),
        pod("dns", "kube-system"),
        pod("agent", "vendor", priorityClassName="system-node-critical"),
        pod("eval-1", "eval", metadata={"ownerReferences": [{"kind": "DaemonSet", "name": "e"}]}),
    ]
    groups = grouped(pods, own)
    assert [(one.namespace, one.whose) for one in groups] == [
        ("vision", "other"), ("research", "own"), ("kube-system", "system"), ("vendor", "system"),
    ]  # fmt: skip
    marks = {one.pod.name: one.own for one in groups[1].victims}
    assert marks == {"x-1": "label", "llama-worker-1": "name", "llamas-1": ""}
    assert grouped(pods[2:3], own)[0].whose == "namespace"
    assert grouped(pods[:2], None)[0].whose == "other"


def test_what_has_to_be_typed() -> None:
    empty = Live(AT, pods=())
    shared = Live(AT, pods=grouped([pod("v", "vision"), pod("f", "films")], None))
    crowd = Live(AT, pods=grouped([pod("p", f"team-{n}") for n in range(5)], None))
    assert confirmation(proposal("cordon"), shared) == Confirmation()
    assert confirmation(proposal(), empty) == Confirmation("n")
    assert confirmation(proposal(), shared).words == "end pods of films, vision"
    assert confirmation(proposal(), crowd).words == "end pods of 5 namespaces"
    assert confirmation(proposal(), Live(AT)).words == "pods not known"
    assert confirmation(proposal(), Live(AT, gone=True)).words is None
    wanted = confirmation(proposal(), shared)
    assert not_typed(wanted, " n ", "End pods of films, vision") is None
    assert "name was not typed" in (not_typed(wanted, "N", "end pods of films, vision") or "")
    assert "was not typed" in (not_typed(wanted, "n", "yes") or "")


@pytest.mark.parametrize(
    "more",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}},
        {"labels": {"sagemaker.amazonaws.com/node-health-status": "Unschedulable"}},
        {"labels": {"node-role.kubernetes.io/control-plane": ""}},
    ],
)
def test_a_node_that_takes_no_work_is_no_spare(more: dict[str, Any]) -> None:
    assert takes_work(read_node(node("a")))
    assert takes_work(
        read_node(node("a", spec={"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}))
    )
    assert not takes_work(read_node(node("a", **more)))


def test_spare_capacity_says_how_far_it_looked() -> None:
    some = Spare("p5", AT, ("b",), ("b", "c", "d"))
    assert some.check.words == (
        "Spare capacity: at least 1 of 3 nodes looked at of type p5 free of GPU pods; "
        "there are others"
    )
    assert (some.check.state, Spare("p5", AT, (), ("c",)).check.state) == ("t", "u")
    none = Spare("p5", AT, (), ("c",), whole=True)
    assert (none.check.state, "0 of 1 other node" in none.check.words) == ("x", True)
    assert Spare(None, AT, why="Away.").check.state == "u"
