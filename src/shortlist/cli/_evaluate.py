"""`shortlist evaluate`: what a model finds, what other capacities would find, what it misses."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from .._core.formatting import between, counted, number, stated_percent
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.measure import Evaluation
    from ..tables.reviews import MissedResult

# Of fewer rows than this share, equal ones are not worth a line.
_A_FEW = 0.01


def evaluate(
    model: options.Model,
    data: Annotated[options.Table | None, options.table("[DATA]")] = None,
    target: options.Column = None,
    find: options.Number = None,
    segment: options.Column = None,
    load: Annotated[int, typer.Option(min=1)] = 1,
    reviews: options.File = None,
    period: options.Text = None,
    confidence: options.Number = None,
    challenger: options.OtherModel = None,
    id: options.Column = None,
    value: options.Column = None,
    effort: options.Column = None,
    budget: options.Number = None,
    worth: options.Number = None,
    unit: str = "units",
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure detection, flag rate and precision on labelled cases.

    Detection is the adjusted detection score M. Its intervals are for as large a share of new
    cases, as in the report. With --value, and with a model that was fitted with it, the value found
    is measured as well, beside lists of the same budget in other orders.

    Capacities from a quarter to four times the model's own are compared. --find 0.9 says how many
    reviews it takes to find nine in ten rare cases, and whether the capacity is enough.
    --segment region shows who is found under the one threshold; with --find 0.5, also what it would
    cost to find half of the rare cases in every group.

    --reviews reviews.csv estimates how many rare cases are missed. The table has a row for each
    reviewed case, with the columns that select --probe wrote and the label that the review found.
    With --value, or with a model that was fitted with it, it also says what is missed in value.
    The exit code is 6 if the detection has fallen below what the model card says.

    Example: shortlist evaluate fraud.model later.csv

    Options
    -------
    find
        A share of the rare cases to find, such as --find 0.9: says how many reviews it takes.
    segment
        A column with groups, such as --segment region: measures the same rule in each of them.
    load
        How many cases one more reviewer handles, such as --load 20.
    period
        With --reviews: a column with periods, such as --period week, for an answer for each.
    confidence
        With --reviews: how sure the intervals are, such as --confidence 0.99.
    challenger
        With --reviews: another model file, such as --challenger new.model, to be judged on the
        same probes; the table needs its columns.
    """
    asked = dict(locals())
    if (data is None) == (reviews is None):
        raise typer.BadParameter("Missing argument 'DATA': give a table, or --reviews reviews.csv")
    if reviews is not None and (find is not None or segment is not None):
        option = "--segment" if find is None else "--find"
        raise typer.BadParameter(f"{option} needs labelled cases: give DATA in place of --reviews")
    for option in ("period", "id", "confidence", "challenger"):
        if reviews is None and asked[option] is not None:
            raise typer.BadParameter(f"--{option} belongs to --reviews, which was not given")
    from ..tables import evaluate_table

    loaded, reading = shell.open_model(model), options.read_options(read)
    if reviews is not None:
        from ..tables.reviews import missed_in_table

        other = None if challenger is None else shell.open_model(challenger)
        missed = missed_in_table(
            loaded,
            reviews,
            outcome=target,
            reading=reading,
            **options.same_named({**asked, "challenger": other}, missed_in_table),
        )
        if not shell.printed_json(as_json, missed):
            _print_missed(missed)
        if missed.has_fallen:
            raise typer.Exit(shell.FALLEN)
        return
    assert data is not None
    work = options.work_from(value, effort, worth, budget, unit)
    with shell.progress("reading") as show:
        known = options.same_named(asked, evaluate_table)
        result = evaluate_table(loaded, data, reading=reading, work=work, on_progress=show, **known)
    seen = result.seen
    if seen is not None and seen.in_words is not None and seen.n_seen > _A_FEW * seen.n_items:
        shell.say("Warning" if seen.is_surprising else "Note", seen.in_words)
    shell.tell((), result.findings)
    if not shell.printed_json(as_json, result):
        _print_evaluation(result)


# --- what is found ---


