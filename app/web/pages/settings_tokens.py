"""How does an administrator make and revoke tokens?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.errors import Problem, not_found
from app.store import audit, tokens
from app.store.connection import Connection
from app.web import sessions
from app.web.addresses import read_id
from app.web.rendering import done
from app.web.security import Admin

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form(max_length=300)]


@router.post("/settings/tokens")
def create(
    request: Request,
    person: Admin,
    name: Text = "",
    cluster: Text = "",
    namespace: Text = "",
    scope: Text = "write",
) -> Response:
    """Make a token; its secret is shown on the next page, once."""
    context = context_of(request)
    now = context.now()
    cluster, namespace = plain(cluster, "cluster"), plain(namespace, "namespace")
    name = plain(name, "name") or "/".join(filter(None, (cluster, namespace, scope)))

    def work(connection: Connection) -> tuple[tokens.Token, str]:
        token, secret = tokens.create(
            connection,
            name=name,
            cluster=cluster or None,
            namespace=namespace or None,
            scope=scope,
            by=person.name,
            at=now,
        )
        audit.append(connection, person.name, "token.created", tokens.made_sentence(token), at=now)
        return token, secret

    try:
        token, secret = context.store.write(work)
    except ValueError as error:
        raise Problem(422, "invalid", f"{error}.") from error
    response = done(
        request, "/settings#tokens", f"{person.name} made the token {name} at {now:%H:%M} UTC."
    )
    sessions.leave_secret(request, response, f"Token {token.name}", secret)
    return response


@router.post("/settings/tokens/{token_id}/revoke")
def revoke(request: Request, person: Admin, token_id: str) -> Response:
    """Revoke a token; a second time changes nothing."""
    context = context_of(request)
    now = context.now()
    row_id = read_id(token_id, "token")

    def work(connection: Connection) -> tuple[tokens.Token | None, bool]:
        token = tokens.by_id(connection, row_id)
        revoked = token is not None and tokens.revoke(connection, row_id, now)
        if token is not None and revoked:
            summary = f"{person.name} revoked the token {token.name}."
            audit.append(
                connection, person.name, "token.revoked", summary, at=now, details={"id": token_id}
            )
        return token, revoked

    token, revoked = context.store.write(work)
    if token is None:
        raise not_found("no token with this id")
    if revoked:
        said = f"{person.name} revoked the token {token.name} at {now:%H:%M} UTC."
    else:
        said = f"The token {token.name} was revoked before; nothing was changed."
    return done(request, "/settings#tokens", said)


def plain(text: str, field: str) -> str:
    """Take a name without surrounding space; refuse what no name holds."""
    text = text.strip()
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise Problem(422, "invalid", f"{field} holds a control character.", field=field)
    return text
