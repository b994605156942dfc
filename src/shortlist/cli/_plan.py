"""`shortlist plan`: what other capacities would find, and what the next reviewer is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._answer import answering, percent, print_json
from ._evaluate import curve_table
from ._options import AsJson, Data, Model

if TYPE_CHECKING:
    from ..tables import ExpectedFlags, Plan


@answering
def plan(
    model: Model,
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="The column with the labels; as in fit when absent.")
    ] = None,
    load: Annotated[int, typer.Option(help="How many cases one reviewer handles.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Show what other capacities and the next reviewer would find.

    From a quarter to four times the capacity; without labels, only the flags to expect.
    """
    from ..persistence import load_model
    from ..tables import plan_capacity

    result = plan_capacity(load_model(model), data, target=target, load=load)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: Plan) -> None:
    console = Console()
    console.print(
        f"{result.n_items:,} cases; the model's capacity is {percent(result.capacity_fraction)}.",
        highlight=False,
    )
    if result.points is not None:
        console.print(curve_table(result.points))
    if result.expected_flags is not None:
        console.print("The table has no labels, so only flags can be foretold.", highlight=False)
        console.print(_flags_table(result.expected_flags))
    if result.next_reviewer is not None:
        reviewer = result.next_reviewer
        console.print(
            f"The next reviewer, with {reviewer.load} more at this capacity, finds about "
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
