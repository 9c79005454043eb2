"""How is a list under /api/v1 asked for and answered?

For a list in `app/api/<noun>.py`:

    WIDGETS = Listing("widgets", order="newest first", filters=("cluster", "job", "from", "to"),
                      columns=("id", "name", "at"), cursor=(int, int))

    @router.get("/widgets", openapi_extra=WIDGETS.openapi())
    def widgets(request: Request) -> Response:
        page = WIDGETS.read(request)          # 400 naming the field where anything is wrong
        with context_of(request).store.reading() as connection:
            found = read_widgets(connection, page.filters, page.after, page.limit + 1)
        return WIDGETS.answer(page, [as_json(one) for one in found], [key_of(one) for one in found])

Query: the filters of `app.filters` that the list names, `limit` (1 to 1000, 100 by default),
`cursor` (as given by the answer before), `format` (json or csv).  Any other parameter is refused.

`read` gives `Page(filters, limit, after, form)`; `after` is the keyset tuple after which the
answer begins, None at the start.  `answer` wants one row more than `limit` where there is one and
the keyset tuple of each row.  JSON: `{"items": [...], "order": "newest first", "next": cursor or
null}`; CSV: the named columns, the next page in the header `Link: <...>; rel="next"`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from app.csv_table import csv_response
from app.filters import FILTERS, TEXT_FILTERS, Filters, bad, read_filters
from app.strict_json import StrictJSON

DEFAULT_LIMIT = 100
MOST = 1_000
_LARGEST = 2**63

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, as asked for."""

    filters: Filters
    limit: int
    after: Key | None
    form: Literal["json", "csv"]
    path: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One list: its name, its stated order, its filters, its CSV columns, its keyset's types."""

    name: str
    order: str
    filters: tuple[str, ...]
    columns: tuple[str, ...]
    cursor: tuple[type[int] | type[str] | type[float], ...]

    def read(self, request: Request) -> Page:
        """Read the query string; raise a 400 that names the parameter which is wrong."""
        given = request.query_params.multi_items()
        for name, _ in given:
            if name not in (*FILTERS, "limit", "cursor", "format"):
                raise bad(name[:60], f"This list has no parameter {name[:60]!r}.")
        form = _single(given, "format") or "json"
        if form not in ("json", "csv"):
            raise bad("format", "format must be json or csv.")
        return Page(
            filters=read_filters(given, self.filters),
            limit=read_limit(_single(given, "limit")),
            after=self.read_cursor(_single(given, "cursor")),
            form="csv" if form == "csv" else "json",
            path=request.url.path,
        )

    def answer(
        self,
        page: Page,
        rows: Sequence[Mapping[str, Any]],
        keys: Sequence[Key],
        about: Mapping[str, Any] | None = None,
    ) -> Response:
        """Answer one page; `rows` and `keys` hold one more than `limit` where there is more.

        `about` is said of the whole list beside its items, in JSON only.
        """
        more = len(rows) > page.limit
        following = self.write_cursor(keys[page.limit - 1]) if more else None
        shown = rows[: page.limit]
        link = _next_link(page, following)
        if page.form == "csv":
            response = csv_response(self.name, self.columns, shown)
        else:
            whole = {"items": list(shown), "order": self.order, "next": following}
            response = StrictJSON({**whole, **(about or {})})
        if link:
            response.headers["Link"] = link
        response.headers["Cache-Control"] = "no-store"
        return response

    def write_cursor(self, key: Key) -> str:
        """Write a keyset tuple as an opaque text, good for this list only."""
        text = json.dumps([self.name, *key], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read_cursor(self, text: str | None) -> Key | None:
        """Read a cursor back; refuse what this list did not write."""
        if not text:
            return None
        try:
            padded = text + "=" * (-len(text) % 4)
            parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            name, *key = parts
            fits = name == self.name and len(key) == len(self.cursor)
            fits = fits and all(map(_fits, key, self.cursor))
        except (ValueError, TypeError, RecursionError):
            fits, key = False, []
        if not fits:
            raise bad("cursor", "This cursor does not belong to this list; begin again without.")
        return tuple(key)

    def openapi(self) -> dict[str, Any]:
        """Describe the parameters for the published OpenAPI document."""
        return {"parameters": [_parameter(name) for name in (*self.filters, *_OTHERS)]}


ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": ["string", "null"]},
            },
        }
    },
}
_REFUSALS = {
    400: "a parameter is wrong; `field` names it",
    401: "no token, or one that is not known",
    403: "the token is for something else",
    404: "there is no such thing, or the token may not know of it",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe refusals for the OpenAPI document: `responses=refusals(401, 404)`."""
    return {
        status: {
            "description": _REFUSALS[status],
            "content": {"application/json": {"schema": ERROR}},
        }
        for status in statuses
    }


_OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "limit": (
        {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT_LIMIT},
        "rows on a page",
    ),
    "cursor": ({"type": "string"}, "`next` of the page before"),
    "format": (
        {"type": "string", "enum": ["json", "csv"], "default": "json"},
        "form of the answer",
    ),
}


def read_limit(text: str | None) -> int:
    """Read `limit`; 100 where it is not given."""
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MOST):
        raise bad("limit", f"limit must be a whole number from 1 to {MOST}.")
    return int(text)


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return type(value) is int and -_LARGEST <= value < _LARGEST
    # JSON can carry half a surrogate pair, which no database takes.
    return (
        isinstance(value, str)
        and "\x00" not in value
        and value == value.encode("utf-8", "replace").decode()
    )


def _single(given: Sequence[tuple[str, str]], name: str) -> str | None:
    values = [value for one, value in given if one == name]
    if len(values) > 1:
        raise bad(name, f"{name} was given {len(values)} times.")
    return values[0] if values else None


def _next_link(page: Page, following: str | None) -> str | None:
    if following is None:
        return None
    query = [*page.filters.as_typed, ("limit", str(page.limit)), ("cursor", following)]
    if page.form == "csv":
        query.append(("format", "csv"))
    return f'<{page.path}?{urlencode(query)}>; rel="next"'


def _parameter(name: str) -> dict[str, Any]:
    schema, description = _OTHERS.get(name, ({"type": "string", "maxLength": 1_000}, ""))
    if name in TEXT_FILTERS:
        description = f"only rows with this {name}; given more than once: any of them"
        schema = {"type": "array", "items": {**schema, "pattern": "^[^\\x00]*$"}, "maxItems": 50}
    elif name in ("from", "to"):
        schema = {"type": "string", "format": "date-time"}
        description = "first moment, inclusive" if name == "from" else "last moment, exclusive"
    elif name == "q":
        description = "free text"
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }
