"""`shortlist export`: the decision of a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .._core.files import check_writable
from ._options import AsJson, Model, NewFile
from ._shell import open_model, printed_json

if TYPE_CHECKING:
    from ..models.onnx_export import OnnxExport


def export(model: Model, out: NewFile, as_json: AsJson = False) -> None:
    """Write the decision as an ONNX file, to run without Python.

    Options
    -------
    out
        Where to write it, such as -o fraud.onnx.
    """
    check_writable(out, keep=(model,))
    from ..tables.model_file import export_model

    exported = export_model(open_model(model), out)
    if not printed_json(as_json, {"out": str(out), **vars(exported)}):
        _print(exported, out)


def _print(exported: OnnxExport, out: Path) -> None:
    typer.echo(
        f"{len(exported.inputs)} inputs, one per column; outputs: {', '.join(exported.outputs)}."
    )
    typer.echo(f"Scores agree to {exported.largest_difference:.1e}.")
    if exported.keys:
        typer.echo(
            f"It also takes hashes of a case ({', '.join(exported.keys)}), and flags the cases "
            "that the model flags."
        )
    typer.echo(f"Written: {out}")
