"""How is an order checked before it is sent, and what became of it for each machine?

The client checks neither patterns nor upper limits nor names: 26 ids, or a node's name in place of
an id, would go out. HTTP 200 says nothing about a machine: the two lists in the answer do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.cluster.errors import ClusterError
from app.cluster.provider.calls import NotTaken, SagemakerCalls
from app.cluster.provider.failures import THROTTLED, Said, plain
from app.cluster.provider.ports import (
    CHECKS,
    FAILURE,
    RUNNING,
    Answer,
    MachineAnswer,
    TestRequest,
)

SLICE = 25
TEST_LIMIT = 500  # machines of one group
GROUP_LIMIT = 99
INSTANCE = re.compile(r"i-(?:[0-9a-f]{17}|[0-9a-f]{8})")
GROUP = re.compile(r"(?=.{1,63}\Z)[a-zA-Z0-9](?:-*[a-zA-Z0-9])*")

# What each code of a refused machine means.  A wrong status is a no of the service; whether the
# platform is already replacing the machine is for the caller to see by looking at it.
CODES = {
    "InstanceIdNotFound": (Answer.GONE, "SageMaker knows no machine of this id"),
    "InstanceIdInUse": (Answer.UNDER_WAY, "something is already being done to this machine"),
    "InvalidInstanceStatus": (Answer.REFUSED, "its status does not allow this"),
    "InternalServerError": (Answer.FAILED, "SageMaker failed and did nothing"),
}

Answers = dict[str, MachineAnswer]


def batch(
    calls: SagemakerCalls, operation: str, cluster: str, instance_ids: Sequence[str]
) -> tuple[MachineAnswer, ...]:
    """Order something for machines, 25 a call, each once; an answer for each, in their order."""
    answers: Answers = {}
    good: list[str] = []
    for one in dict.fromkeys(instance_ids):
        if INSTANCE.fullmatch(one):
            good.append(one)
        else:
            answers[one] = refused(one, f"{plain(one)!r} is no instance id: nothing was sent.")
    stopped: str | None = None
    for part in _slices(good):
        if stopped is not None:
            words = f"It was not sent, since an earlier call went wrong: {stopped}"
            answers |= {one: MachineAnswer(one, Answer.FAILED, words) for one in part}
            continue
        taken = calls.order(operation, ClusterName=cluster, NodeIds=part)
        if isinstance(taken, NotTaken):
            # The next slice would meet the same; and after a riddle nothing more is destroyed.
            stopped = taken.message
            answers |= {one: _looked_at(calls, cluster, one, taken) for one in part}
        else:
            answers |= _each(part, taken)
    return tuple(answers[one] for one in instance_ids)


def _slices(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), SLICE):
        yield list(ids[start : start + SLICE])


def _each(part: Sequence[str], answer: Mapping[str, Any]) -> Answers:
    """Read the two lists; either may be missing, and an id in neither, or in both, is unknown."""
    taken = {str(one) for one in answer.get("Successful") or ()}
    failed = {str(one.get("NodeId")): one for one in answer.get("Failed") or ()}
    found: Answers = {}
    for one in part:
        if one in taken and one in failed:
            words = "SageMaker names it both as taken and as refused: nobody knows."
            found[one] = MachineAnswer(one, Answer.UNKNOWN, words)
        elif one in taken:
            found[one] = MachineAnswer(one, Answer.ACCEPTED, "SageMaker took the order.")
        elif one in failed:
            found[one] = _failed(one, failed[one])
        else:
            words = (
                "SageMaker's answer does not name this machine: whether it was taken is not known."
            )
            found[one] = MachineAnswer(one, Answer.UNKNOWN, words)
    return found


def _failed(instance_id: str, said: Mapping[str, Any]) -> MachineAnswer:
    code, message = str(said.get("ErrorCode") or "no code"), plain(said.get("Message") or "")
    # A code that we do not know may mean anything, also that something was begun.
    answer, words = CODES.get(code, (Answer.UNKNOWN, "SageMaker gives a reason that is not known"))
    tail = f"{code}: {message}" if message else code
    return MachineAnswer(instance_id, answer, f"Not ordered: {words} ({tail}).", code)


def _not_taken(instance_id: str, taken: NotTaken) -> MachineAnswer:
    return MachineAnswer(instance_id, taken.answer, taken.message, taken.code)


def _looked_at(
    calls: SagemakerCalls, cluster: str, instance_id: str, taken: NotTaken
) -> MachineAnswer:
    """Look at a machine after a refusal for too many requests: it has been seen to be taken."""
    answer = _not_taken(instance_id, taken)
    if taken.code not in THROTTLED or taken.answer is not Answer.FAILED:
        return answer
    try:
        said = calls.try_reading("describe_cluster_node", ClusterName=cluster, NodeId=instance_id)
    except ClusterError:
        return answer
    details = {} if isinstance(said, Said) else said.get("NodeDetails") or {}
    status = str((details.get("InstanceStatus") or {}).get("Status") or "not found")
    if status in (RUNNING, FAILURE):
        return answer
    words = (
        f"SageMaker refused for too many requests ({taken.code}), and yet the machine is {status}: "
        "whether the order was taken is not known."
    )
    return MachineAnswer(instance_id, Answer.UNKNOWN, words, taken.code)


def refused(instance_id: str, words: str) -> MachineAnswer:
    """Say that an order was stopped here, before it was sent."""
    return MachineAnswer(instance_id, Answer.REFUSED, words)


def test(calls: SagemakerCalls, cluster: str, request: TestRequest) -> tuple[MachineAnswer, ...]:
    """Order deep health checks in one call; an answer for each machine, in the request's order.

    Accepted means that SageMaker took the request: it may still skip a machine that is busy.
    """
    ids = [one for group in request.machines.values() for one in group]
    wrong = _wrong_with(request)
    if wrong is not None:
        return tuple(refused(one, f"Nothing was sent: {wrong}.") for one in ids)
    configurations = [
        {
            "InstanceGroupName": group,
            "InstanceIds": list(machines),
            "DeepHealthChecks": list(request.checks),
        }
        for group, machines in request.machines.items()
    ]
    taken = calls.order(
        "start_cluster_health_check",
        ClusterName=cluster,
        DeepHealthCheckConfigurations=configurations,
    )
    if isinstance(taken, NotTaken):
        return tuple(_not_taken(one, taken) for one in ids)
    if not taken.get("ClusterArn"):
        words = "SageMaker's answer does not name the cluster: whether it was taken is not known."
        return tuple(MachineAnswer(one, Answer.UNKNOWN, words) for one in ids)
    words = "SageMaker took the request; it gives no result with that."
    return tuple(MachineAnswer(one, Answer.ACCEPTED, words) for one in ids)


def _wrong_with(request: TestRequest) -> str | None:
    """Find what is wrong with a request; None: nothing.

    A group without machines would test, and perhaps replace, all of it.
    """
    ids = [one for group in request.machines.values() for one in group]
    unknown = [one for one in request.checks if one not in CHECKS]
    bad = [one for one in ids if not INSTANCE.fullmatch(one)]
    rules = (
        (not request.machines or not all(request.machines.values()), "a group names no machine"),
        (len(request.machines) > GROUP_LIMIT, f"more than {GROUP_LIMIT} groups"),
        (not all(GROUP.fullmatch(one) for one in request.machines), "a group has no proper name"),
        (any(len(one) > TEST_LIMIT for one in request.machines.values()),
         f"more than {TEST_LIMIT} machines of one group"),
        (len(set(ids)) != len(ids), "a machine is named twice"),
        (bool(bad), f"{plain(bad[0])!r} is no instance id" if bad else ""),
        (not request.checks, "no check is named"),
        (len(set(request.checks)) != len(request.checks), "a check is named twice"),
        (bool(unknown), f"there is no check {plain(unknown[0])!r}" if unknown else ""),
    )  # fmt: skip
    return next((words for broken, words in rules if broken), None)
