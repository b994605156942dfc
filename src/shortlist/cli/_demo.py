"""`shortlist demo`: the main job on simulated data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._errors import answering
from ._shared import AsJson, print_json

if TYPE_CHECKING:
    from ._demo_steps import DemoResult


@answering
def demo(
    out: Annotated[
        Path, typer.Option(help="Where to save the picture, such as --out curve.png (or pdf, svg).")
    ] = Path("shortlist-demo.png"),
    as_json: AsJson = False,
) -> None:
    """Fit, calibrate and flag simulated payments; draw what it finds."""
    from ._demo_steps import draw_demo, run_demo

    console = Console()
    if not out.resolve().parent.is_dir():
        raise typer.BadParameter(
            f"the folder {out.resolve().parent} does not exist", param_hint="--out"
        )
    with Console(stderr=True).status("Fitting a forest to 20,000 simulated card payments ..."):
        result = run_demo()
        picture = draw_demo(result, out)
    if as_json:
        print_json({**result.to_json(), "picture": str(picture.resolve())})
        return
    console.print(_table(result))
    console.print(f"Picture: {picture.resolve()}", soft_wrap=True, highlight=False)


def _table(result: DemoResult) -> Table:
    table = Table(
        title=f"{result.n_test:,} payments, {result.n_rare} of them frauds, "
        f"room to review {result.max_flags}",
        caption="Detection counts only the frauds that can be reviewed (M), with its 95 % interval",
    )
    table.add_column("Rule")
    for heading in ("Flagged", "Frauds found", "Detection", "95 % interval"):
        table.add_column(heading, justify="right")
    for rule in result.rules:
        table.add_row(
            rule.rule,
            f"{rule.flagged}",
            f"{rule.found}",
            f"{rule.adjusted_detection:.1%}",
            f"{rule.low:.1%} to {rule.high:.1%}",
        )
    return table
