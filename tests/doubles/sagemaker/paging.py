"""How is a long list given in pages, with a token for the next one?"""

from __future__ import annotations

import base64
from typing import Any


def page(key: str, items: list[Any], asked: dict[str, Any], limit: int) -> dict[str, Any]:
    """Cut the page that was asked for; without a wish it holds ten items."""
    size = min(int(asked.get("MaxResults") or 10), limit)
    start = int(base64.b64decode(asked["NextToken"])) if asked.get("NextToken") else 0
    answer: dict[str, Any] = {key: items[start : start + size]}
    if start + size < len(items):
        answer["NextToken"] = base64.b64encode(str(start + size).encode()).decode()
    return answer
