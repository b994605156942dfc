"""`shortlist check`: have the cases changed since calibration?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from ._compiling import announce_compiling
from ._errors import DRIFT, answering
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, percent, print_json, tell, waiting

if TYPE_CHECKING:
    from ..tables import ReadOptions
    from ..tables.check import TableCheck


@answering
@with_reading_options
def check(model: Model, data: Data, as_json: AsJson = False, *, reading: ReadOptions) -> None:
    """Tell what has changed since calibration, column by column.

    No labels are needed. The exit code is 0 if nothing speaks against the promise, and 5 if the
    scores or a column have shifted.

    Example: shortlist check fraud.model today.csv || echo "look at today.csv first"
    """
    from ..tables import check_table, load_model

    announce_compiling()
    with waiting("Reading and scoring ..."):
        result = check_table(load_model(model), data, reading=reading)
    if as_json:
        print_json(result)
    else:
        tell((), result.findings)
        _print(result)
    if result.has_drifted:
        raise typer.Exit(DRIFT)


def _print(result: TableCheck) -> None:
    console = Console()
    console.print(
        f"{result.n_flagged:,} of {result.n_items:,} cases would be flagged "
        f"({percent(result.n_flagged / result.n_items)}); the capacity allows {result.room:,}. "
        f"{result.verdict}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(
        title="Shifts since calibration",
        caption="Index: the population stability index. A shift is named if it is significant at "
        "1 % after a correction for the number of columns.",
    )
    table.add_column("Column")
    table.add_column("Shift")
    table.add_column("Index", justify="right")
    table.add_column("Largest change")
    table.add_row("(score)", result.score["shift"], f"{result.score['psi']:.3f}", "")
    for column in result.columns:
        words = column["in_words"] if column["shift"] != "none seen" else ""
        table.add_row(column["name"], column["shift"], f"{column['psi']:.3f}", words)
    console.print(table)
