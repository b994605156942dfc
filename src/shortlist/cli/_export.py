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
    from ..persistence import OnnxExport
    from ..tables import ReadOptions

_TIES = ("as-fitted", "exclude")


@answering
@with_reading_options
def export(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write it, such as -o fraud.onnx.")
    ],
    ties: Annotated[
        str,
        typer.Option(
            help="as-fitted, or --ties exclude to never flag cases that tie with the threshold.",
            autocompletion=lambda incomplete: [t for t in _TIES if t.startswith(incomplete)],
        ),
    ] = "as-fitted",
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
    from ..persistence import export_onnx
    from ..tables import load_model

    exported = export_onnx(load_model(model), out, ties=ties, check=check, reading=reading)
    if as_json:
        print_json({"out": str(out), **vars(exported)})
    else:
        _print(exported, out)


def _print(exported: OnnxExport, out: Path) -> None:
    typer.echo(
        f"{len(exported.inputs)} inputs, one per column; outputs: {', '.join(exported.outputs)}."
    )
    typer.echo(
        f"Scores agree to {exported.largest_difference:.1e}. The threshold is raised by "
        f"{exported.margin:.1e}: rounding can never flag more cases."
    )
    compared = exported.comparison
    if compared is not None:
        typer.echo(
            f"On {compared.n_items:,} cases: {compared.flagged_by_both:,} flagged by both, "
            f"{compared.flagged_less:,} by the model alone, {compared.flagged_more:,} by the file "
            f"alone; scores agree to {compared.largest_difference:.1e}."
        )
    typer.echo(f"Written: {out}")
