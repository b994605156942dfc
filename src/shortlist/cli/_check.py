"""`shortlist check`: have the cases changed since calibration?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .._core.formatting import counted
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.drift import TableCheck


def check(
    model: options.Model,
    data: options.Data,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what has changed since calibration, column by column.

    No labels are needed. The exit code is 0 if no drift was detected, and 5 if the scores or a
    column have shifted.

    Example: shortlist check fraud.model today.csv || echo "look at today.csv first"
    """
    from ..tables import check_table

    with shell.progress("Reading and scoring"):
        result = check_table(shell.open_model(model), data, reading=options.read_options(read))
    if not shell.printed_json(as_json, result):
        _print(result)
    if result.has_drifted:
        raise typer.Exit(shell.DRIFT)


def _print(result: TableCheck) -> None:
    shell.tell((), result.findings)
    share = result.n_flagged / result.n_items
    typer.echo(
        f"{result.n_flagged:,} of {counted(result.n_items, 'case')} would be flagged "
        f"({shell.percent(share)}); the capacity allows {result.room:,}. {result.verdict}"
    )
    shifts = [{**result.score, "name": "(score)", "in_words": ""}, *result.columns]
    shell.print_texts(
        ("Column", "Shift", "Index", "Largest change"),
        [
            (
                shift["name"],
                shift["shift"],
                f"{shift['psi']:.3f}",
                shift["in_words"] if shift["shift"] != "none seen" else "",
            )
            for shift in shifts
        ],
        n_left=2,
        n_right=1,
        title="Shifts since calibration",
        caption="Index: the population stability index. A shift is named if it is significant at "
        "1 % after a correction for the number of columns.",
    )
