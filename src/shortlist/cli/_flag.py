"""`shortlist flag`: decisions row by row, in constant memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .._core.atomic import check_writable, write_whole
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, Out, answering, percent, print_json, progress_bar

if TYPE_CHECKING:
    from ..tables import FlagSummary, Reading, TableModel


@answering
@with_reading_options
def flag(
    model: Model, data: Data, out: Out = None, as_json: AsJson = False, *, reading: Reading
) -> None:
    """Decide for every case on its own, in files of any size.

    Decisions are written to --out or to standard output, as CSV or (with --json) as one JSON object
    per line.
    """
    if out is not None:
        check_writable(out, keep=(model, data))
    from ..persistence import load_model

    loaded = load_model(model)
    if out is None:
        summary = _to_standard_output(loaded, data, as_json, reading)
    else:
        summary = _to_file(loaded, data, out, reading)
    if as_json and out is not None:
        print_json({**vars(summary), "flagged_fraction": summary.flagged_fraction, "out": str(out)})
    else:
        typer.echo(
            f"{summary.n_flagged:,} of {summary.n_items:,} flagged "
            f"({percent(summary.flagged_fraction)}). The capacity is "
            f"{percent(summary.capacity_fraction)}, the guarantee {summary.guarantee!r}.",
            err=True,
        )


def _to_file(model: TableModel, data: Path, out: Path, reading: Reading) -> FlagSummary:
    from ..tables import flag_rows, output_format

    format = output_format(out)
    with progress_bar() as progress, write_whole(out) as file:
        task = progress.add_task("flagging", total=None)
        return flag_rows(
            model,
            data,
            file,
            format=format,
            reading=reading,
            on_progress=lambda n: progress.update(task, description=f"{n:,} rows"),
        )


def _to_standard_output(
    model: TableModel, data: Path, as_json: bool, reading: Reading
) -> FlagSummary:
    from ..tables import flag_rows

    file = typer.get_binary_stream("stdout")
    format = "jsonl" if as_json else "csv"
    summary = flag_rows(model, data, file, format=format, reading=reading)
    file.flush()
    return summary
