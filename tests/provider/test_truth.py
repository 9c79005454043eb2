"""Is what an order is said to have done what it did, through any number of faults and changes?"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cluster.provider.ports import Answer, MachineAnswer, ProviderPort, TestRequest
from app.cluster.provider.registry import providers
from tests.doubles.sagemaker import Fault, SagemakerDouble, throttled
from tests.provider.conftest import IDS

STRANGER = "i-0c0ffee0000000099"
NOTHING_ORDERED = (Answer.REFUSED, Answer.GONE, Answer.FAILED, Answer.UNDER_WAY)

FAULTS = st.sampled_from(
    [None, None, None, Fault("*", 500), Fault("*", 500, after=True), Fault("*", html=True),
     Fault("*", 200, html=True, after=True), Fault("*", half=True), Fault("*", reset=True),
     Fault("*", reset=True, after=True), throttled("*"), throttled("*", after=True),
     throttled("*", after=True, status=503), Fault("*", 400, "AccessDeniedException"),
     Fault("*", 400, "ValidationException")]
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "reboot", "test", "platform", "time"]),
        st.integers(0, 3),
        FAULTS,
    ),
    min_size=3,
    max_size=12,
)


def order(port: ProviderPort, what: str, ids: list[str]) -> tuple[MachineAnswer, ...]:
    if what == "replace":
        return port.replace(ids)
    if what == "reboot":
        return port.reboot(ids)
    return port.test(TestRequest({"gpu": tuple(ids)}, ("InstanceStress",)))


def begun(double: SagemakerDouble, what: str) -> list[str]:
    """Name the machines for which something of this kind was begun, once for each time."""
    if what != "test":
        return [one for by, one in double.machines.begun if by == what]
    parts = [part for one in double.checks.operations for part in one.configurations]
    return [one for part in parts for one in part["InstanceIds"]]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_every_answer_is_true(
    credentials: None, steps: list[tuple[str, int, Fault | None]]
) -> None:
    with SagemakerDouble(IDS) as double:
        limits = {"connect_timeout_s": 1.0, "read_timeout_s": 5.0}
        configured = providers({"alpine": double.entry(**limits)})
        port = configured.port("alpine")
        for what, number, fault in steps:
            if what == "time":
                double.advance(minutes=5 * (number + 1))
            elif what == "platform":
                if IDS[number] in double.cluster.nodes and not double.node(IDS[number]).under_way:
                    double.platform_replaces(IDS[number])
            else:
                _order_and_compare(double, port, what, number, fault)
        configured.close()


def _order_and_compare(
    double: SagemakerDouble, port: ProviderPort, what: str, number: int, fault: Fault | None
) -> None:
    ids = [IDS[number], STRANGER, f"hyperpod-{IDS[0]}"] if what != "test" else [IDS[number]]
    before, calls = len(begun(double, what)), len(double.calls)
    double.faults.clear()
    if fault is not None:
        # Only the order itself is hit; what is read afterwards is read truly.
        double.set_fault(Fault(**{**vars(fault), "times": 1}))
    answers = order(port, what, ids)
    assert len(answers) == len(ids)
    assert len(double.calls) <= calls + 1
    new = begun(double, what)[before:]
    for one in answers:
        if one.answer is Answer.ACCEPTED:
            assert one.instance_id in new, (what, one)
        elif one.answer in NOTHING_ORDERED and not _settled_later(what, one):
            assert one.instance_id not in new, (what, one)


def _settled_later(what: str, answer: MachineAnswer) -> bool:
    """Tell of a refusal that only the list of requests can contradict: the order looks there."""
    return what == "test" and answer.code == "ThrottlingException"
