"""`shortlist select`: a list of exactly so many cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .._core.atomic import check_writable, write_whole
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, Out, answering, percent, print_json

if TYPE_CHECKING:
    from ..tables import Reading, SelectedRow

_COLUMNS = {
    "rank": "int64",
    "row": "int64",
    "id": "string",
    "score": "double",
    "probability": "double",
    "reasons": "string",
}


@answering
@with_reading_options
def select(
    model: Model,
    data: Data,
    count: Annotated[int, typer.Option(help="The number of cases on the list.", min=0)],
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """List exactly so many of the most suspicious cases, with reasons."""
    from ..persistence import load_model
    from ..tables import output_format, select_rows

    if out is not None:  # before any work
        check_writable(out, keep=(model, data))
        output_format(out)
    selected = select_rows(load_model(model), data, count=count, reading=reading)
    if len(selected) < count:
        typer.echo(f"Note: the table has only {len(selected)} rows; all are listed.", err=True)
    if out is not None:
        _write(selected, out)
    if as_json:
        print_json({"count": len(selected), "out": out and str(out), "rows": selected})
    elif out is None:
        _print(selected)
    else:
        typer.echo(f"{len(selected)} cases: {out}")


def _write(selected: list[SelectedRow], out: Path) -> None:
    from ..tables import open_writer, output_format

    columns = {name: [getattr(row, name) for row in selected] for name in _COLUMNS}
    columns["reasons"] = [_reasons(row) for row in selected]
    format = output_format(out)
    with write_whole(out) as file, open_writer(file, format, _COLUMNS) as write:
        write(columns)


def _print(selected: list[SelectedRow]) -> None:
    table = Table(caption="In parentheses: how far the score would fall with the usual value.")
    for heading in ("Rank", "Case", "Score", "Probability"):
        table.add_column(heading, justify="right")
    table.add_column("Raised by")
    for row in selected:
        case = f"row {row.row}" if row.id is None else row.id
        probability = percent(row.probability)
        table.add_row(str(row.rank), case, f"{row.score:.4g}", probability, _reasons(row))
    Console().print(table)


def _reasons(row: SelectedRow) -> str:
    return "; ".join(
        f"{reason.column} = {_value(reason.value)} (+{reason.effect:.2g})" for reason in row.reasons
    )


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
