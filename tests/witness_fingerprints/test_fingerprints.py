"""What does a caller get, whichever path reads the tensors?"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import witness.ddp.fingerprints as subject
from tests.witness_fingerprints.definition import defined, drawn
from witness.ddp.fingerprints import build, compiled, fingerprints, fold, mixing, path

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(subject.VARIABLE, raising=False)
    subject._missing.cache_clear()
    yield
    subject._missing.cache_clear()


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise build.NotBuilt("no compiler")

    monkeypatch.setattr(compiled, "library", fails)


@pytest.fixture(params=["torch", "compiled"])
def each_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(subject.VARIABLE, request.param)
    return str(request.param)


def test_one_row_a_tensor_and_zeros_for_none_and_for_empty_ones(each_path: str) -> None:
    assert path(CPU) == each_path
    given_tensors = [None, torch.tensor(2.5), torch.empty(0, 3), torch.arange(5), None]
    for version in (1, 2):
        rows = fingerprints(given_tensors, version=version, key=3)
        assert (rows.dtype, tuple(rows.shape)) == (torch.int64, (5, version + 1))
        want = [[0] * (version + 1) if t is None else defined(t, version, 3) for t in given_tensors]
        assert rows.tolist() == want
        assert rows[2].tolist() == [0] * (version + 1)


def test_no_tensors_at_all_give_no_rows(each_path: str) -> None:
    assert path(CPU) == each_path
    assert fingerprints([]).shape == (0, 2)
    assert fingerprints([None, None], version=2).tolist() == [[0, 0, 0]] * 2


def test_parameters_are_read_without_a_gradient_and_left_as_they_are(each_path: str) -> None:
    assert path(CPU) == each_path
    layer = nn.Linear(7, 5)
    before = [one.detach().clone() for one in layer.parameters()]
    rows = fingerprints(list(layer.parameters()), version=2)
    assert not rows.requires_grad
    assert rows.tolist() == [defined(one, 2) for one in before]
    assert all(torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))


def test_the_key_changes_the_third_sum_alone(each_path: str) -> None:
    assert path(CPU) == each_path
    tensor = drawn(torch.float32, (100,), 1)
    zero, one, wrapped = (
        fingerprints([tensor], version=2, key=key)[0] for key in (0, 1, 2**64 + 1)
    )
    assert torch.equal(zero[:2], fingerprints([tensor], key=9)[0])
    assert torch.equal(zero[:2], one[:2])
    assert zero[2] != one[2]
    assert torch.equal(one, wrapped)


class Elsewhere(torch.Tensor):
    """Stands for a tensor on another device: another name of the one processor here."""

    device = torch.device("cpu", 0)


def test_rows_of_several_devices_come_to_the_first_one(each_path: str) -> None:
    assert path(CPU) == each_path
    elsewhere = torch.arange(7).as_subclass(Elsewhere)
    tensors = [None, torch.arange(3), elsewhere, None, torch.ones(2)]
    assert len({one.device for one in tensors if one is not None}) == 2
    rows = fingerprints(tensors, version=2, key=4)
    assert rows.device == CPU
    assert rows.tolist() == [[0] * 3 if t is None else defined(t, 2, 4) for t in tensors]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 1 or 2, not 3"):
        fingerprints([torch.ones(1)], version=3)


class Wrapped(torch.Tensor):
    """Stands for DTensor: a tensor whose data lie in another one."""

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(3, 3).to_sparse(),
        torch.ones(3, device="meta"),
        torch.ones(3).as_subclass(Wrapped),
    ],
    ids=["sparse", "meta", "wrapper"],
)
def test_tensors_without_bits_of_their_own_are_refused(
    tensor: torch.Tensor, each_path: str
) -> None:
    assert path(CPU) == each_path
    with pytest.raises(TypeError):
        fingerprints([tensor])


def test_a_freed_tensor_is_refused_and_not_read() -> None:
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory lies behind a tensor of 1000 elements"):
        fingerprints([torch.ones(2), freed])


def test_many_small_and_some_large_tensors_go_into_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensors = [drawn(torch.bfloat16, (n % 40,), n) for n in range(500)]
    tensors += [drawn(torch.float32, (70_000,), 1), drawn(torch.float64, (9000,), 2)]
    want = [defined(one, 2, 1) for one in tensors]
    calls = []
    real = compiled.library().witness_sums

    def counted(*cells: object) -> None:
        calls.append(cells)
        real(*cells)

    monkeypatch.setattr(compiled.library(), "witness_sums", counted)
    assert fingerprints(tensors, version=2, key=1).tolist() == want
    assert len(calls) == 1


def test_a_tensor_that_moved_is_read_where_it_lies_now() -> None:
    parameter = nn.Parameter(torch.ones(50_000))
    before = fingerprints([parameter])
    for n in range(5):
        parameter.data = torch.full((50_000,), float(n + 2))
        assert fingerprints([parameter]).tolist() == [defined(parameter)]
    assert not torch.equal(before, fingerprints([parameter]))


def test_other_threads_run_while_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    big = torch.zeros(60_000_000, dtype=torch.int32)
    turns, during, done = [0], list[int](), threading.Event()
    real = compiled.library().witness_sums

    def counted(*cells: object) -> None:
        before = turns[0]
        real(*cells)
        during.append(turns[0] - before)
        done.set()

    monkeypatch.setattr(compiled.library(), "witness_sums", counted)
    reader = threading.Thread(target=compiled.sums, args=([big] * 4,))
    reader.start()
    while not done.is_set():
        turns[0] += 1
    reader.join()
    assert during[0] > 1000


@pytest.mark.usefixtures("no_library")
def test_without_a_library_plain_torch_reads_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        rows = fingerprints([torch.arange(4)])
        fingerprints([torch.arange(4)])
    assert rows.tolist() == [defined(torch.arange(4))]
    assert path(CPU) == "torch"
    assert [one.getMessage() for one in caplog.records] == [
        "fingerprints on cpu are slow, in plain torch: NotBuilt: no compiler"
    ]


@pytest.mark.usefixtures("no_library")
def test_a_path_that_is_insisted_on_and_not_to_be_had_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(subject.VARIABLE, "compiled")
    with pytest.raises(RuntimeError, match="WITNESS_FINGERPRINTS=compiled: NotBuilt: no compiler"):
        fingerprints([torch.ones(1)])


def test_an_unknown_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(subject.VARIABLE, "fast")
    with pytest.raises(ValueError, match="one of auto, torch, compiled, triton, not 'fast'"):
        fingerprints([torch.ones(1)])


def test_gpu_tensors_without_triton_are_read_by_plain_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = torch.device("cuda", 0)
    assert path(gpu) == "torch"
    monkeypatch.setenv(subject.VARIABLE, "triton")
    with pytest.raises(RuntimeError, match="ModuleNotFoundError: No module named 'triton'"):
        path(gpu)
    # The variable speaks of GPU tensors; others are read as ever.
    assert path(CPU) == "compiled"


def test_devices_that_no_path_is_made_for_are_read_by_plain_torch() -> None:
    assert path(torch.device("xpu")) == "torch"


def test_an_unusable_cache_folder_still_gives_a_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled.library.cache_clear()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("a file, not a folder")
    monkeypatch.setenv("WITNESS_CACHE", str(in_the_way))
    monkeypatch.setenv(subject.VARIABLE, "compiled")
    assert fingerprints([torch.arange(9)]).tolist() == [defined(torch.arange(9))]
    compiled.library.cache_clear()


def folded(words: list[int]) -> int:
    return int(fold(torch.tensor(words, dtype=torch.int64)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40), st.data())
def test_fold_changes_with_any_word_its_place_and_the_length(
    words: list[int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    bit = data.draw(st.integers(0, 62))
    other = [word ^ (1 << bit) if n == place else word for n, word in enumerate(words)]
    assert folded(other) != folded(words)
    assert folded([*words, 0]) != folded(words)
    turned = [*words[1:], words[0]]
    assert (folded(turned) == folded(words)) == (turned == words)


def test_fold_reads_any_shape_and_layout_in_row_major_order() -> None:
    words = torch.arange(24).view(2, 3, 4)
    assert fold(words) == fold(words.reshape(-1)) == fold(words.reshape(4, 6))
    assert fold(words.transpose(0, 2)) == fold(words.transpose(0, 2).contiguous()) != fold(words)
    assert (fold(words).shape, fold(words).dtype) == ((), torch.int64)
    assert fold(torch.empty(0, 3, dtype=torch.int64)).shape == ()


def test_fold_is_the_mix_of_the_sum_of_mixed_words() -> None:
    words = [1, -2, 2**62, 0]
    places = [mixing.mix64((n + 1) * mixing.GAMMA) for n in range(len(words))]
    total = sum(mixing.mix64(word ^ place) for word, place in zip(words, places, strict=True))
    want = mixing.mix64(total + len(words) * mixing.GAMMA)
    assert folded(words) == mixing.signed(want, 64)


def test_fold_takes_whole_words_only() -> None:
    with pytest.raises(TypeError, match=r"words are int64, not torch\.int32"):
        fold(torch.ones(3, dtype=torch.int32))
