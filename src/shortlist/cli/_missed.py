"""`shortlist missed`: what the policy in use misses, by the outcomes of probes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._errors import answering
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, percent, print_json

if TYPE_CHECKING:
    from ..feedback import MissedEstimate
    from ..tables import ReadOptions
    from ..tables.reviews import MissedResult

#: The exit code if detection has fallen below what the model card says.
FALLEN = 6


@answering
@with_reading_options
def missed(
    model: Model,
    data: Data,
    outcome: Annotated[
        str | None,
        typer.Option(
            help="The column with the labels of reviewed cases, empty while unknown, such as "
            "--outcome result; by default the target of the fit."
        ),
    ] = None,
    selected_by: Annotated[
        str,
        typer.Option(
            help="The column that says how a case was selected, such as --selected-by why; it "
            "holds probe for probes."
        ),
    ] = "selected_by",
    inclusion: Annotated[
        str,
        typer.Option(
            help="The column with the probability of being selected, such as --inclusion chance."
        ),
    ] = "inclusion",
    id: Annotated[
        str | None, typer.Option("--id", help="The column with the ids, such as --id case.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="A column with periods, such as --period week, for an answer for each."),
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option(
            help="The number of all cases, reviewed or not, such as --cases 20000.", min=1
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            help="How sure the intervals shall be, such as --confidence 0.9.", min=0.5, max=0.9999
        ),
    ] = 0.95,
    look: Annotated[
        int | None,
        typer.Option(
            help="Number your looks if you look again and again: --look 1, then --look 2, ...",
            min=1,
        ),
    ] = None,
    challenger: Annotated[
        Path | None,
        typer.Option(
            help="Another model file, such as --challenger new.model, to be judged on the same "
            "probes; the table needs its columns."
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Estimate how many rare cases are missed, from the probes.

    The table has a row for each reviewed case, with the columns that select --probe wrote and the
    label that the review found. The exit code is 6 if the detection has fallen below what the model
    card says.

    Example: shortlist missed fraud.model reviews.csv --period week --look 3
    """
    from ..tables import load_model
    from ..tables.reviews import missed_in_table

    result = missed_in_table(
        load_model(model),
        data,
        outcome=outcome,
        selected_by=selected_by,
        inclusion=inclusion,
        id=id,
        period=period,
        n_cases=cases,
        confidence=confidence,
        look=look,
        challenger=None if challenger is None else load_model(challenger),
        reading=reading,
    )
    if as_json:
        print_json(result)
    else:
        _print(result)
    if result.has_fallen:
        raise typer.Exit(FALLEN)


def _print(result: MissedResult) -> None:
    estimate, console = result.estimate, Console()
    table = Table(title=None if estimate.is_enough else "Not enough probes yet")
    for heading in (
        "Period",
        "Probes",
        "Hits",
        "Found",
        "Missed",
        "Interval",
        "Detection",
        "Interval",
    ):
        table.add_column(heading, justify="left" if heading == "Period" else "right")
    for period, each in estimate.by_period.items():
        table.add_row(str(period), *_cells(each))
    table.add_row("all", *_cells(estimate))
    console.print(table)
    typer.echo(str(estimate))
    if estimate.challenger is not None:
        typer.echo(str(estimate.challenger))
    if result.has_fallen:
        typer.echo(
            f"Alarm: the model card says that the list finds {percent(result.expected_detection)}; "
            "detection has fallen below that. Fit the model to recent labelled cases."
        )


def _cells(estimate: MissedEstimate) -> list[str]:
    return [
        f"{estimate.n_probes:,}",
        f"{estimate.n_hits:,}",
        f"{estimate.found:,}",
        _count(estimate.missed),
        f"{_count(estimate.missed_low)} to {_count(estimate.missed_high)}",
        percent(estimate.detection),
        f"{percent(estimate.detection_low)} to {percent(estimate.detection_high)}",
    ]


def _count(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "\u2013"
