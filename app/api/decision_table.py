"""How does a program read the decision table?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.actions.table_reading import ABOVE, GUARDS
from app.api.reading import Reading
from app.csv_table import csv_response
from app.strict_json import StrictJSON
from witness.rules.decision_table import ROWS, TABLE_VERSION, Row

router = APIRouter(prefix="/api/v1", tags=["reading"])

COLUMNS = (
    "id",
    "alarm_says",
    "predicates",
    "meaning",
    "action",
    "ambiguous",
    "cautions",
    "proposes",
)


@router.get("/decision-table", summary="Read the decision table")
def decision_table(
    by: Reading, form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json"
) -> Response:
    """Give the table as the program uses it, in its order, with what stands above it."""
    rows = [_as_json(row) for row in ROWS]
    if form == "csv":
        return csv_response("decision-table", COLUMNS, rows)
    return StrictJSON(
        {
            "version": TABLE_VERSION,
            "items": rows,
            "order": "the order of the table",
            "above": [{"when": rule.when, "then": rule.then} for rule in ABOVE],
            "guards": [
                {
                    "code": guard.code,
                    "meaning": guard.meaning,
                    "blocks_replacement": guard.blocks_replacement,
                }
                for guard in GUARDS
            ],
        }
    )


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "alarm_says": row.alarm_says,
        "predicates": [predicate.text for predicate in row.predicates],
        "meaning": row.meaning,
        "action": row.action,
        "ambiguous": row.ambiguous,
        "cautions": list(row.cautions),
        "proposes": list(row.proposes),
    }
