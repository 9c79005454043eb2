"""Does an audit go through a model that torch.compile has traced?"""

from __future__ import annotations

from tests.witness_checks.compiled import healthy_and_faulty
from witness.simulate import fleet


def test_a_traced_model_is_audited_like_any_other() -> None:
    results = fleet.run(3, 1, healthy_and_faulty, timeout_s=100)
    for alarms, left, faulty in results:
        assert alarms == [None, None, None]
        assert len(left) == 1
        assert (faulty["step"], faulty["culprits"]) == (2, [1])
        assert faulty["tensors"] == ["_orig_mod.last.weight"]
