"""Are Xids told apart by class, and found in log lines of every spelling?"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.xid import AS_EVIDENCE, XIDS, pci_address, values_of_gauge, xid_in_line, xid_of

LINK = (
    "NVRM: Xid (PCI:0000:b9:00): 74, pid=<unknown>, name=<unknown>, "
    "NVLink: fatal error detected on link 6"
)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ((13, 31), "application"),
        ((43, 45), "side_effect"),
        ((48, 64, 74, 79, 94, 95, 140, 144, 150, 171), "hardware"),
        ((109, 119, 120), "driver"),
        ((154,), "recovery"),
        ((162, 165), "information"),
        ((1, 71, 999), "unknown"),
    ],
)
def test_classes(numbers: tuple[int, ...], kind: str) -> None:
    assert {xid_of(number).kind for number in numbers} == {kind}


def test_every_class_has_a_weight_and_an_unknown_one_is_not_harmless() -> None:
    assert {one.kind for one in XIDS.values()} | {"unknown"} == set(AS_EVIDENCE)
    assert AS_EVIDENCE["unknown"] == "hint"
    assert all(number == one.number for number, one in XIDS.items())


def test_an_agents_event_holds_the_xid_of_the_kernel() -> None:
    message = f'Node condition NvidiaErrorReboot is now: True, message: "{LINK}"'
    event = json.dumps({"details: ": {"reason": "XidHardwareFailure", "message": message}})
    found = xid_in_line(event)
    assert found is not None
    assert (found.pci, found.number) == ("0000:b9:00", 74)
    assert "fatal error detected on link 6" in found.message


def test_a_changed_recovery_action_is_read() -> None:
    line = (
        "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from "
        "0x0 (None) to 0x2 (Node Reboot Required)"
    )
    found = xid_in_line(line)
    assert found is not None
    assert (found.number, found.recovery) == (154, "Node Reboot Required")
    assert found.message.startswith("GPU recovery action changed")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Xid",
        "Xid (PCI:zz): 79",
        "SXid (PCI:0000:b9:00): 12028, link 3",
        "xid 79",
        "Xid (PCI:0000:b9:00): ",
    ],
)
def test_other_lines_hold_none(line: str) -> None:
    assert xid_in_line(line) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:b9:00", "0000:b9:00"),
        ("00000000:1B:00.0", "0000:1b:00"),
        ("0001:1b:00.0", "0001:1b:00"),
        ("00010000:1b:00.0", "10000:1b:00"),
        ("1b:00.0", "0000:1b:00"),
        ("nonsense", None),
        ("", None),
    ],
)
def test_pci_addresses_have_one_form(text: str, address: str | None) -> None:
    assert pci_address(text) == address


@given(st.text(max_size=200))
def test_any_line_is_read_or_not_but_never_fails(line: str) -> None:
    xid_in_line(line)
    xid_in_line(f"Xid (PCI:0000:b9:00): 79{line}")


def test_a_hostile_line_costs_no_time() -> None:
    assert xid_in_line("Xid (" * 100_000) is None
    assert xid_in_line("Xid (PCI:0000:b9:00): 79" + " " * 100_000) is not None


@given(st.lists(st.sampled_from([0.0, 31.0, 79.0]), min_size=1, max_size=30))
def test_stretches_of_the_gauge_cover_every_sample_once(values: list[float]) -> None:
    times = tuple(15.0 * at for at in range(len(values)))
    seen = values_of_gauge(times, values)
    assert seen[0].before is None
    assert [one.number for one in seen] == [
        round(value) for at, value in enumerate(values) if at == 0 or values[at - 1] != value
    ]
    for one, following in pairwise(seen):
        assert one.until == following.before
        assert following.at == following.before + 15
    assert seen[-1].until == times[-1]
