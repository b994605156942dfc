"""`shortlist check`: have the cases changed since calibration?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ._errors import DRIFT, answering
from ._options import AsJson, Data, Model, Read, read_options
from ._output import open_model, percent, print_json, print_texts, progress, tell

if TYPE_CHECKING:
    from ..tables.check import TableCheck


@answering
def check(model: Model, data: Data, read: Read = None, as_json: AsJson = False) -> None:
    """Show what has changed since calibration, column by column.

    No labels are needed. The exit code is 0 if no drift was detected, and 5 if the scores or a
    column have shifted.

    Example: shortlist check fraud.model today.csv || echo "look at today.csv first"
    """
    from ..tables import check_table

    with progress("Reading and scoring"):
        result = check_table(open_model(model), data, reading=read_options(read))
    if as_json:
        print_json(result)
    else:
        tell((), result.findings)
        _print(result)
    if result.has_drifted:
        raise typer.Exit(DRIFT)


def _print(result: TableCheck) -> None:
    typer.echo(
        f"{result.n_flagged:,} of {result.n_items:,} cases would be flagged "
        f"({percent(result.n_flagged / result.n_items)}); the capacity allows {result.room:,}. "
        f"{result.verdict}"
    )
    shifts = [{**result.score, "name": "(score)", "in_words": ""}, *result.columns]
    print_texts(
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
