"""`shortlist report`: one page about a model and its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.atomic import check_writable, write_whole
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, Target, answering, percent, print_json

if TYPE_CHECKING:
    from rich.status import Status

    from ..tables import Reading


@answering
@with_reading_options
def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page (.html).")],
    target: Target = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Make an HTML report about a model and its results.

    It shows whether the promise was kept, the capacity curve, a comparison with other rules, drift
    since calibration, and the model card.
    """
    check_writable(out, keep=(model, data))  # before any work
    from ..persistence import load_model
    from ..report import make_report, render_report

    with _waiting("Scoring and comparing ..."):
        loaded = load_model(model, with_twin=True)
        summary = make_report(loaded, data, target=target, reading=reading)
        page = render_report(summary)
    with write_whole(out) as file:
        file.write(page.encode("utf-8"))
    if as_json:
        print_json({"out": str(out), **summary})
    else:
        _print(summary, out)


def _waiting(what: str) -> Status:
    from rich.console import Console

    return Console(stderr=True).status(what)


def _print(summary: dict[str, Any], out: Path) -> None:
    promise, own = summary["promise"], summary["comparison"]["rules"][0]
    flagged = f"{promise['n_flagged']:,} of {promise['n_items']:,} flagged"
    found = f"{own['found']:,} rare cases found (M {percent(own['detection'])})"
    typer.echo(f"{promise['headline']}: {flagged}, room for {promise['room']:,}; {found}.")
    typer.echo(f"Report: {out}")
