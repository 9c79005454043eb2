"""How is a document refused, so that its sender can mend it?"""

from __future__ import annotations

from app.errors import Problem


class Refused(Problem):
    """A document that is not taken: the status, a code for programs, words, and the field."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        """Keep what the answer says."""
        super().__init__(status, code, message, field=field)


def invalid(field: str, expected: str, got: object) -> Refused:
    """Refuse a field: what was expected, and what was there."""
    shown_field = field.encode("ascii", "backslashreplace").decode()[:200]
    message = f"{shown_field}: expected {expected}, got {shown(got)}"
    return Refused(422, "invalid_field", message, shown_field)


def shown(value: object) -> str:
    """Write a value for a message, cut to a length that fits one."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > 10**40:
        return "an integer of more than 40 digits"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value) if isinstance(value, str) else str(value)
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= 80 else text[:79] + "…"
