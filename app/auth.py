"""Which program sends this, and what may it do?

    @router.post("/alarms")
    async def post_alarm(request: Request) -> Response:
        by = await sender(request)
        by.check(document.cluster, document.namespace)   # 403 naming both

`sender` is for jobs, `Deciding` for programs that approve, `Reading` for GET under /api, which a
signed-in person's browser may use as well (`app.api` adds that).  A token is looked up at most once
in CACHE_S, so revoking it works within seconds.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.context import Context, context_of
from app.errors import Problem, forbidden
from app.store import tokens
from app.store.database import StoreUnavailable
from app.store.tokens import Token
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

CACHE_S = 2.0
_CACHED = 10_000  # unknown tokens are kept as well, so the number is bounded


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a request."""

    token_id: int | None  # None: the administrator's token, or a person
    name: str
    cluster: str | None  # None: every cluster
    namespace: str | None  # None: every namespace
    scope: str  # write, read, decide or admin

    def allows(self, cluster: str, namespace: str) -> bool:
        """Tell whether this sender may speak for a namespace of a cluster."""
        return self.cluster in (None, cluster) and self.namespace in (None, namespace)

    def check(self, cluster: str, namespace: str) -> None:
        """Refuse what lies outside, naming both sides."""
        if not self.allows(cluster, namespace):
            raise forbidden(
                f"The token {self.name} is for {tokens.place(self.cluster, self.namespace)}, "
                f"not for {tokens.place(cluster, namespace)}."
            )


class TokenCache:
    """Tokens looked up a moment ago, by the hash of their secret."""

    def __init__(self) -> None:
        """Begin empty."""
        self._known: OrderedDict[str, tuple[float, Token | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token_hash: str) -> tuple[bool, Token | None]:
        """Give (known, token); a known token may be None: there is none."""
        with self._lock:
            found = self._known.get(token_hash)
        if found is None or time.monotonic() - found[0] > CACHE_S:
            return False, None
        return True, found[1]

    def put(self, token_hash: str, token: Token | None) -> None:
        """Keep what was found for a moment."""
        with self._lock:
            self._known[token_hash] = (time.monotonic(), token)
            self._known.move_to_end(token_hash)
            while len(self._known) > _CACHED:
                self._known.popitem(last=False)


def _cache(request: Request) -> TokenCache:
    state = request.app.state
    if not hasattr(state, "token_cache"):
        state.token_cache = TokenCache()
    cache: TokenCache = state.token_cache
    return cache


async def identify(request: Request) -> Sender | None:
    """Find the sender by its Authorization header; None when there is no such header.

    Raises Problem 401 for a header that is not a known, unrevoked token.
    """
    header = request.headers.get("authorization")
    if header is None:
        return None
    kind, _, secret = header.partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not secret:
        raise unauthorised("Authorization has to be: Bearer, a space, the token.")
    context = context_of(request)
    admin = context.settings.admin_token
    if admin and hmac.compare_digest(secret.encode("utf-8", "replace"), admin.encode()):
        return Sender(None, "administrator's token", None, None, "admin")
    token = await _find(request, context, tokens.hashed(secret))
    if token is None or token.revoked_at is not None:
        raise unauthorised("This token is not known or was revoked.")
    return Sender(token.id, token.name, token.cluster, token.namespace, token.scope)


async def _find(request: Request, context: Context, token_hash: str) -> Token | None:
    cache = _cache(request)
    known, token = cache.get(token_hash)
    if not known:
        token = await run_in_threadpool(_load, context, token_hash)
        cache.put(token_hash, token)
    return token


def _load(context: Context, token_hash: str) -> Token | None:
    with context.store.reading() as connection:
        token = tokens.by_hash(connection, token_hash)
    if token is None or token.revoked_at is not None:
        return token
    now = context.now()
    if not tokens.use_is_noted(token, now):
        try:
            context.store.write(lambda c: tokens.note_use(c, token.id, now))
        except (StoreUnavailable, QueueFull) as error:
            # The note is a courtesy; what the token was sent with decides for itself.
            log.warning("the use of token %r was not noted: %s", token.name, error)
    return token


def unauthorised(message: str) -> Problem:
    """Say that the sender is not known."""
    return Problem(
        401,
        "not_signed_in",
        message,
        headers={"WWW-Authenticate": 'Bearer realm="silent-witness"'},
    )


def needs(*scopes: str) -> Callable[[Request], Awaitable[Sender]]:
    """Make the dependency that lets in tokens of these scopes, and the administrator's."""

    async def sender_of(request: Request) -> Sender:
        sender = await identify(request)
        if sender is None:
            raise unauthorised("Send a token: Authorization: Bearer, a space, the token.")
        check_scope(sender, scopes)
        return sender

    return sender_of


def check_scope(sender: Sender, scopes: tuple[str, ...]) -> None:
    """Refuse a token that was made for something else."""
    if sender.scope != "admin" and sender.scope not in scopes:
        raise forbidden(
            f"The token {sender.name} has the scope {sender.scope}; "
            f"this needs {' or '.join(scopes)}."
        )


sender = needs("write")
Deciding = Annotated[Sender, Depends(needs("decide"))]
# A restarting job asks with its own token how far back it has to go.
Asking = Annotated[Sender, Depends(needs("write", "read", "decide"))]
