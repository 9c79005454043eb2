"""How are sign-in links and tokens made without a browser, and the audit chain checked?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from app.config import Settings, load_settings
from app.context import utc_now
from app.store import audit, ids, people, tokens
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.migrate import upgrade
from app.store.store import Store

token_commands = typer.Typer(help="Bearer tokens of jobs and programs.", no_args_is_help=True)
audit_commands = typer.Typer(help="The chain of audit entries.", no_args_is_help=True)


def _nothing_comes_in(connection: Connection, documents: Sequence[Any]) -> list[Any]:
    raise RuntimeError("the command line posts no documents")


@contextmanager
def opened() -> Iterator[tuple[Settings, Store]]:
    """Open the database of the settings, up to date; end with a sentence when it is away."""
    settings = load_settings()
    try:
        upgrade(settings.resolved_database_url())
        store = Store.open(settings.resolved_database_url(), _nothing_comes_in)
    except Exception as error:
        first = (str(error).strip().splitlines() or [repr(error)])[0]
        typer.echo(f"The database cannot be used: {first}", err=True)
        raise typer.Exit(1) from error
    try:
        yield settings, store
    except StoreUnavailable as error:
        typer.echo(f"The database cannot be used: {error}", err=True)
        raise typer.Exit(1) from error
    finally:
        store.close()


def operator_name() -> str:
    """Name who uses the command line, for the audit chain."""
    return f"{os.environ.get('SUDO_USER') or os.environ.get('USER') or 'somebody'} on the server"


def link(
    name: Annotated[str, typer.Option(help="Who will sign in; made if new.")],
    role: Annotated[
        str, typer.Option(help="viewer, operator, approver or admin; for a new person.")
    ] = "viewer",
) -> None:
    """Print a sign-in link that works once."""
    if role not in people.ROLES:
        raise typer.BadParameter(f"there is no role {role!r}, only {', '.join(people.ROLES)}")
    now, by = utc_now(), operator_name()

    def work(connection: Connection) -> tuple[people.Person, str | None]:
        person, new = people.ensure(connection, name, role, now)
        if new:
            summary = f"The person {name} was made with the role {role}."
            audit.append(connection, by, "person.created", summary, at=now)
        if person.disabled:
            return person, None
        summary = f"A sign-in link for {name} was made."
        audit.append(connection, by, "person.link_made", summary, at=now)
        minutes = settings.sign_in_link_minutes
        return person, people.make_link(connection, person.id, now, minutes)

    with opened() as (settings, store):
        person, secret = store.write(work)
    if secret is None:
        typer.echo(f"{name} is disabled; an administrator can let {name} in again.", err=True)
        raise typer.Exit(1)
    base = settings.public_url.rstrip("/") or f"http://{settings.host}:{settings.port}"
    typer.echo(
        f"{name}, {person.role}; works once within {settings.sign_in_link_minutes:g} minutes:"
    )
    typer.echo(f"{base}/sign-in/{secret}")


@token_commands.command("create")
def create_token(
    cluster: Annotated[str, typer.Option(help="Only for this cluster; empty: every one.")] = "",
    namespace: Annotated[str, typer.Option(help="Only for this namespace; empty: every.")] = "",
    name: Annotated[str, typer.Option(help="What it is for; shown on pages.")] = "",
    scope: Annotated[str, typer.Option(help="write, read or decide.")] = "write",
) -> None:
    """Print a new token; it is shown once and kept nowhere."""
    now, by = utc_now(), operator_name()
    called = name or "/".join(part for part in (cluster, namespace, scope) if part)

    def work(connection: Connection) -> str:
        token, secret = tokens.create(
            connection,
            name=called,
            cluster=cluster or None,
            namespace=namespace or None,
            scope=scope,
            by=by,
            at=now,
        )
        audit.append(connection, by, "token.created", tokens.made_sentence(token), at=now)
        return secret

    with opened() as (_, store):
        try:
            secret = store.write(work)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    typer.echo(secret)


@token_commands.command("list")
def list_tokens() -> None:
    """Print what tokens there are, without their secrets."""
    with opened() as (_, store), store.reading() as connection:
        for token in tokens.everything(connection):
            state = "revoked" if token.revoked_at else "works"
            where = tokens.place(token.cluster, token.namespace)
            typer.echo(f"{ids.show(token.id)}  {state:7}  {token.scope:6}  {token.name}  ({where})")


@token_commands.command("revoke")
def revoke_token(token: Annotated[str, typer.Argument(help="The id that `list` prints.")]) -> None:
    """Revoke a token within seconds, also in a running service."""
    try:
        token_id = ids.read(token)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    now, by = utc_now(), operator_name()

    def work(connection: Connection) -> bool:
        revoked = tokens.revoke(connection, token_id, now)
        if revoked:
            summary = f"The token {token} was revoked."
            audit.append(connection, by, "token.revoked", summary, at=now)
        return revoked

    with opened() as (_, store):
        revoked = store.write(work)
    typer.echo("Revoked." if revoked else "There is no such token that still works.")
    if not revoked:
        raise typer.Exit(1)


@audit_commands.command("verify")
def verify_audit() -> None:
    """Walk the whole chain and say whether every entry fits."""
    with opened() as (_, store), store.reading() as connection:
        result = audit.verify(connection)
    if result.first_bad is None:
        typer.echo(f"Chain verified, {result.entries} entries, last hash {result.last_hash}")
        return
    typer.echo(f"The chain breaks at entry {result.first_bad}: {result.why}.", err=True)
    raise typer.Exit(1)
