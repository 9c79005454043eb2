"""How is a list written as CSV, so that a spreadsheet reads text and runs nothing?"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from app.strict_json import rfc3339, strict

_RUNS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula."""


def cell(value: Any) -> str:
    """Write one cell: empty for None; text that a spreadsheet would run gets a leading quote."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, int | float):
        return str(strict(value))
    if isinstance(value, list | tuple | Mapping):
        return cell(json.dumps(strict(value), ensure_ascii=False))
    text = str(value).replace("\x00", "\N{SYMBOL FOR NULL}")
    return f"'{text}" if text.lstrip(" ").startswith(_RUNS) else text


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Write a header line and a line a row, in the order of the columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(row.get(column)) for column in columns])
    return out.getvalue()


def csv_response(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """Answer with a CSV file called `name` (ASCII, without its ending)."""
    return Response(
        table(columns, rows).encode("utf-8", "replace"),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "X-Content-Type-Options": "nosniff",
        },
    )
