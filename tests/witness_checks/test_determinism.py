"""Does an audit step run deterministic kernels, and only that step?"""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from witness.ddp.determinism import CUBLAS, STRICT, advice, deterministic

GPU = torch.device("cuda", 0)


def settings() -> tuple[object, ...]:
    cuda = torch.backends.cuda
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
        cuda.flash_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
        torch._C._get_sdp_priority_order(),
    )


def test_settings_hold_inside_and_come_back_even_after_an_error() -> None:
    torch.backends.cudnn.benchmark = True
    before, inside = settings(), list[tuple[object, ...]]()

    def fail() -> None:
        inside.append(settings())
        raise KeyError

    try:
        with pytest.raises(KeyError), deterministic():
            fail()
        after = settings()
    finally:
        torch.backends.cudnn.benchmark = False
    # Deterministic, not only warned; no kernel chosen by timing; flash and math, no other.
    assert inside[0][:7] == (True, False, False, True, True, False, False)
    order = inside[0][7]
    assert isinstance(order, list)
    flash, math = (int(one) for one in STRICT)  # type: ignore[call-overload]
    assert order.index(flash) < order.index(math)
    assert after == before


def test_flash_comes_before_math_and_math_where_flash_cannot_run() -> None:
    query = torch.randn(1, 2, 8, 16)
    mask = torch.zeros(8, 8).requires_grad_()
    with deterministic():
        flash = scaled_dot_product_attention(query, query, query, is_causal=True)
        # A mask that wants a gradient is nothing for flash.
        scaled_dot_product_attention(query, query, query, attn_mask=mask).sum().backward()
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        alone = scaled_dot_product_attention(query, query, query, is_causal=True)
    assert torch.equal(flash, alone)
    with deterministic([SDPBackend.MATH]), sdpa_kernel(SDPBackend.MATH):
        inner = scaled_dot_product_attention(query, query, query, is_causal=True)
    assert torch.allclose(inner, alone, atol=1e-5)


def test_an_operator_without_a_deterministic_form_is_an_error() -> None:
    with deterministic(), pytest.raises(RuntimeError, match="deterministic"):
        torch.nn.functional.max_unpool1d(
            torch.ones(1, 1, 2), torch.tensor([[[0, 1]]]), kernel_size=[2]
        )


def test_warnings_only_come_back_as_they_were() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic():
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_advice_is_for_gpus_whose_products_would_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CUBLAS, raising=False)
    assert CUBLAS in advice(GPU, True)[0]
    assert advice(torch.device("cpu"), True) == ()
    assert advice(GPU, False) == ()
    monkeypatch.setenv(CUBLAS, ":4096:8")
    assert advice(GPU, True) == ()
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    assert "benchmark" in advice(GPU, False)[0]
    assert STRICT[0] == SDPBackend.FLASH_ATTENTION
