"""The commands, gathered."""

from __future__ import annotations

import typer

from .. import __version__
from ._demo import demo
from ._reproduce import reproduce

app = typer.Typer(
    name="shortlist",
    help="Find the most rare cases that the follow-up capacity allows.",
    no_args_is_help=True,
    add_completion=True,
)
app.command()(demo)
app.command()(reproduce)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shortlist {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Find the most rare cases that the follow-up capacity allows."""