def _print_evaluation(result: Evaluation) -> None:
    flag_rate = f"{shell.percent(result.flag_rate)} ({shell.interval(result.flag_rate_interval)})"
    shell.print_table(
        shell.RULES | {"Its interval": ("precision_interval", shell.interval)},
        result.rules,
        title=f"{result.n_items:,} cases, {result.n_rare:,} of them rare, room for "
        f"{_room(result)}; flagged {flag_rate}",
        caption=f"{_validity(result)} Detection (M) counts only cases that can be followed up. The "
        "intervals are for as large a share of new cases.",
    )
    shell.print_money(result.money, budgets=True)
    shell.print_table(
        _CAPACITIES,
        [
            {**row, "interval": (row["detection_low"], row["detection_high"])}
            for row in result.capacities
        ],
        title="What other capacities would find",
        caption="The 95 % interval is for the detection when this share of new cases is followed "
        "up, whatever their threshold is.",
        n_left=0,
    )
    reviewer = result.next_reviewer
    typer.echo(
        f"One more reviewer, with room for {counted(reviewer.load, 'case')}, finds "
        f"{counted(reviewer.found, 'more rare case')} in this table; by the slope of the "
        f"smoothed curve, about {number(reviewer.expected)}."
    )
    _print_needed(result)
    _print_groups(result)


def _validity(result: Evaluation) -> str:
    if result.seen is None:
        return "Valid only if the model has not seen these cases."
    if result.seen.is_surprising:
        return "Not valid: the model has seen some of these cases."
    return "The model was not fitted on these cases."


def _room(result: Evaluation) -> str:
    if result.money is None or result.money.unit == "cases":
        return stated_percent(result.capacity_fraction)
    return f"{number(result.money.allowed, 12)} {result.money.unit}"


_CAPACITIES: shell.Cells = {
    "Flags": ("n_flagged", number),
    "Share": ("fraction", shell.percent),
    "Found": ("n_found", number),
    "Detection": ("detection", shell.percent),
    "95 % interval": ("interval", shell.interval),
    "Precision": ("precision", shell.percent),
    "One more": ("marginal", ".3f"),
}


def _print_needed(result: Evaluation) -> None:
    """Say how many reviews a share of the rare cases takes, and what that means for the model."""
    if (needed := result.needed) is None:
        return
    share, escape = stated_percent(needed.detection), stated_percent(1 - needed.detection)
    enough = math.ceil(10_000 * Decimal(str(needed.high))) / 10_000  # less would promise nothing
    typer.echo(
        f"To find {share} of the rare cases takes {counted(needed.n_flagged, 'review')} of these "
        f"{result.n_items:,} cases ({shell.percent(needed.fraction)}); of new cases, "
        f"{between(needed.low, needed.high)} (95 %). Reviews of {stated_percent(enough)} keep "
        f"the escape rate, the share of the rare cases that nobody reviews, within {escape}."
    )
    verdict = {True: "is enough", False: "is not enough", None: "may be enough, or not"}
    typer.echo(
        f"The model's capacity of {shell.percent(result.capacity_fraction)} "
        f"{verdict[needed.judge(result.capacity_fraction)]}; its own escape rate here is "
        f"{shell.percent(1 - result.model.detection)}."
    )


_GROUPS: shell.Cells = {
    "Group": ("group", str),
    "Rare": ("n_rare", number),
    "Flags": ("flagged", number),
    "Of the list": ("list_share", shell.percent),
    "Detection": ("detection", shell.percent),
    "95 % interval": ("detection_interval", shell.interval),
    "Precision": ("precision", shell.percent),
    "Its interval": ("precision_interval", shell.interval),
}


def _print_groups(result: Evaluation) -> None:
    """Show who is found under the one threshold, and what a floor would cost."""
    if not result.groups:
        return
    shell.print_table(
        _GROUPS,
        result.groups,
        title="Who is found by the one threshold",
        caption="The intervals of a column hold for all groups at once.",
    )
    if result.floor is not None:
        typer.echo(
            f"{result.floor.in_words} Other thresholds for groups of people can be unlawful: ask "
            "before you use them."
        )


# --- what is missed ---


def _print_missed(result: MissedResult) -> None:
    estimate = result.estimate
    for period, each in estimate.by_period.items():
        typer.echo(f"{period}: {each}")
    typer.echo(str(estimate))
    if estimate.challenger is not None:
        typer.echo(str(estimate.challenger))
    if result.has_fallen:
        typer.echo(result.verdict)
