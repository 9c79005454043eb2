"""Which commands does `python -m app` have?"""

from __future__ import annotations

import typer

from app.commands import keys, telemetry
from app.commands.demo import demo
from app.commands.migrate import migrate
from app.commands.serve import serve

commands = typer.Typer(
    help="Silent Witness: forensics for silent data corruption in GPU fleets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
commands.command()(serve)
commands.command()(migrate)
commands.command()(demo)
commands.command()(keys.link)
commands.add_typer(keys.token_commands, name="token")
commands.add_typer(keys.audit_commands, name="audit")
commands.add_typer(telemetry.commands, name="telemetry")


def main() -> None:
    """Run one command."""
    commands()


if __name__ == "__main__":
    main()
