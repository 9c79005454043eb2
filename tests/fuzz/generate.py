"""How is a request made from the published contract, as it says or against it?

Values are drawn at and beyond the edges that break programs: empty and huge, NaN, 2^63, NUL, half a
surrogate pair, markup, deep nesting, wrong types, missing and repeated keys.
"""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

TEXTS = (
    "a", "x" * 9_000, "..", "a/b?c=d", "<img src=x>", "\u202egnp", "\x00", "\ud800", " ",
    "GPU-0", "i-0c0ffee0000000002", "训练", "'; DROP TABLE jobs; --", "%00", "null", "None",
    "=1+1", "-1", "1e400",
)  # fmt: skip
PLAIN = ("alpine", "research", "compute", "weights", "ring")
TIMES = (
    "2026-03-02T10:00:00Z", "2026-03-02 10:00:00", "2026-03-02T10:00:00+05:30",
    "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "9999-99-99T00:00:00Z", "", "x",
)  # fmt: skip
NUMBERS = (0, 1, 8, 31, -1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**400, 1.5,
           1e308, -0.0, float("nan"), float("inf"))  # fmt: skip
WHATEVER: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    "",
    [[]],
    [None],
    {"": None},
    *TEXTS[:8],
    *NUMBERS,
)


class Maker:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, contract: dict[str, Any], seed: int) -> None:
        """Read the contract."""
        self._contract = contract
        self._chance = random.Random(seed)

    def request(self, method: str, path: str) -> tuple[str, bytes | None]:
        """Draw an address with its query, and a body where the operation takes one."""
        operation = self._contract["paths"][path][method]
        queries = []
        for parameter in operation.get("parameters", ()):
            value = self._plain(self.value(parameter.get("schema", {}), spoil=0.3))
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", value or "x")
            elif parameter["in"] == "query" and self._chance.random() < 0.7:
                queries.append(f"{parameter['name']}={value}")
        if queries and self._chance.random() < 0.1:
            queries.append(self._chance.choice(queries))
        address = path + ("?" + "&".join(queries) if queries else "")
        return address, self._body(operation)

    def value(self, schema: dict[str, Any], spoil: float, depth: int = 0) -> Any:
        """Draw a value for a schema; with the chance `spoil` any value, at any depth."""
        if self._chance.random() < spoil / (1 + depth):
            return self._chance.choice(WHATEVER)
        schema = self._resolved(schema)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.value(self._chance.choice(schema[choice]), spoil, depth + 1)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        return self._by_type(schema, spoil, depth)

    def _by_type(self, schema: dict[str, Any], spoil: float, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, spoil, depth)
        if kind == "array":
            low = schema.get("minItems", 0)
            number = self._chance.randint(low, max(low, min(schema.get("maxItems", low + 4), 40)))
            return [self.value(schema.get("items", {}), spoil, depth + 1) for _ in range(number)]
        edges = (schema.get("minimum", 0), schema.get("maximum", 100), self._chance.randint(0, 64))
        choices: dict[str | None, tuple[Any, ...]] = {
            "integer": (13, 30, *edges),
            "number": (0, 0.31, 1e300, self._chance.random()),
            "boolean": (True, False),
            "null": (None,),
            "string": (*PLAIN * 20, *TEXTS),
        }
        if schema.get("format") == "date-time":
            return self._chance.choice(TIMES)
        return self._chance.choice(choices.get(kind, WHATEVER))

    def _object(self, schema: dict[str, Any], spoil: float, depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        made: dict[str, Any] = {}
        for name, of in schema.get("properties", {}).items():
            keep = 0.97 if name in required else 0.4
            if self._chance.random() < keep:
                made[name] = self.value(of, spoil, depth + 1)
        if self._chance.random() < 0.1:
            made[self._chance.choice(("extra", "", "__proto__", "x" * 300))] = self._chance.choice(
                WHATEVER
            )
        return made

    def _body(self, operation: dict[str, Any]) -> bytes | None:
        if "requestBody" not in operation:
            return None
        kind, media = next(iter(operation["requestBody"]["content"].items()))
        spoil = self._chance.choice((0.0, 0.05, 0.5))
        if kind == "application/x-ndjson":
            return b"\n".join(self._line(spoil) for _ in range(self._chance.randint(0, 5)))
        return self._spoilt(_encode(self.value(media["schema"], spoil)))

    def _line(self, spoil: float) -> bytes:
        """Draw one line of a batch: a document of some kind with its kind."""
        kinds = {"alarm": "alarms", "rank_map": "rank-maps", "passes": "passes",
                 "checkpoints": "checkpoints", "replay": "replays",
                 "elastic_event": "elastic-events", "nonsense": "alarms"}  # fmt: skip
        kind = self._chance.choice(tuple(kinds))
        operation = self._contract["paths"]["/api/v1/" + kinds[kind]]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        document = self.value(schema, spoil)
        if isinstance(document, dict):
            document = {"kind": kind, **document}
        return self._spoilt(_encode(document)).replace(b"\n", b" ")

    def _spoilt(self, body: bytes) -> bytes:
        """Break the bytes of one body in ten: cut, doubled, a wrong byte, nested without end."""
        if self._chance.random() > 0.1 or not body:
            return body
        at = self._chance.randrange(len(body))
        return self._chance.choice(
            (
                body[:at],
                body + body,
                body[:at] + b"\xff" + body[at:],
                b"[" * 50_000,
                b"",
                b"\xef\xbb\xbf" + body,
            )
        )

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            found: Any = self._contract
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def _plain(self, value: Any) -> str:
        text = value if isinstance(value, str) else _encode(value).decode()
        return quote(text[:2_000].encode("utf-8", "surrogatepass"), safe="")


def _encode(value: Any) -> bytes:
    """Write JSON as Python jobs do: bare NaN, escapes for what is no text."""
    return json.dumps(value).encode()
