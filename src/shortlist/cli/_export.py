"""`shortlist export`: the decision of a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._core.atomic import check_writable
from ._errors import answering
from ._reading import with_reading_options
from ._shared import AsJson, Model, print_json

if TYPE_CHECKING:
    from ..models.onnx_export import OnnxComparison, OnnxExport
    from ..tables import ReadOptions


@answering
@with_reading_options
def export(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write it, such as -o fraud.onnx.")
    ],
    check: Annotated[
        Path | None,
        typer.Option(
            help="A table on which to compare the file with the model, such as --check later.csv."
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Write the decision as an ONNX file, to run without Python."""
    check_writable(out, keep=(model, check))
    from ..tables import load_model
    from ..tables.onnx_file import export_model

    exported, compared = export_model(load_model(model), out, check=check, reading=reading)
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
            f"Given {' and '.join(exported.keys)}, the file flags the same cases as the model; "
            "without, it flags fewer, and never a case that the model does not flag."
        )
    if compared is not None:
        typer.echo(
            f"On {compared.n_items:,} cases: {compared.flagged_by_both:,} flagged by both, "
            f"{compared.flagged_less:,} by the model alone, {compared.flagged_more:,} by the file "
            f"alone; scores agree to {compared.largest_difference:.1e}."
        )
    typer.echo(f"Written: {out}")
