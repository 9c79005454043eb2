"""How are the recorded runs posted to a running server?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from app.commands.keys import opened, operator_name
from app.config import Settings, load_settings
from app.context import utc_now
from app.demo import recorded
from app.demo.sending import NotSentError, Outcome, send
from app.store import audit, tokens
from app.store.connection import Connection
from app.store.tokens import Token

CALLED = "recorded example"


def demo(
    url: Annotated[str, typer.Option(help="Address of the server; empty: from the settings.")] = "",
    token: Annotated[
        str,
        typer.Option(
            envvar="WITNESS_TOKEN",
            help="Token to post with; empty: WITNESS_ADMIN_TOKEN, else one made for this and "
            "revoked at once, in the database of the settings.",
        ),
    ] = "",
) -> None:
    """Post the recorded runs to a running server; pages mark them as a recorded example."""
    settings = load_settings()
    address = url or f"http://{settings.host}:{settings.port}"
    now = utc_now()
    back = recorded.days_back(now)
    try:
        with _a_token(token or settings.admin_token) as secret:
            outcome = send(address, secret, recorded.documents(now))
    except NotSentError as error:
        typer.echo(f"{error} Start the server first: make run", err=True)
        raise typer.Exit(1) from error
    if back:
        typer.echo(f"The recorded times lie ahead of this clock: moved back by {back} days.")
    typer.echo(summary(outcome, _pages(settings, address)))
    if outcome.refused:
        typer.echo("Refused: " + "; ".join(outcome.refused[:5]), err=True)
        raise typer.Exit(1)


def summary(outcome: Outcome, pages: str) -> str:
    """Say how many documents of which kind were new or known."""
    kinds = sorted({*outcome.new, *outcome.known})
    lines = [
        f"  {kind:<12} {outcome.new[kind]:>4} new {outcome.known[kind]:>6} known" for kind in kinds
    ]
    return "\n".join(["Recorded runs posted, marked as an example:", *lines, f"See {pages}/"])


def _pages(settings: Settings, address: str) -> str:
    return settings.public_url.rstrip("/") or address.rstrip("/")


@contextmanager
def _a_token(given: str) -> Iterator[str]:
    """Give the token that was given, else one that is made for this and works no longer after."""
    if given:
        yield given
        return
    with opened() as (_, store):
        made, secret = store.write(_make)
        try:
            yield secret
        finally:
            store.write(lambda connection: _revoke(connection, made))


def _make(connection: Connection) -> tuple[Token, str]:
    now, by = utc_now(), operator_name()
    made, secret = tokens.create(
        connection,
        name=CALLED,
        cluster=recorded.CLUSTER,
        namespace=recorded.NAMESPACE,
        scope="write",
        by=by,
        at=now,
    )
    audit.append(connection, by, "token.created", tokens.made_sentence(made), at=now)
    return made, secret


def _revoke(connection: Connection, made: Token) -> None:
    now, by = utc_now(), operator_name()
    if tokens.revoke(connection, made.id, now):
        audit.append(connection, by, "token.revoked", f"The token {CALLED} was revoked.", at=now)
