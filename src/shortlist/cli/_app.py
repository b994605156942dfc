"""The commands, gathered."""

from __future__ import annotations

import typer

from .. import __version__
from ._demo import demo
from ._evaluate import evaluate
from ._export import export
from ._fit import fit
from ._flag import flag
from ._group import Commands
from ._plan import plan
from ._report import report
from ._reproduce import reproduce
from ._select import select
from ._stream import stream

app = typer.Typer(
    name="shortlist",
    cls=Commands,
    help="Find the most rare cases that the follow-up capacity allows.",
    no_args_is_help=True,
    add_completion=True,
)
for command in (fit, select, flag, evaluate, plan, report, stream, export, demo, reproduce):
    app.command()(command)


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
