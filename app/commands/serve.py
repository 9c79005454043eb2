"""How is the service started?"""

from __future__ import annotations

import logging
import socket

import typer

from app.config import Settings, load_settings
from app.context import utc_now
from app.store import audit, people
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.migrate import upgrade
from app.store.store import Store

ADMIN = "admin"


def serve(
    host: str = typer.Option("", help="Address to listen on; empty: WITNESS_HOST."),
    port: int = typer.Option(-1, help="Port to listen on; 0: any free one; -1: WITNESS_PORT."),
) -> None:
    """Bring the database up to date, serve, and print the address with a sign-in link."""
    # Imported here: the other commands need neither the pages nor the server.
    import uvicorn

    from app.main import create_app

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # Alembic names every step of every start otherwise.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    changed = {"host": host} if host else {}
    settings = load_settings(**changed, **({"port": port} if port >= 0 else {}))
    try:
        upgrade(settings.resolved_database_url())
    except Exception as error:
        typer.echo(f"The database cannot be brought up to date: {_first_line(error)}", err=True)
        raise typer.Exit(1) from error
    listener = _listen(settings)
    app = create_app(settings)
    address = settings.public_url.rstrip("/") or _address(settings.host, listener)
    _greet(settings, app.state.context.store, address)
    config = uvicorn.Config(
        app,
        log_config=None,
        # Addresses of sign-in links hold their secret: they belong into no log.
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        where = f"{settings.host} port {settings.port}"
        typer.echo(f"Cannot listen on {where}: {error.strerror}", err=True)
        raise typer.Exit(1) from error
    return listener


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _greet(settings: Settings, store: Store, address: str) -> None:
    typer.echo(f"Silent Witness serves on {address}")
    try:
        secret = store.write(lambda c: admin_link(c, settings.sign_in_link_minutes))
    except StoreUnavailable as error:
        typer.echo(f"No sign-in link: the database cannot be written: {error}", err=True)
        return
    if secret is None:
        typer.echo(
            f"The person {ADMIN!r} is disabled: python -m app link --name NAME makes a link."
        )
        return
    minutes = f"{settings.sign_in_link_minutes:g}"
    typer.echo(f"Sign in as {ADMIN}, once, within {minutes} minutes: {address}/sign-in/{secret}")


def admin_link(connection: Connection, minutes: float) -> str | None:
    """Make a link for the administrator, who is made at the first start; None when shut out."""
    now = utc_now()
    person, new = people.ensure(connection, ADMIN, "admin", now)
    if new:
        audit.append(
            connection,
            "service",
            "person.created",
            f"The person {ADMIN} was made with the role admin at the first start.",
            at=now,
        )
    return None if person.disabled else people.make_link(connection, person.id, now, minutes)


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "orig", None) or error).strip().splitlines() or [repr(error)])[0]
