"""How is JSON text decoded without losing digits, NaN or a field's name?

The standard decoder is used on purpose: faster ones refuse the bare NaN that Python jobs write, or
turn integers above 64 bits into floats.
"""

from __future__ import annotations

import json
from typing import Any

from ingest.refusal import Refused

# One spelling for equal content, whatever the order of the keys.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def decode(raw: bytes | str) -> tuple[Any, str]:
    """Decode one JSON text; give the value and the text; raise Refused with status 400."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, "not_utf8", f"byte {error.start} is not UTF-8") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, "not_json", f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise Refused(400, "not_json", "not JSON that can be read: nested too deeply") from None
    except ValueError:
        raise Refused(400, "not_json", "an integer has more than 4,300 digits") from None
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text or "\x00" in text:
        _refuse_unstorable(value, "")
    return value, text


def canonical(value: object) -> str:
    """Write a value in one spelling: keys sorted, no white space."""
    return _encode(value)


def _refuse_unstorable(value: object, path: str) -> None:
    """Refuse NUL and lone surrogates: no database and no page can hold them as text."""
    if isinstance(value, str):
        problem = _problem(value)
        if problem:
            field = path or "document"
            raise Refused(422, "invalid_field", f"{field}: expected text without {problem}", field)
    elif isinstance(value, dict):
        for key, item in value.items():
            shown = key.encode("ascii", "backslashreplace").decode()
            if _problem(key):
                _refuse_unstorable(key, f"{path}.{shown}" if path else shown)
            _refuse_unstorable(item, f"{path}.{shown}" if path else shown)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _refuse_unstorable(item, f"{path}[{place}]")


def _problem(text: str) -> str | None:
    if "\x00" in text:
        return "the NUL character"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "half a surrogate pair"
    return None
