"""Does a fault say exactly where, what and when, in words of Python and of a command line?"""

from __future__ import annotations

import pytest

from witness.inject import Fault


def test_a_fault_is_built_by_where_what_and_when() -> None:
    fault = Fault.on(rank=13, layer="blocks.1.down").multiply(1000, element=7).since(23)
    assert (fault.rank, fault.layer, fault.mode, fault.place) == (
        13,
        "blocks.1.down",
        "multiply",
        "output",
    )
    assert [step for step in (22, 23, 24, 10**6) if fault.due(step)] == [23, 24, 10**6]
    assert [step for step in range(40) if fault.once(30).due(step)] == [30]
    assert [step for step in range(40) if fault.since(3, last=5).due(step)] == [3, 4, 5]


def test_every_place_has_a_word() -> None:
    fault = Fault.on(0, "blocks.1.down").flip(22)
    assert fault.in_gradient().place == "gradient"
    assert fault.in_weight_gradient().place == "weight gradient"
    assert fault.in_weights("bias").parameter == "bias"
    assert fault.in_contribution().place == "contribution"
    assert fault.in_reduced().place == "reduced"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "rank=13,layer=blocks.1.down,mode=multiply,factor=1000,since=23",
            Fault.on(13, "blocks.1.down").multiply(1000).since(23),
        ),
        ("rank=1, mode=nan, once=25", Fault.on(1).nan().once(25)),
        (
            "rank=0,layer=head,mode=flip,bit=22,place=weights,once=31",
            Fault.on(0, "head").flip(22).in_weights().once(31),
        ),
        ("rank=2,mode=pair,factor=4096,last=9", Fault.on(2).pair(4096).since(0, last=9)),
    ],
)
def test_a_command_line_says_the_same(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("layer=head", "needs a rank"),
        ("rank=1,colour=red", "'colour=red' is none of"),
        ("rank=1,mode", "'mode' is none of"),
        ("rank=1,mode=melt", "mode must be one of"),
        ("rank=1,place=moon", "place must be one of"),
        ("rank=one", "invalid literal"),
        ("rank=1,share=0", "share must be above 0"),
    ],
)
def test_nonsense_is_refused_with_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Fault.parse(text)
