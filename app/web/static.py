"""Which files does a browser get, and how long may it keep them?

Our own files lie in app/web/static; style.css is the files of static/style one after the other,
by name; plotly.js lies inside the installed plotly package.  An address with `?v=` names one
content, so it may be kept for a year.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.errors import not_found

FOLDER = Path(__file__).parent / "static"
STYLE = "style.css"
PLOTLY = "plotly.js"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_YEAR = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, plain and compressed, with a name for its content."""

    body: bytes
    packed: bytes
    version: str
    media_type: str


_once = threading.Lock()


def asset(name: str) -> Asset | None:
    """Give a file by name; None when there is none."""
    with _once:
        return _asset(name)


@cache
def _known() -> dict[str, tuple[Path, ...]]:
    files: dict[str, tuple[Path, ...]] = {
        path.name: (path,) for path in FOLDER.iterdir() if path.suffix in _TYPES
    }
    files[STYLE] = tuple(sorted((FOLDER / "style").glob("*.css")))
    # The Python side of plotly is never imported: it costs time and is not needed.
    spec = find_spec("plotly")
    if spec is not None and spec.origin is not None:
        files[PLOTLY] = (Path(spec.origin).parent / "package_data" / "plotly.min.js",)
    return files


@cache
def _asset(name: str) -> Asset | None:
    paths = _known().get(name)
    if paths is None:
        return None
    body = b"".join(path.read_bytes() for path in paths)
    version = hashlib.sha256(body).hexdigest()[:12]
    return Asset(body, gzip.compress(body, 6, mtime=0), version, _TYPES[Path(name).suffix])


def address(name: str) -> str:
    """Give the address of a file, with the name of its content."""
    found = asset(name)
    if found is None:
        raise LookupError(f"there is no static file {name!r}")
    return f"/static/{name}?v={found.version}"


@router.get("/static/{name}")
def static_file(request: Request, name: str) -> Response:
    """Send one file."""
    found = asset(name)
    if found is None:
        raise not_found("no such file")
    etag = f'"{found.version}"'
    fixed = request.query_params.get("v") == found.version
    headers = {"ETag": etag, "Vary": "Accept-Encoding"}
    headers["Cache-Control"] = _YEAR if fixed else "no-cache"
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    # An answer that says how it is encoded passes the compressing middleware untouched.
    headers["Content-Encoding"] = "gzip" if packed else "identity"
    return Response(found.packed if packed else found.body, 200, headers, found.media_type)
