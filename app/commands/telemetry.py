"""How are kept samples taken away in bulk, or deleted, on the server's own command line?"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from app.actions.telemetry import exporting, retention
from app.commands.keys import opened, operator_name
from app.context import Context
from app.store import ids
from app.store.telemetry_export import Chosen
from app.store.timeline_scope import find_gpus

commands = typer.Typer(help="Kept samples of GPUs.", no_args_is_help=True)


@commands.command("purge")
def purge(
    older_than: Annotated[
        float | None, typer.Option(min=0, help="Days for alarms; 0: never. Left out: the setting.")
    ] = None,
    asked_older_than: Annotated[
        float | None, typer.Option(min=0, help="Days for what only people asked for.")
    ] = None,
) -> None:
    """Delete old samples now, except those of open and confirmed cases."""
    with opened() as (settings, store):
        context = Context(settings, store)
        usual = retention.ages(context)
        allowed = retention.Ages(
            usual.alarms if older_than is None else older_than,
            usual.asked if asked_older_than is None else asked_older_than,
        )
        done = retention.purge(context, allowed, operator_name())
    typer.echo(f"Deleted {done.samples} samples of {done.windows} windows, {done.size} bytes.")


@commands.command("export")
def export(
    cluster: Annotated[str, typer.Option(help="Only this cluster.")] = "",
    gpu: Annotated[str, typer.Option(help="Only this GPU, by its UUID.")] = "",
    alarm: Annotated[str, typer.Option(help="Only what this alarm asked for.")] = "",
    case: Annotated[str, typer.Option(help="Only what alarms of this case asked for.")] = "",
    since: Annotated[str, typer.Option("--from", help="Only windows that end after this.")] = "",
    until: Annotated[str, typer.Option("--to", help="Only windows that begin before this.")] = "",
    after: Annotated[str, typer.Option(help="Go on behind the window with this cursor.")] = "",
    form: Annotated[str, typer.Option("--format", help="ndjson or csv.")] = "ndjson",
) -> None:
    """Write kept samples to the standard output."""
    if form not in exporting.FORMS:
        raise typer.BadParameter("the format is ndjson or csv")
    with opened() as (_, store):
        try:
            chosen = Chosen(
                cluster=cluster or None,
                since=_moment(since),
                until=_moment(until),
                alarm_id=ids.read(alarm) if alarm else None,
                case_id=ids.read(case) if case else None,
            )
            begin = exporting.read_cursor(after) if after else None
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        if gpu:
            with store.reading() as connection:
                found = find_gpus(connection, gpu)
            if len(found) != 1:
                typer.echo(f"{len(found)} GPUs are known by this name.", err=True)
                raise typer.Exit(1)
            chosen = replace(chosen, gpu_id=found[0].id)
        for piece in exporting.in_pieces(exporting.write_out(store, chosen, form, begin)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    told = datetime.fromisoformat(text)
    return told if told.tzinfo else told.replace(tzinfo=UTC)
