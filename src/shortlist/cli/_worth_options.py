"""The options for values and efforts: --value, --effort, --budget, --unit, --worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._shared import capacity_from, columns_of_data, percent, shown_table

if TYPE_CHECKING:
    from rich.table import Table

    from ..capacity import Capacity
    from ..tables import TableModel
    from ..tables.flag import SpentWork
    from ..tables.money import Money


def _named(metavar: str, help: str, **options: Any) -> Any:
    return typer.Option(metavar=metavar, show_default=False, help=help, **options)


Value = Annotated[
    str | None,
    _named(
        "COLUMN",
        "The column that says what a case is worth if it is rare, such as --value amount. A model "
        "that was fitted with it knows its name.",
        autocompletion=columns_of_data,
    ),
]
Effort = Annotated[
    str | None,
    _named(
        "COLUMN",
        "The column that says how much work a case takes, such as --effort minutes_needed ...",
        autocompletion=columns_of_data,
    ),
]
Budget = Annotated[
    float | None, _named("AMOUNT", "... and how much may be spent on all, such as --budget 480 ...")
]
Unit = Annotated[
    str, typer.Option(metavar="WORD", help="... in which unit, such as --unit minutes.")
]
WorthOption = Annotated[
    float | None,
    typer.Option(
        "--worth",
        metavar="X",
        help="Leave places empty for cases of less expected value per unit of effort (without "
        "--value and --effort: of less probability), such as --worth 1.5.",
    ),
]
MaxEffort = Annotated[
    float | None,
    _named(
        "AMOUNT",
        "The most work that a case can take, such as --max-effort 60. Default: the most in the "
        "table; later cases that take more are never flagged.",
    ),
]


def rate_from(
    capacity: int | None,
    per: int | None,
    fraction: float | None,
    multiple: float | None,
    budget: float | None,
    effort: str | None,
) -> Capacity:
    """Return the capacity that the options give: a rate of flags, or of work."""
    if budget is None:
        if effort is not None:
            raise typer.BadParameter(
                "--effort needs a budget of work: 480 minutes for every 10,000 cases are --budget "
                "480 --per 10000 --unit minutes"
            )
        return capacity_from(capacity, per, fraction, multiple)
    if effort is None:
        raise typer.BadParameter(
            "--budget is one of work: name the column that says how much a case takes, such as "
            "--effort minutes_needed"
        )
    return budget_from(capacity, per, fraction, multiple, budget)


def budget_from(
    capacity: int | None,
    per: int | None,
    fraction: float | None,
    multiple: float | None,
    budget: float,
) -> Capacity:
    """Return a rate of work, if nothing else is given."""
    from ..capacity import Capacity

    if any(given is not None for given in (capacity, fraction, multiple)):
        raise typer.BadParameter(
            "give the capacity in one way: --budget 480 --per 10000, or a number of flags"
        )
    if per is None:
        raise typer.BadParameter(
            f"--budget {budget:g} needs --per: 480 minutes for every 10,000 cases, flagged or not, "
            "are --budget 480 --per 10000"
        )
    check_budget(budget)
    return Capacity.effort(budget, per=per)


def check_knows_effort(model: TableModel) -> None:
    """Raise an error if a model does not know how much work a case takes."""
    if model.schema.work is None or model.schema.work.effort is None:
        raise typer.BadParameter(
            "--budget is one of work, and the model was fitted without --effort: fit with --effort "
            "and --budget, or limit the number of flags"
        )


def check_budget(budget: float) -> None:
    """Raise an error unless a budget is a number of at least 0."""
    if not 0 <= budget < math.inf:
        raise typer.BadParameter(
            f"--budget {budget:g} must be a number of at least 0, such as --budget 480"
        )


def money_table(money: Money) -> Table:
    """Return what rules find, in money."""
    return shown_table(
        ("Rule", "Flagged", f"Spent ({money.unit})", "Value found", "Of all value"),
        [
            (
                rule.rule,
                f"{rule.flagged:,.0f}",
                f"{rule.effort:,.6g}",
                f"{rule.value:,.0f}",
                percent(rule.value_share),
            )
            for rule in money.rules
        ],
        title=f"Value found within {money.allowed:,.6g} {money.unit}; all rare cases are worth "
        f"{money.total_value:,.0f}",
        caption="If flags take more than that, they are worked off in a random order.",
    )


def plan_table(money: Money) -> Table:
    """Return what other budgets would find."""
    return shown_table(
        ("Budget", "Spent", "Cases", "Value found", "Of all value", "One more unit"),
        [
            (
                f"{point.budget:,.6g} {money.unit}",
                f"{point.effort:,.6g}",
                f"{point.n_flagged:,}",
                f"{point.value:,.0f}",
                percent(point.value_share),
                f"{point.price:,.3g}",
            )
            for point in money.points
        ],
        title="What other budgets would find",
        n_left=0,
    )


def spent_in_words(spent: SpentWork) -> str:
    """Say what flags take and are expected to bring."""
    if spent.effort is None:
        return f"Their expected value is {spent.value:,.6g}."
    return (
        f"They take {spent.effort:,.6g} {spent.unit}; the capacity allows {spent.allowed:,.6g} on "
        f"so many cases. Their expected value is {spent.value:,.6g}."
    )
