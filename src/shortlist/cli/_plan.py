"""`shortlist plan`: what other capacities would find, and what one more reviewer adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._compiling import announce_compiling
from ._errors import answering
from ._evaluate import curve_table, warn_of_seen
from ._reading import with_reading_options
from ._shared import AsJson, Data, Model, Target, percent, print_json, progress_bar, rows_read, tell
from ._worth_options import Budget, Effort, Unit, Value, WorthOption, plan_table

if TYPE_CHECKING:
    from ..tables import ReadOptions
    from ..tables.measure import ExpectedFlags, Plan


@answering
@with_reading_options
def plan(
    model: Model,
    data: Data,
    target: Target = None,
    load: Annotated[
        int, typer.Option(help="How many cases one reviewer handles, such as --load 20.", min=1)
    ] = 1,
    value: Value = None,
    effort: Effort = None,
    budget: Budget = None,
    unit: Unit = "units",
    worth: WorthOption = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Show what other capacities and one more reviewer would find.

    Capacities range from a quarter to four times the model's own. Without labels, only the number
    of flags can be predicted. With --value, --effort and --budget, it also shows the value that
    other budgets would find, and what one more unit of effort is worth.
    """
    from ..tables import WorkColumns, load_model
    from ..tables.measure import plan_capacity

    work = WorkColumns(value, effort, budget, worth, unit)

    announce_compiling()
    loaded = load_model(model)
    with progress_bar() as progress:
        result = plan_capacity(
            loaded,
            data,
            target=target,
            load=load,
            reading=reading,
            work=work,
            on_progress=rows_read(progress),
        )
    warn_of_seen(result.seen)
    tell((), result.findings)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: Plan) -> None:
    console = Console()
    of_work = result.money is not None and result.money.unit != "cases"
    share = percent(result.capacity_fraction)
    capacity = f"budget pays for about {share} of them" if of_work else f"capacity is {share}"
    console.print(f"{result.n_items:,} cases; the model's {capacity}.", highlight=False)
    if result.points is not None:
        console.print(curve_table(result.points))
    if result.expected_flags is not None:
        console.print(
            "The table has no labels, so only the number of flags can be predicted.",
            highlight=False,
        )
        console.print(_flags_table(result.expected_flags))
    if result.money is not None:
        console.print(plan_table(result.money))
        console.print(result.money.one_more_in_words, highlight=False)
    reviewer = result.next_reviewer
    if reviewer is not None and (reviewer.load > 1 or not of_work):
        cases = "1 case" if reviewer.load == 1 else f"{reviewer.load} cases"
        console.print(
            f"One more reviewer, with room for {cases}, finds about "
            f"{reviewer.expected:.3g} more rare cases ({reviewer.found} in this table).",
            highlight=False,
            soft_wrap=True,
        )


def _flags_table(expected: list[ExpectedFlags]) -> Table:
    table = Table(title="What the rule would flag")
    for heading in ("Capacity", "Room", "Flagged"):
        table.add_column(heading, justify="right")
    for row in expected:
        table.add_row(percent(row.fraction), f"{row.room:,}", f"{row.flagged:,}")
    return table
