"""What does the GPU's kernel give in Triton's interpreter, and what does it compile to?

A program of its own: Triton lies beside the environment and must not come into the tests' process.
Prints one JSON object. `interpret` runs the kernel on CPU tensors, TRITON_INTERPRET=1 set before;
`compile` makes code for an H100 without one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from tests.witness_fingerprints.definition import DTYPES, LAYOUTS, drawn, laid_out
from witness.ddp.fingerprints import compiled, fingerprints, on_gpu, path, triton_kernel

SIGNATURE = {
    "told": "*i64", "owner": "*i64", "out": "*i64",
    "sums": "constexpr", "size": "constexpr", "block": "constexpr", "most": "constexpr",
}  # fmt: skip


def material() -> list[torch.Tensor | None]:
    """Give tensors of every dtype in one list: odd lengths, odd addresses, several programs."""
    tensors: list[torch.Tensor | None] = [None]
    for n, dtype in enumerate(DTYPES):
        tensors.append(laid_out(drawn(dtype, (3, 5, 4, 7), n), LAYOUTS[n % len(LAYOUTS)]))
    for n, dtype in enumerate((torch.uint8, torch.bfloat16, torch.float32, torch.float64)):
        span = on_gpu.SPAN * max(4 // dtype.itemsize, 1)
        whole = drawn(dtype, (span + 5,), n)
        tensors += [whole, whole[1:], whole[:1], whole[:0], None]
    return tensors


def interpret() -> dict[str, Any]:
    os.environ["WITNESS_FINGERPRINTS"] = "triton"
    # The interpreter is slow: programs of a quarter, and as many branches.
    on_gpu.STEPS //= 4
    on_gpu.SPAN //= 4
    tensors = material()
    different = []
    for version, key, those in ((1, 0, tensors[::2]), (2, 0xFEDCBA9876543210, tensors)):
        in_triton = fingerprints(those, version=version, key=key)
        in_c = compiled.sums(those, version, key)
        different += (in_triton != in_c).any(1).nonzero().flatten().tolist()
    return {
        "path": path(torch.device("cpu")),
        "tensors": len(tensors),
        "different": different,
        "nothing": [list(fingerprints([]).shape), fingerprints([None]).tolist()],
    }


def compile_all() -> list[dict[str, Any]]:
    import triton  # type: ignore[import-not-found]
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found]
    from triton.compiler import ASTSource  # type: ignore[import-not-found]

    made = []
    for size in (1, 2, 4, 8):
        for sums in (2, 3):
            constants = {"sums": sums, "size": size, "block": on_gpu.BLOCK, "most": on_gpu.STEPS}
            source = ASTSource(triton_kernel.add_sums, SIGNATURE, constants)
            target = GPUTarget("cuda", 90, 32)
            code = triton.compile(source, target=target, options={"num_warps": on_gpu.WARPS})
            used = usage(code.asm["cubin"], Path(triton.__file__).parent)
            loads = sorted(set(re.findall(r"ld\.global\.[.\w]+", code.asm["ptx"])))
            made.append({"size": size, "sums": sums, "loads": loads, **used})
    return made


def usage(cubin: bytes, triton_folder: Path) -> dict[str, int]:
    """Give registers and spilled bytes of compiled code, as the vendor's tool reads them."""
    file = Path(os.environ["TRITON_CACHE_DIR"]) / "code.cubin"
    file.write_bytes(cubin)
    tool = triton_folder / "backends/nvidia/bin/cuobjdump"
    said = subprocess.run(
        [str(tool), "-res-usage", str(file)], check=True, capture_output=True, text=True
    ).stdout
    return {
        name: int(re.findall(rf"{word}:(\d+)", said)[0])
        for name, word in (("registers", "REG"), ("stack", "STACK"), ("spilled", "LOCAL"))
    }


if __name__ == "__main__":
    result = interpret() if sys.argv[1] == "interpret" else compile_all()
    sys.stdout.write(json.dumps(result))
