"""What goes wrong, on which rank, where in the model, and on which steps?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

Mode = Literal["multiply", "noise", "flip", "column", "swap", "pair", "nan", "inf"]
Place = Literal["output", "gradient", "weight gradient", "weights", "contribution", "reduced"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, built by naming where, what and when.

    `Fault.on(rank=13, layer="blocks.8.down").multiply(1000).since(23)` is a persistent fault of
    one element of that layer's output; `.in_weights()`, `.in_gradient()` and the like move it,
    `.once(30)` lets it fire a single time. Fields: `layer` as `named_modules` calls it; `element`
    and `other` are positions in the flat tensor (`column` takes `element` in the last dimension);
    `factor` is the factor of `multiply` and `column`, the spread of `noise`, and what `pair` adds
    to one bit pattern and takes from another. `share` is how often a persistent fault shows,
    `seed` what its chance and its noise depend on: equal seeds give equal wrong values.
    """

    rank: int
    layer: str = ""
    mode: Mode = "multiply"
    place: Place = "output"
    first: int = 0
    last: int | None = None
    single: bool = False
    element: int = 0
    other: int = 1
    factor: float = 1000.0
    bit: int = 0
    parameter: str = "weight"
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what names no fault."""
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}")
        if self.place not in get_args(Place):
            known = ", ".join(get_args(Place))
            raise ValueError(f"place must be one of {known}, not {self.place!r}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share}")

    @classmethod
    def on(cls, rank: int, layer: str = "") -> Self:
        """Begin with the rank and the layer."""
        return cls(rank=rank, layer=layer)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `rank=13,layer=blocks.1.down,mode=multiply,factor=1000,since=23`.

        Keys are the fields; `since=23` and `once=30` stand for the steps. Raises ValueError.
        """
        kinds = {one.name: _KINDS[str(one.type)] for one in fields(cls)}
        values: dict[str, Any] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            key, equals, value = item.partition("=")
            if key in ("since", "once"):
                values["first"] = int(value)
                values |= {"last": int(value), "single": True} if key == "once" else {}
            elif equals and key in kinds:
                values[key] = kinds[key](value)
            else:
                known = ", ".join([*kinds, "since", "once"])
                raise ValueError(f"{item!r} is none of: {known}")
        if "rank" not in values:
            raise ValueError(f"a fault needs a rank: {text!r}")
        return cls(**values)

    def at(self, layer: str) -> Self:
        """Move it to another layer."""
        return replace(self, layer=layer)

    def multiply(self, factor: float = 1000.0, element: int = 0) -> Self:
        """Multiply one element."""
        return replace(self, mode="multiply", factor=factor, element=element)

    def noise(self, spread: float = 0.1, seed: int = 0) -> Self:
        """Multiply every element by 1 plus noise of that standard deviation, the same each time."""
        return replace(self, mode="noise", factor=spread, seed=seed)

    def flip(self, bit: int, element: int = 0) -> Self:
        """Flip one bit of one element, counted from the least significant."""
        return replace(self, mode="flip", bit=bit, element=element)

    def column(self, factor: float = 1.1, column: int = 0) -> Self:
        """Multiply one column: one position of the last dimension, in every row."""
        return replace(self, mode="column", factor=factor, element=column)

    def swap(self, element: int = 0, other: int = 1) -> Self:
        """Let two elements change places."""
        return replace(self, mode="swap", element=element, other=other)

    def pair(self, amount: int = 4096, element: int = 0, other: int = 1) -> Self:
        """Add an amount to one bit pattern and take it from another: their sum stays."""
        return replace(self, mode="pair", factor=amount, element=element, other=other)

    def nan(self, element: int = 0) -> Self:
        """Make one element NaN."""
        return replace(self, mode="nan", element=element)

    def inf(self, element: int = 0) -> Self:
        """Make one element infinite."""
        return replace(self, mode="inf", element=element)

    def in_gradient(self) -> Self:
        """Hit the gradient that comes into the layer in backward; the forward stays right."""
        return replace(self, place="gradient")

    def in_weight_gradient(self, parameter: str = "weight") -> Self:
        """Hit the gradient of the layer's parameter; forward and other gradients stay right."""
        return replace(self, place="weight gradient", parameter=parameter)

    def in_weights(self, parameter: str = "weight") -> Self:
        """Hit the layer's parameter in memory, right after the optimizer's update."""
        return replace(self, place="weights", parameter=parameter)

    def in_contribution(self) -> Self:
        """Hit what the rank gives to the all-reduce, after its own gradient was computed right."""
        return replace(self, place="contribution")

    def in_reduced(self) -> Self:
        """Hit the reduced values of the share that the rank reduces, for all ranks alike."""
        return replace(self, place="reduced")

    def since(self, step: int, last: int | None = None) -> Self:
        """Let it be there from a step on, to `last` where given, in the rank's replays too."""
        return replace(self, first=step, last=last, single=False)

    def once(self, step: int) -> Self:
        """Let it fire a single time, on this step."""
        return replace(self, first=step, last=step, single=True)

    def sometimes(self, share: float, seed: int = 0) -> Self:
        """Let a persistent fault show in this share of its chances."""
        return replace(self, share=share, seed=seed)

    def in_words(self) -> str:
        """Say where, what and when, in a line."""
        where = f"{self.layer or 'the model'} ({self.place})"
        how = {"multiply": f"× {self.factor:g}", "column": f"column × {self.factor:g}"}
        how |= {"noise": f"noise of {self.factor:g}", "flip": f"bit {self.bit} flipped"}
        how |= {"pair": f"± {self.factor:g} on two bit patterns"}
        when = f"once at step {self.first}" if self.single else f"from step {self.first}"
        to = f" to {self.last}" if self.last is not None and not self.single else ""
        return f"rank {self.rank}, {where}: {how.get(self.mode, self.mode)}, {when}{to}"

    def due(self, step: int) -> bool:
        """Tell whether the step is one of its steps."""
        if self.single:
            return step == self.first
        return step >= self.first and (self.last is None or step <= self.last)


_KINDS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "int | None": int,
    "float": float,
    "str": str,
    "bool": lambda text: text.lower() in ("1", "true", "yes"),
    "Mode": str,
    "Place": str,
}
