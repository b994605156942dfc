"""`shortlist evaluate`: what a model finds, what other capacities would find, what it misses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ._compiling import announce_compiling
from ._errors import FALLEN, answering, say
from ._reading import with_reading_options, with_work_options
from ._shared import (
    AsJson,
    Confidence,
    Id,
    Model,
    Period,
    Reviews,
    Target,
    interval,
    percent,
    print_json,
    progress_bar,
    rows_read,
    shown_table,
    tell,
)
from ._worth_options import money_table, plan_table

if TYPE_CHECKING:
    from ..feedback import MissedEstimate
    from ..tables import ReadOptions, WorkColumns
    from ..tables.fingerprints import SeenRows
    from ..tables.measure import CurvePoint, Evaluation
    from ..tables.reviews import MissedResult

_MOST_LINES = 12
# Of fewer rows than this share, equal ones are not worth a line.
_A_FEW = 0.01


@answering
@with_reading_options
@with_work_options
def evaluate(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="A table, as for flag.")
    ] = None,
    target: Target = None,
    capacities: Annotated[
        bool,
        typer.Option("--capacities", help="Show what other capacities and reviewers would find."),
    ] = False,
    load: Annotated[
        int,
        typer.Option(
            help="With --capacities: how many cases one more reviewer handles, such as --load 20.",
            min=1,
        ),
    ] = 1,
    reviews: Reviews = None,
    period: Period = None,
    cases: Annotated[
        int | None,
        typer.Option(
            help="With --reviews: the number of all cases, reviewed or not, such as --cases 20000.",
            min=1,
        ),
    ] = None,
    confidence: Confidence = None,
    look: Annotated[
        int | None,
        typer.Option(
            help="Number your looks at reviews if you look again and again: --look 1, then --look "
            "2, ...",
            min=1,
        ),
    ] = None,
    challenger: Annotated[
        Path | None,
        typer.Option(
            help="With --reviews: another model file, such as --challenger new.model, to be judged "
            "on the same probes; the table needs its columns."
        ),
    ] = None,
    id: Id = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
    work: WorkColumns,
) -> None:
    """Measure detection, flag rate and precision on labelled cases.

    Detection is the adjusted detection score M. Its intervals are for as large a share of new
    cases, as in the report. With --value, and with a model that was fitted with it, the value found
    is measured as well, beside lists of the same budget in other orders.

    --capacities compares capacities from a quarter to four times the model's own.

    --reviews reviews.csv estimates how many rare cases are missed. The table has a row for each
    reviewed case, with the columns that select --probe wrote and the label that the review found.
    The exit code is 6 if the detection has fallen below what the model card says.

    Example: shortlist evaluate fraud.model later.csv
    """
    if (data is None) == (reviews is None):
        raise typer.BadParameter("Missing argument 'DATA': give a table, or --reviews reviews.csv")
    for_reviews: dict[str, Any] = {"period": period, "cases": cases, "look": look, "id": id}
    for_reviews |= {"confidence": confidence, "challenger": challenger}
    for option, given in for_reviews.items():
        if reviews is None and given is not None:
            raise typer.BadParameter(f"--{option} belongs to --reviews, which was not given")
    from ..tables import evaluate_table, load_model

    announce_compiling()
    loaded = load_model(model)
    if data is None:
        _evaluate_reviews(loaded, reviews, target, as_json, reading, **for_reviews)
        return
    options: dict[str, Any] = {"target": target, "load": load, "reading": reading, "work": work}
    with progress_bar() as progress:
        result = evaluate_table(loaded, data, on_progress=rows_read(progress), **options)
    _warn_of_seen(result.seen)
    tell((), result.findings)
    if as_json:
        print_json(result)
    elif capacities:
        _print_capacities(result)
    else:
        _print_evaluation(result)


def _evaluate_reviews(
    model: Any,
    reviews: Path | None,
    target: str | None,
    as_json: bool,
    reading: ReadOptions,
    *,
    cases: int | None,
    challenger: Path | None,
    confidence: float | None,
    **options: Any,
) -> None:
    from ..tables import load_model
    from ..tables.reviews import missed_in_table

    assert reviews is not None
    result = missed_in_table(
        model,
        reviews,
        outcome=target,
        n_cases=cases,
        confidence=0.95 if confidence is None else confidence,
        challenger=None if challenger is None else load_model(challenger),
        reading=reading,
        **options,
    )
    if as_json:
        print_json(result)
    else:
        _print_missed(result)
    if result.has_fallen:
        raise typer.Exit(FALLEN)


def _warn_of_seen(seen: SeenRows | None) -> None:
    """Say on standard error that a model has seen rows before."""
    if seen is not None and seen.in_words is not None and seen.n_seen > _A_FEW * seen.n_items:
        say("Warning" if seen.is_surprising else "Note", seen.in_words)


# --- what is found ---


def _print_evaluation(result: Evaluation) -> None:
    console = Console()
    flag_rate = f"{percent(result.flag_rate)} ({interval(result.flag_rate_interval)})"
    console.print(
        shown_table(
            ("Rule", "Flagged", "Found", "Detection (M)", "Interval", "Precision", "Interval"),
            [
                (
                    rule.rule,
                    f"{rule.flagged:g}",
                    f"{rule.found:.3g}",
                    percent(rule.detection),
                    interval(rule.detection_interval),
                    percent(rule.precision),
                    interval(rule.precision_interval),
                )
                for rule in result.rules
            ],
            title=f"{result.n_items:,} cases, {result.n_rare} of them rare, room for "
            f"{_room(result)}; flagged {flag_rate}",
            caption=f"{_validity(result)} The 95 % intervals are for as large a share of new "
            "cases.",
        )
    )
    if result.money is not None:
        console.print(money_table(result.money))
        console.print(result.money.one_more_in_words, highlight=False)
    console.print(_curve(result.curve[:: max(1, len(result.curve) // _MOST_LINES)]))


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


def _curve(points: list[CurvePoint]) -> Any:
    return shown_table(
        ("Flags", "Share", "Found", "Detection", "Interval", "Precision", "One more"),
        [
            (
                f"{point.flagged:,}",
                percent(point.fraction),
                f"{point.found:,}",
                percent(point.detection),
                interval(point.detection_interval),
                percent(point.precision),
                f"{point.marginal:.3f}",
            )
            for point in points
        ],
        title="What the highest scores find",
        caption="The 95 % interval is for the detection when this share of new cases is followed "
        "up, whatever their threshold is.",
        n_left=0,
    )


# --- other capacities ---


def _print_capacities(result: Evaluation) -> None:
    console = Console()
    of_work = result.money is not None and result.money.unit != "cases"
    share = percent(result.capacity_fraction)
    capacity = f"budget pays for about {share} of them" if of_work else f"capacity is {share}"
    console.print(f"{result.n_items:,} cases; the model's {capacity}.", highlight=False)
    console.print(_curve(result.capacities))
    if result.money is not None:
        console.print(plan_table(result.money))
        console.print(result.money.one_more_in_words, highlight=False)
    reviewer = result.next_reviewer
    if reviewer.load > 1 or not of_work:
        cases = "1 case" if reviewer.load == 1 else f"{reviewer.load} cases"
        console.print(
            f"One more reviewer, with room for {cases}, finds about "
            f"{reviewer.expected:.3g} more rare cases ({reviewer.found} in this table).",
            highlight=False,
            soft_wrap=True,
        )


# --- what is missed ---


def _print_missed(result: MissedResult) -> None:
    estimate = result.estimate
    rows = {**estimate.by_period, "all": estimate}
    Console().print(
        shown_table(
            (
                *("Period", "Probes", "Hits", "Found"),
                *("Missed", "Interval", "Detection", "Interval"),
            ),
            [(str(period), *_missed(each)) for period, each in rows.items()],
            title=None if estimate.is_enough else "Not enough probes yet",
        )
    )
    typer.echo(str(estimate))
    if estimate.challenger is not None:
        typer.echo(str(estimate.challenger))
    if result.has_fallen:
        typer.echo(
            f"Alarm: the model card says that the list finds {percent(result.expected_detection)}; "
            "detection has fallen below that. Fit the model to recent labelled cases."
        )


def _missed(estimate: MissedEstimate) -> list[str]:
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
