"""Is nothing said to be done that nobody saw done, and nothing waited for that cannot be seen?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.cluster import registry as cluster_registry
from app.store import machine_links
from tests.orders.conftest import MakeYard
from tests.orders.yard import Yard, instance

REBOOT = "BatchRebootClusterNodes"
SLURM = {"orchestrator": "Slurm", "continuous": False}


def _in_use(number: int) -> dict[str, object]:
    failed = {"NodeId": instance(number), "ErrorCode": "InstanceIdInUse", "Message": "busy"}
    return {"status": 200, "body": {"Failed": [failed]}}


def test_a_machine_in_use_that_was_never_seen_down_is_not_restarted(
    make_yard: MakeYard,
) -> None:
    yard = make_yard(**SLURM)
    yard.sagemaker.answer_with(REBOOT, _in_use(1))
    sent = yard.run(yard.approve("reboot", 1))
    assert sent.status == "waiting", sent.outcome
    yard.pass_time(10)
    assert yard.row(sent.id).status == "waiting"
    yard.sagemaker.node(instance(1)).status = "SystemUpdating"
    yard.pass_time(10)
    yard.sagemaker.node(instance(1)).status = "Running"
    yard.pass_time(10)
    row = yard.row(sent.id)
    assert row.status == "waiting"
    assert "nothing shows that it started anew" in str(row.details["standing"])
    yard.pass_time(30)
    assert yard.row(sent.id).status == "failed"


def test_a_replacement_by_others_that_never_came_closes_the_node_to_nothing_else(
    make_yard: MakeYard,
) -> None:
    yard = make_yard()
    yard.sagemaker.answer_with("BatchReplaceClusterNodes", _in_use(1))
    sent = yard.run(yard.approve("replace", 1))
    yard.pass_time(60, step=10)
    assert yard.row(sent.id).status == "waiting"
    yard.pass_time(45, step=10)
    row = yard.row(sent.id)
    assert row.status == "failed"
    assert "Nothing was ordered from here" in str(row.outcome)
    again = yard.run(yard.approve("replace", 1))
    assert again.status == "accepted", again.outcome


def test_a_machine_without_kubernetes_that_was_seen_down_is_restarted(
    make_yard: MakeYard,
) -> None:
    yard = make_yard(**SLURM)
    sent = yard.run(yard.approve("reboot", 1))
    yard.pass_time(30, step=2)
    done = yard.row(sent.id)
    assert done.status == "verified", done.details
    assert "was seen down and runs again" in str(done.outcome)


def test_where_no_kubernetes_is_configured_the_providers_word_is_enough(
    make_yard: MakeYard, tmp_path: Path
) -> None:
    yard = make_yard()
    alone = replace(yard.context, clusters=cluster_registry.clusters({}))
    yard = replace(yard, context=alone)
    sent = yard.run(yard.approve("replace", 1))
    assert sent.status == "accepted", sent.outcome
    yard.pass_time(90)
    done = yard.row(sent.id)
    assert done.status == "verified", done.details
    assert str(done.outcome).endswith("took its place and runs.")


def test_a_new_machine_in_a_group_that_is_one_short_may_be_in_the_place_of_another(
    make_yard: MakeYard,
) -> None:
    yard = make_yard(keeps_logical_id=False, continuous=False)
    sent = yard.run(yard.approve("replace", 1))
    for number in (1, 2):  # the platform takes the second one by itself
        yard.sagemaker.cluster.nodes.pop(instance(number))
    yard.sagemaker.add(instance(9)).launched = yard.context.now()
    yard.pass_time(1)
    row = yard.row(sent.id)
    assert "No machine is known yet" in str(row.details["standing"])
    assert not _links(yard, sent.id)


def _links(yard: Yard, proposal_id: int) -> tuple[machine_links.MachineLink, ...]:
    with yard.context.store.reading() as connection:
        return machine_links.of_proposal(connection, proposal_id)
