"""How is a database brought up to date without serving from it?"""

from __future__ import annotations

import typer

from app.config import load_settings
from app.store.migrate import upgrade


def migrate() -> None:
    """Bring the database to the tables of this version; `serve` does it by itself."""
    settings = load_settings()
    try:
        upgrade(settings.resolved_database_url())
    except Exception as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        typer.echo(f"The database cannot be brought up to date: {reason}", err=True)
        raise typer.Exit(1) from error
    typer.echo("The database has the tables of this version.")
