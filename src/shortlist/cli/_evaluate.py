"""`shortlist evaluate`: the results of a model on labelled cases that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from ._compiling import announce_compiling
from ._errors import answering
from ._reading import with_reading_options
from ._shared import (
    AsJson,
    Data,
    Model,
    Target,
    interval,
    percent,
    print_json,
    progress_bar,
    rows_read,
    tell,
)
from ._worth_options import Budget, Effort, Unit, Value, WorthOption, money_table

if TYPE_CHECKING:
    from ..tables import ReadOptions
    from ..tables.fingerprints import SeenRows
    from ..tables.measure import CurvePoint, Evaluation

_MOST_LINES = 12
# Of fewer rows than this share, equal ones are not worth a line.
_A_FEW = 0.01
_FOR_SHARE = "The 95 % intervals are for as large a share of new cases."


@answering
@with_reading_options
def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    value: Value = None,
    effort: Effort = None,
    budget: Budget = None,
    unit: Unit = "units",
    worth: WorthOption = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Measure detection, flag rate and precision on labelled cases.

    Detection is the adjusted detection score M. Its intervals are for as large a share of new
    cases, as in the report.

    With --value, and with a model that was fitted with it, the value found is measured as well,
    beside lists of the same budget in other orders.
    """
    from ..tables import WorkColumns, evaluate_table, load_model

    work = WorkColumns(value, effort, budget, worth, unit)

    announce_compiling()
    with progress_bar() as progress:
        result = evaluate_table(
            load_model(model),
            data,
            target=target,
            reading=reading,
            work=work,
            on_progress=rows_read(progress),
        )
    warn_of_seen(result.seen)
    tell((), result.findings)
    if as_json:
        print_json(result)
        return
    console = Console()
    console.print(_rules(result))
    if result.money is not None:
        console.print(money_table(result.money))
        console.print(result.money.plan.one_more_in_words, highlight=False)
    console.print(curve_table(result.curve[:: max(1, len(result.curve) // _MOST_LINES)]))


def warn_of_seen(seen: SeenRows | None) -> None:
    """Say on standard error that a model has seen rows before."""
    if seen is not None and seen.in_words is not None and seen.n_seen > _A_FEW * seen.n_items:
        kind = "Warning" if seen.is_surprising else "Note"
        typer.echo(f"{kind}: {seen.in_words}", err=True)


def _validity(result: Evaluation) -> str:
    if result.seen is None:
        return "Valid only if the model has not seen these cases."
    if result.seen.is_surprising:
        return "Not valid: the model has seen some of these cases."
    return "The model was not fitted on these cases."


def _room(result: Evaluation) -> str:
    if result.money is None or result.money.unit == "cases":
        return percent(result.capacity_fraction)
    return f"{result.money.allowed:,.6g} {result.money.unit}"


def _rules(result: Evaluation) -> Table:
    flag_rate = f"{percent(result.flag_rate)} ({interval(result.flag_rate_interval)})"
    table = Table(
        title=f"{result.n_items:,} cases, {result.n_rare} of them rare, room for "
        f"{_room(result)}; flagged {flag_rate}",
        caption=f"{_validity(result)} {_FOR_SHARE}",
    )
    table.add_column("Rule")
    headings = ("Flagged", "Found", "Detection (M)", "Interval", "Precision", "Interval")
    for heading in headings:
        table.add_column(heading, justify="right")
    for rule in result.rules:
        table.add_row(
            rule.rule,
            f"{rule.flagged:g}",
            f"{rule.found:.3g}",
            percent(rule.detection),
            interval(rule.detection_interval),
            percent(rule.precision),
            interval(rule.precision_interval),
        )
    return table


def curve_table(points: list[CurvePoint]) -> Table:
    """Return points of a capacity curve as a table."""
    table = Table(
        title="What the highest scores find",
        caption="The 95 % interval is for the detection when this share of new cases is followed "
        "up, whatever their threshold is.",
    )
    for heading in ("Flags", "Share", "Found", "Detection", "Interval", "Precision", "One more"):
        table.add_column(heading, justify="right")
    for point in points:
        table.add_row(
            f"{point.flagged:,}",
            percent(point.fraction),
            f"{point.found:,}",
            percent(point.detection),
            interval(point.detection_interval),
            percent(point.precision),
            f"{point.marginal:.3f}",
        )
    return table
