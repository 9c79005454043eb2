"""Do all paths on the CPU give the integers of the definition, for every dtype and layout?"""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.witness_fingerprints.definition import (
    DTYPES,
    LAYOUTS,
    defined,
    drawn,
    laid_out,
    tensors,
)
from witness.ddp.fingerprints import compiled, fingerprints, layout, reference

KEYS = st.one_of(st.just(0), st.integers(0, 2**64 - 1))
VERSIONS = st.sampled_from((1, 2))


def both(tensor: Tensor, version: int, key: int, start: int = 0) -> tuple[list[int], list[int]]:
    by_torch = reference.sums(tensor, version, key, start)
    in_c = compiled.sums([tensor], version, key, start)
    assert by_torch.dtype == in_c.dtype == torch.int64
    return by_torch.tolist(), in_c[0].tolist()


@settings(max_examples=80, deadline=None)
@given(tensors(), VERSIONS, KEYS)
def test_plain_torch_and_c_give_the_sums_of_the_definition(
    tensor: Tensor, version: int, key: int
) -> None:
    want = defined(tensor, version, key)
    assert both(tensor, version, key) == (want, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_and_layout_reads_in_its_logical_order(dtype: torch.dtype) -> None:
    for n, way in enumerate(LAYOUTS):
        tensor = laid_out(drawn(dtype, (5, 3, 4, 7), n), way)
        want = defined(tensor, 2, 77)
        assert both(tensor, 2, 77) == (want, want), way


@settings(max_examples=50, deadline=None)
@given(
    tensors(),
    VERSIONS,
    KEYS,
    st.one_of(
        st.integers(0, 2**62),
        st.integers(-40, 40).map(lambda n: 2**32 + n),
        st.integers(-40, 40).map(lambda n: 2**33 + n),
        st.integers(-40, 40).map(lambda n: 2**34 + n),
    ),
)
@example(torch.tensor(7477096074775441324), 2, 0, 2**61)
@example(torch.tensor([1.5, -2.0]), 2, 7, 2**62)
def test_positions_go_on_past_thirty_two_bits(
    tensor: Tensor, version: int, key: int, start: int
) -> None:
    start -= start % 4  # a whole word, for elements of one byte too
    want = defined(tensor, version, key, start)
    assert both(tensor, version, key, start) == (want, want)


@pytest.mark.parametrize("size", layout.INTEGERS)
@pytest.mark.parametrize("extreme", ["lowest", "highest", "all bits"])
def test_extreme_elements_overflow_no_narrow_lane(size: int, extreme: str) -> None:
    dtype = layout.INTEGERS[size]
    limits = torch.iinfo(dtype)
    value = {
        "lowest": limits.min,
        "highest": limits.max,
        "all bits": limits.max if size == 1 else -1,
    }
    row = torch.full((132_001,), value[extreme], dtype=dtype)
    n = row.numel()
    element = int(row[0])
    one, two, three = compiled.sums([row], 2, 5)[0].tolist()
    assert [one, two] == [signed_64(element * n), signed_64(element * n * (n + 1) // 2)]
    assert [one, two, three] == reference.sums(row, 2, 5).tolist()


def signed_64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def test_parts_add_up_to_the_whole() -> None:
    whole = drawn(torch.bfloat16, (40_000,), 3)
    for version in (1, 2):
        parts = [
            compiled.sums([whole[n : n + 8000]], version, 9, n) for n in range(0, 40_000, 8000)
        ]
        assert torch.equal(torch.cat(parts).sum(0), compiled.sums([whole], version, 9)[0])


def test_a_large_view_is_copied_block_by_block_and_gives_the_same() -> None:
    matrix = drawn(torch.int16, (501, 333), 4).t()
    want = defined(matrix, 2, 6)
    blocks = [
        (block, table[n * layout.TABLE_COLUMNS + 3])
        for table, kept in layout.tables([matrix], held_bytes=20_000)
        for n, block in enumerate(kept)
    ]
    assert len(blocks) > 10
    parts = torch.stack([reference.sums(block, 2, 6, start) for block, start in blocks])
    assert parts.sum(0).tolist() == want
    assert fingerprints([matrix], version=2, key=6)[0].tolist() == want


def test_a_lazy_conjugate_and_a_lazy_negation_are_read_as_what_they_stand_for() -> None:
    tensor = drawn(torch.complex64, (9, 4), 5).nan_to_num(0.5)
    for lazy in (tensor.conj(), tensor.conj().imag, tensor.conj().t()):
        real = lazy.clone().resolve_conj().resolve_neg()
        assert fingerprints([lazy]).tolist() == fingerprints([real]).tolist() == [defined(real)]


def test_complex128_is_read_as_its_real_and_imaginary_part_in_turn() -> None:
    tensor = torch.randn(30, 4, dtype=torch.complex128)
    as_floats = torch.view_as_real(tensor)
    for version in (1, 2):
        got = fingerprints([tensor, tensor.t()], version=version)
        assert got[0].tolist() == defined(as_floats, version)
        assert got[1].tolist() == defined(as_floats.transpose(0, 1), version)


@pytest.mark.parametrize("dtype", layout.INTEGERS.values(), ids=str)
def test_the_form_for_gpus_without_triton_gives_the_same_margins(dtype: torch.dtype) -> None:
    matrix = drawn(dtype, (700, reference.COLUMNS), 6)
    here, there = (reference._margins(matrix, convert=way) for way in (True, False))
    assert torch.equal(here[0], there[0])
    assert torch.equal(here[1], there[1])
