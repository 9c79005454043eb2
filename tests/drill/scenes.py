"""Which lives of a replacement are drilled, and what has to be seen of each?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.doubles.sagemaker import Fault
from tests.drill.world import (
    CHECK,
    CLUSTER,
    OLD,
    OLD_NODE,
    REPLACE,
    Say,
    World,
    expect,
    world,
)

TRANSIENT = "i-0c0ffee0000000006"
TAINT = "silent-witness.dev/sdc-suspect"


def begin(drill: World) -> dict[str, Any]:
    """Bring a suspect to the point where its replacement can be approved."""
    drill.post_recorded()
    case = drill.service.read(f"/cases/{drill.proposal('replace')['case']}")
    drill.say(f"case: {case['headline']}")
    expect(drill.sagemaker.calls == [], "something was ordered that nobody approved")
    cordon = drill.proposal("cordon")
    drill.approve(cordon)
    drill.reaches(cordon, "verified")
    spec = drill.kubernetes.node(OLD_NODE)["spec"]
    expect(spec.get("unschedulable") is True, f"{OLD_NODE} is not cordoned in Kubernetes")
    expect(any(one["key"] == TAINT for one in spec["taints"]), f"{OLD_NODE} lacks our taint")
    return drill.proposal("replace")


def whole_life(say: Say) -> None:
    """Alarm, cordon, replacement, the new machine, its GPUs, its test."""
    with world(say) as drill:
        replace = begin(drill)
        sent = drill.approve(replace)
        drill.show(sent)
        expect(sent["status"] == "accepted", f"the replacement is {sent['status']}, not accepted")
        status, again = drill.decide(replace)
        expect(status == 409, f"a second approval was answered {status}")
        drill.say(f"approved again: {status}, {again['error']['message']}")
        drill.pass_time(3)
        drill.reaches(replace, "waiting")
        drill.pass_time(5)
        expect(not drill.is_in_kubernetes(OLD_NODE), f"{OLD_NODE} is still in Kubernetes")
        expect(drill.row(replace)["status"] == "waiting", "it is said to be over before it is")
        drill.pass_time(20)
        drill.reaches(replace, "verified")
        new = linked(drill, replace)
        expect(drill.calls(REPLACE) == 1, f"{drill.calls(REPLACE)} orders went out, not one")
        place_job(drill, new)
        screen(drill, new)
        drill.verify_audit()


def linked(drill: World, proposal: dict[str, Any], old: str = OLD) -> str:
    """Follow the old machine to the new one; give that one."""
    links = drill.links(proposal)
    expect(len(links) == 1, f"{len(links)} links, not one")
    (link,) = links
    expect(link.old_instance_id == old, f"{link.old_instance_id} was linked, not {old}")
    expect(link.new_node == f"hyperpod-{link.new_instance_id}", "the new node is not named")
    expect(drill.is_in_kubernetes(str(link.new_node)), "the new node is not in Kubernetes")
    return link.new_instance_id


def place_job(drill: World, new: str) -> None:
    """Let the next attempt of a job run on the new machine, so that its GPUs are known."""
    ranks = [
        {
            "rank": index,
            "node": f"hyperpod-{new}",
            "instance_id": new,
            "gpu_uuid": f"GPU-d0000000-1111-4222-8333-00000000000{index}",
        }
        for index in range(8)
    ]
    drill.service.post(
        {
            "kind": "rank_map",
            "cluster": CLUSTER,
            "namespace": "research",
            "job": "after-the-drill",
            "attempt": 1,
            "time": drill.sagemaker.clock.now().isoformat().replace("+00:00", "Z"),
            "world_size": 8,
            "ranks": ranks,
        }
    )
    before, after = drill.gpus_of(OLD), drill.gpus_of(new)
    expect(len(after) == 8, f"{len(after)} GPUs of {new} are known, not 8")
    expect(not set(before) & set(after), "a GPU is said to be in both machines")
    drill.say(f"GPUs: {len(before)} of {OLD} went, {len(after)} of {new} are known: {after[0]} …")


def screen(drill: World, new: str) -> None:
    """Test the new machine before it takes work."""
    check = drill.proposal("deep_health_check", new)
    drill.say(f"proposed: {check['why']}")
    sent = drill.approve(check)
    drill.show(sent)
    expect(sent["status"] == "accepted", f"the check is {sent['status']}, not accepted")
    drill.pass_time(5)
    drill.reaches(check, "waiting")
    drill.pass_time(80)
    done = drill.reaches(check, "verified")
    expect("passed" in str(done["outcome"]), "a check that passed is not said to have")
    expect(drill.calls(CHECK) == 1, f"{drill.calls(CHECK)} checks were asked for, not one")


def lost_answer(say: Say) -> None:
    """The order is taken, and its answer never comes."""
    with world(say) as drill:
        replace = begin(drill)
        drill.sagemaker.set_fault(Fault(REPLACE, 500, after=True, times=1))
        sent = drill.approve(replace)
        drill.show(sent)
        expect(sent["status"] == "unknown", f"without an answer it is {sent['status']}")
        drill.pass_time(3)
        drill.reaches(replace, "waiting")
        drill.pass_time(30)
        drill.reaches(replace, "verified")
        linked(drill, replace)
        expect(drill.calls(REPLACE) == 1, f"{drill.calls(REPLACE)} orders went out, not one")
        drill.verify_audit()


def karpenter(say: Say) -> None:
    """Nothing comes back by itself, and nobody waits for it."""
    with world(say, autoscaler="Karpenter") as drill:
        replace = begin(drill)
        old = drill.sagemaker.node(OLD)
        drill.show(drill.approve(replace))
        drill.pass_time(10)
        done = drill.reaches(replace, "verified")
        expect("nothing comes back" in str(done["outcome"]).lower(), "it is not told in words")
        expect(drill.links(replace) == (), "a machine is linked that never came")
        drill.sagemaker.pods_wait(old)
        drill.pass_time(20)
        names = {one.instance_id for one in drill.service.context.providers[CLUSTER].machines()}
        expect(OLD not in names, f"{OLD} is still there")
        drill.say(f"pods waited, and {len(names)} machines are there again")
        expect(drill.calls(REPLACE) == 1, f"{drill.calls(REPLACE)} orders went out, not one")
        drill.verify_audit()


def platform_faster(say: Say) -> None:
    """The platform replaces the machine by itself before the approval."""
    with world(say) as drill:
        replace = begin(drill)
        drill.sagemaker.platform_replaces(OLD)
        drill.say(f"the platform begins to replace {OLD} by itself")
        sent = drill.approve(replace)
        drill.show(sent)
        expect(sent["status"] == "waiting", f"it is {sent['status']}, not waiting")
        expect("already under way" in str(sent["outcome"]).lower(), "it is not told in words")
        drill.pass_time(30)
        drill.reaches(replace, "verified")
        linked(drill, replace)
        expect(drill.calls(REPLACE) == 0, "an order went out for what was under way already")
        drill.verify_audit()


def check_with_teeth(say: Say) -> None:
    """A machine fails its deep health check, and the platform replaces it by itself."""
    with world(say) as drill:
        drill.post_recorded(TRANSIENT)
        drill.sagemaker.node(TRANSIENT).check_ends = "replace"
        check = drill.proposal("deep_health_check", TRANSIENT)
        expect(drill.sagemaker.calls == [], "a check was begun that nobody approved")
        sent = drill.approve(check)
        drill.show(sent)
        expect(drill.results(check) == [], "a result is told before there is one")
        drill.pass_time(5)
        drill.reaches(check, "waiting")
        expect(drill.results(check) == ["running"], f"its result is {drill.results(check)}")
        drill.pass_time(67)
        drill.reaches(check, "waiting", "the platform is replacing it by itself")
        drill.pass_time(30)
        drill.reaches(check, "verified")
        expect(drill.results(check) == ["failed"], f"its result is {drill.results(check)}")
        linked(drill, check, TRANSIENT)
        orders = [call.operation for call in drill.sagemaker.calls]
        expect(orders == [CHECK], f"the orders were {orders}")
        drill.verify_audit()


SCENES: Mapping[str, Callable[[Say], None]] = {
    "whole_life": whole_life,
    "lost_answer": lost_answer,
    "karpenter": karpenter,
    "platform_faster": platform_faster,
    "check_with_teeth": check_with_teeth,
}
