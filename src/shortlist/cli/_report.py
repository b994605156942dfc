"""`shortlist report`: one page about a model and its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from .._core.files import check_writable, write_whole
from . import _options as options
from . import _shell as shell


def report(
    model: options.Model,
    data: options.Data,
    out: options.NewFile,
    target: options.Column = None,
    segment: options.Column = None,
    reviews: options.File = None,
    period: options.Text = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a report about a model and its results: one page.

    It shows whether the promise was kept, the capacity curve, the top of the list with reasons, a
    comparison with other rules, drift since calibration, and the model card. A table without labels
    gets a report, too.

    Example: shortlist report fraud.model march.csv --segment country -o march.html

    Options
    -------
    out
        Where to write it, such as -o report.html.
    segment
        A column with groups to compare, such as --segment team.
    period
        A column of the reviews with periods, such as --period week, for an answer for each.
    """
    given = dict(locals())
    check_writable(out, keep=(model, data, reviews))  # before any work
    if out.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(
            f"--out {out} is not a page; name a file that ends in .html, which any browser prints"
        )
    from ..report import make_report, render_report

    with shell.progress("Scoring and comparing"):
        summary = make_report(
            shell.open_model(model),
            data,
            reading=options.read_options(read),
            reviews_period=period,
            **options.same_named(given, make_report),
        )
        for finding in summary["drift"]["findings"]:  # the page advises whoever types commands
            finding["message"] = shell.in_options(finding["message"])
        page = render_report(summary)
    with write_whole(out) as file:
        file.write(page.encode("utf-8"))
    if not shell.printed_json(as_json, {"out": str(out), **summary}):
        _print(summary, out)


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
    return f"{among}; within the capacity, {shell.percent(own['detection'])} are found (M)."
