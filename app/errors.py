"""How is a refusal said, the same way to a person's browser and to a program?

Routes raise `Problem`; `app.web.errors` turns it into a page, or under /api into
`{"error": {"code", "message", "field"}}`.
"""

from __future__ import annotations

from collections.abc import Mapping


class Problem(Exception):
    """A request that cannot be served, with the status and the sentence that say why."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what is answered; `more` is added beside code, message and field."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def as_json(self) -> dict[str, object]:
        """Give the body of the JSON answer."""
        error = {"code": self.code, "message": self.message, "field": self.field, **self.more}
        return {"error": error}


def not_found(what: str) -> Problem:
    """Say that there is no such thing; `what` is a phrase such as "no case with this id"."""
    return Problem(404, "not_found", f"There is {what}.")


def forbidden(why: str) -> Problem:
    """Say that the sender is known but may not do this."""
    return Problem(403, "forbidden", why)


def unavailable(why: str, retry_after_s: int = 5) -> Problem:
    """Say that the database is away and when to come back."""
    return Problem(
        503,
        "database_unavailable",
        f"The database cannot be reached: {why}. Nothing was changed.",
        headers={"Retry-After": str(retry_after_s)},
    )
