"""Is the number of a slice's hosts worked out only from what can be read?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.slices import hosts_of_slice


@pytest.mark.parametrize(
    ("topology", "chips", "hosts"),
    [
        ("4x4", 4, 4),
        ("2x2", "4", 1),
        ("4x4x8", 4, 32),
        ("2x4", 8, 1),
        ("4x4", 3, None),
        ("4x4", 0, None),
        ("4x4", None, None),
        ("", 4, None),
        (None, 4, None),
        ("0x4", 4, None),
        ("four", 4, None),
    ],
)
def test_hosts(topology: str | None, chips: object, hosts: int | None) -> None:
    assert hosts_of_slice(topology, chips) == hosts


@given(st.text(), st.text())
def test_any_text_has_an_answer(topology: str, chips: str) -> None:
    found = hosts_of_slice(topology, chips)
    assert found is None or found >= 1
