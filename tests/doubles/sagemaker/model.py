"""Does a request, or an answer, keep to the real service model: types, patterns, maxima, names?

botocore's own check covers required members, types, unknown members and minima only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

TARGET = "SageMaker."


@cache
def service() -> ServiceModel:
    """Load the model that the real client uses."""
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")


def operations() -> list[str]:
    """Name all operations of the service."""
    return list(service().operation_names)


def wrong_request(operation: str, value: Any) -> list[str]:
    """Say what is wrong with a request, in the service's manner; []: nothing."""
    return list(_walk(service().operation_model(operation).input_shape, value, ""))


def wrong_answer(operation: str, value: Any) -> list[str]:
    """Say what is wrong with an answer of ours; []: nothing."""
    return list(_walk(service().operation_model(operation).output_shape, value, ""))


def _walk(shape: Any, value: Any, at: str) -> Iterator[str]:
    check = _CHECKS.get(shape.type_name, _scalar)
    yield from check(shape, value, at)


def _structure(shape: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _failed(at, value, "Member must be a structure")
        return
    for name in shape.required_members:
        if value.get(name) is None:
            yield _failed(_under(at, name), None, "Member must not be null")
    if getattr(shape, "is_tagged_union", False) and len(value) != 1:
        yield _failed(at, value, "Exactly one member must be set")
    for name, one in value.items():
        if name not in shape.members:
            yield f"Unknown member {_under(at, name)}"
        elif one is not None:
            yield from _walk(shape.members[name], one, _under(at, name))


def _list(shape: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield _failed(at, value, "Member must be a list")
        return
    yield from _length(shape, len(value), value, at)
    for number, one in enumerate(value, 1):
        yield from _walk(shape.member, one, f"{at}.{number}.member")


def _map(shape: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _failed(at, value, "Member must be a map")
        return
    yield from _length(shape, len(value), value, at)
    for key, one in value.items():
        yield from _walk(shape.key, key, f"{at}.key")
        yield from _walk(shape.value, one, f"{at}.{key}")


def _string(shape: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield _failed(at, value, "Member must be a string")
        return
    yield from _length(shape, len(value), value, at)
    if shape.enum and value not in shape.enum:
        names = ", ".join(shape.enum[:12])
        yield _failed(at, value, f"Member must satisfy enum value set: [{names}]")
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        words = f"Member must satisfy regular expression pattern: {pattern}"
        yield _failed(at, value, words)


def _number(shape: Any, value: Any, at: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield _failed(at, value, "Member must be a number")
        return
    if shape.type_name in ("integer", "long") and not isinstance(value, int):
        yield _failed(at, value, "Member must be a whole number")
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and value < low:
        yield _failed(at, value, f"Member must have value greater than or equal to {low}")
    if high is not None and value > high:
        yield _failed(at, value, f"Member must have value less than or equal to {high}")


def _boolean(shape: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield _failed(at, value, "Member must be a boolean")


def _scalar(shape: Any, value: Any, at: str) -> Iterator[str]:
    yield _failed(at, value, f"The double knows no type {shape.type_name}")


def _timestamp(shape: Any, value: Any, at: str) -> Iterator[str]:
    # JSON 1.1 carries seconds since 1970, with a fraction where there is one.
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield _failed(at, value, "Member must be a timestamp")


def _length(shape: Any, size: int, value: Any, at: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield _failed(at, value, f"Member must have length greater than or equal to {low}")
    if high is not None and size > high:
        yield _failed(at, value, f"Member must have length less than or equal to {high}")


def _failed(at: str, value: Any, constraint: str) -> str:
    shown = str(value)
    shown = shown if len(shown) <= 60 else shown[:60] + "..."
    where = at[:1].lower() + at[1:]
    return f"Value '{shown}' at '{where}' failed to satisfy constraint: {constraint}"


def _under(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


_CHECKS = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _string,
    "integer": _number,
    "long": _number,
    "float": _number,
    "double": _number,
    "boolean": _boolean,
    "timestamp": _timestamp,
}
