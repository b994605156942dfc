"""`shortlist report`: one page about a model and its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.atomic import check_writable, write_whole
from ._errors import answering
from ._reading import with_reading_options, with_work_options
from ._shared import AsJson, Data, Model, Period, Reviews, Target, percent, print_json

if TYPE_CHECKING:
    from rich.status import Status

    from ..tables import ReadOptions, WorkColumns

_PAGES = (".html", ".htm")


def _named(help: str, metavar: str) -> Any:
    return typer.Option(help=help, metavar=metavar, show_default=False)


@answering
@with_reading_options
@with_work_options
def report(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Where to write it, such as -o report.html; a PDF for print if it ends in .pdf.",
        ),
    ],
    target: Target = None,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="Leave labels aside: flags, drift and list only.")
    ] = False,
    segment: Annotated[
        str | None, _named("A column with groups to compare, such as --segment team.", "NAME")
    ] = None,
    time: Annotated[
        str | None, _named("A column of dates, for results by week or so: --time day.", "NAME")
    ] = None,
    title: Annotated[
        str | None, _named("The heading, such as --title 'Fraud in March'.", "TEXT")
    ] = None,
    reviews: Reviews = None,
    period: Period = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
    work: WorkColumns,
) -> None:
    """Make a report about a model and its results: a page, or a PDF.

    It shows whether the promise was kept, the capacity curve, the top of the list with reasons, a
    comparison with other rules, drift since calibration, what to do next, and the model card. A
    table without labels gets a report, too.

    Example: shortlist report fraud.model march.csv --segment country --time day -o march.html
    """
    kept = (model, data) if reviews is None else (model, data, reviews)
    check_writable(out, keep=kept)  # before any work
    from ..report import make_report, print_report, render_report
    from ..report.pdf import find_browser
    from ..tables import load_model

    is_paper = _is_paper(out)
    if is_paper:
        find_browser()
    with _waiting("Scoring and comparing ..."):
        summary = make_report(
            load_model(model),
            data,
            target=target,
            reading=reading,
            labels=not no_labels,
            segment=segment,
            time=time,
            title=title,
            model_file=model,
            work=work,
            reviews=reviews,
            reviews_period=period,
        )
        page = render_report(summary)
        content = print_report(page) if is_paper else page.encode("utf-8")
    with write_whole(out) as file:
        file.write(content)
    if as_json:
        print_json({"out": str(out), **summary})
    else:
        _print(summary, out)


def _is_paper(out: Path) -> bool:
    suffix = out.suffix.lower()
    if suffix not in (*_PAGES, ".pdf"):
        raise typer.BadParameter(
            f"{out} is neither a page nor a PDF; name a file that ends in .html or .pdf",
            param_hint="--out",
        )
    return suffix == ".pdf"


def _waiting(what: str) -> Status:
    from rich.console import Console

    return Console(stderr=True).status(what)


def _print(summary: dict[str, Any], out: Path) -> None:
    promise = summary["promise"]
    flagged = f"{promise['n_flagged']:,} of {promise['n_items']:,} flagged"
    typer.echo(f"{promise['headline']}: {flagged}, room for {promise['room_in_words']}.")
    typer.echo(_found(summary))
    if summary["money"] is not None:
        typer.echo(summary["money"]["in_words"])
    if summary["missed"] is not None:
        typer.echo(f"{summary['missed']['verdict']} {summary['missed']['in_words']}")
    typer.echo(f"Report: {out}")


def _found(summary: dict[str, Any]) -> str:
    if summary["comparison"] is None:
        return "There are no labels: what the flags find is not known yet."
    own, n_rare = summary["comparison"]["rules"][0], summary["data"]["n_rare"]
    among = f"{own['found']:,} of {n_rare:,} rare cases are among them"
    return f"{among}; within the capacity, {percent(own['detection'])} are found (M)."
