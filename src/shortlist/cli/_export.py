"""`shortlist export`: the decision of a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .._core.files import check_writable
from ._options import AsJson, File, Model, NewFile, Read, read_options
from ._shell import open_model, print_json

if TYPE_CHECKING:
    from ..models.onnx_export import OnnxComparison, OnnxExport


def export(
    model: Model, out: NewFile, check: File = None, read: Read = None, as_json: AsJson = False
) -> None:
    """Write the decision as an ONNX file, to run without Python.

    Options
    -------
    out
        Where to write it, such as -o fraud.onnx.
    check
        A table on which to compare the file with the model, such as --check later.csv.
    """
    check_writable(out, keep=(model, check))
    from ..tables.model_file import export_model

    loaded, reading = open_model(model), read_options(read)
    exported, compared = export_model(loaded, out, check=check, reading=reading)
    if as_json:
        print_json({"out": str(out), **vars(exported), "comparison": compared})
    else:
        _print(exported, compared, out)


def _print(exported: OnnxExport, compared: OnnxComparison | None, out: Path) -> None:
    typer.echo(
        f"{len(exported.inputs)} inputs, one per column; outputs: {', '.join(exported.outputs)}."
    )
    typer.echo(f"Scores agree to {exported.largest_difference:.1e}.")
    if exported.keys:
        typer.echo(
            f"It also takes {' and '.join(exported.keys)}, hashes of a case, and flags the cases "
            "that the model flags."
        )
    if compared is not None:
        typer.echo(
            f"On {compared.n_items:,} cases: {compared.flagged_by_both:,} flagged by both, "
            f"{compared.flagged_less:,} by the model alone, {compared.flagged_more:,} by the file "
            f"alone; scores agree to {compared.largest_difference:.1e}."
        )
    typer.echo(f"Written: {out}")
