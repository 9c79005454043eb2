"""Which alarm documents and rank maps do the tests of the rules share?"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from witness.rules.alarm import Alarm, read_alarm
from witness.rules.topology import Place, Topology


def compute(
    nonfinite: list[int] | None = None,
    pairs: list[list[int]] | None = None,
    culprits: list[int] | None = None,
    verdicts: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Write a compute alarm."""
    return {
        "check": "compute",
        "step": 30,
        "nonfinite": nonfinite or [],
        "mismatched_pairs": pairs or [],
        "culprits": culprits or [],
        "verdicts": verdicts or [],
        **more,
    }


def verdict(
    kind: str, pair: tuple[int, int] = (13, 5), third: int | None = 21, suspect: int | None = 13
) -> dict[str, Any]:
    """Write one verdict; the defaults are rank 13 held suspect on four or more nodes."""
    return {"pair": list(pair), "third": third, "suspect": suspect, "kind": kind}


def weights(**more: Any) -> dict[str, Any]:
    """Write a weights alarm; give `suspects` to say whom it names."""
    return {"check": "weights", "step": 40, **more}


def reduced(**more: Any) -> dict[str, Any]:
    """Write a reduced gradient alarm."""
    return {"check": "reduced gradient", "step": 40, "suspect_window": [40, 40], **more}


def alarm(document: dict[str, Any]) -> Alarm:
    """Read a document that is known to be well formed."""
    return read_alarm(document)


def instance(node: int) -> str:
    """Name an instance of the invented fleet."""
    return f"i-0c0ffee0000000{node:03x}"


def layout(nodes: int = 4, gpus: int = 8, **more: Any) -> Topology:
    """Place ranks in node order, `gpus` to a node."""
    places = [
        Place(
            rank=rank,
            node=f"hyperpod-{instance(rank // gpus + 1)}",
            instance_id=instance(rank // gpus + 1),
            gpu_uuid=f"GPU-a0000{rank // gpus + 1:03x}-1111-4222-8333-{rank % gpus:012x}",
        )
        for rank in range(nodes * gpus)
    ]
    return Topology.from_places(places, nodes * gpus, **more)


_RANK = st.integers(0, 40)
_MAYBE_RANK = st.none() | _RANK
_RANKS = st.lists(_RANK, max_size=6)
_PAIR = st.lists(_RANK, min_size=2, max_size=2)
_KIND = st.sampled_from(
    [
        "persistent",
        "transient",
        "unclear",
        "replayer computed wrong",
        "unattributable",
        "something new",
    ]
)
_VERDICT = st.fixed_dictionaries(
    {"pair": _PAIR, "third": _MAYBE_RANK, "suspect": _MAYBE_RANK, "kind": _KIND}
)
_STEP = st.none() | st.integers(0, 60)
_WINDOW = st.none() | st.lists(st.integers(0, 60), min_size=2, max_size=2).map(sorted)
_COUNT = st.none() | st.integers(1, 48)

DOCUMENTS = st.fixed_dictionaries(
    {
        "check": st.sampled_from(["compute", "compute", "weights", "reduced gradient", "quantum"]),
        "step": st.integers(0, 2**63 - 1),
    },
    optional={
        "nonfinite": _RANKS,
        "mismatched_pairs": st.lists(_PAIR, max_size=6),
        "culprits": _RANKS,
        "verdicts": st.lists(_VERDICT, max_size=3),
        "suspects": st.none() | _RANKS,
        "suspect_window": _WINDOW,
        "last_audit_pass": _STEP,
        "last_weight_check_pass": _STEP,
        "world_size": _COUNT,
        "peer_offset": _COUNT,
    },
)
"""Any well-formed alarm, many of them contradicting themselves."""

_NODE = st.sampled_from([None, "a", "b", "c", "d"])
LAYOUTS = st.none() | st.builds(
    lambda nodes, size: Topology.from_places(
        [Place(rank, node) for rank, node in enumerate(nodes)], size
    ),
    st.lists(_NODE, max_size=41),
    st.integers(1, 48),
)
"""No map, or any map: short ones, with unknown nodes, with nodes in any order."""
