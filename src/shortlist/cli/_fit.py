"""`shortlist fit`: from a labelled table to a model for a capacity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from .._core.atomic import check_writable
from ._reading import with_column_options
from ._shared import (
    AsJson,
    Data,
    answering,
    capacity_from,
    interval,
    percent,
    print_json,
    progress_bar,
)

if TYPE_CHECKING:
    from ..tables import FitResult, Reading


def _learners(incomplete: str) -> list[str]:
    from ..tables import LEARNERS

    return [name for name in LEARNERS if name.startswith(incomplete)]


def _guarantees(incomplete: str) -> list[str]:
    from ..thresholds import GUARANTEES

    return [name for name in GUARANTEES if name.startswith(incomplete)]


@answering
@with_column_options
def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="The column with the labels.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")],
    rare: Annotated[
        str | None, typer.Option(help="The label to look for; by default the rarest.")
    ] = None,
    capacity: Annotated[
        int | None, typer.Option(help="How many cases can be followed up ...", min=0)
    ] = None,
    per: Annotated[int | None, typer.Option(help="... of how many.", min=1)] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Or the share of all cases, such as 0.06.")
    ] = None,
    multiple: Annotated[
        float | None, typer.Option(help="Or how many cases for each rare one, such as 3.")
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="auto (the best of logistic, aware-linear, forest and boosting), or one of "
            "logistic, forest, boosting, svm, knn, kde, network. Learners that start with aware- "
            "(-linear, -svm, -forest, -boosting, -network) are trained for the capacity.",
            autocompletion=_learners,
        ),
    ] = "auto",
    guarantee: Annotated[
        str,
        typer.Option(
            help="plug-in, expected, confident, next-batch or simultaneous.",
            autocompletion=_guarantees,
        ),
    ] = "expected",
    id: Annotated[
        str | None,
        typer.Option("--id", help="The column with the id of a case; never learned from."),
    ] = None,
    smote: Annotated[
        bool,
        typer.Option(help="Also train the learner after SMOTE, for comparison in reports."),
    ] = True,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Fit a model to a labelled table, for a capacity.

    The output shows what the capacity finds on held-out rows.
    """
    limit = capacity_from(capacity, per, fraction, multiple)
    check_writable(out, keep=(data,))  # before any work
    from ..persistence import save_model
    from ..tables import fit_table

    with progress_bar() as progress:
        result = fit_table(
            data,
            target=target,
            capacity=limit,
            rare=rare,
            id=id,
            learner=learner,
            guarantee=guarantee,
            smote=smote,
            reading=reading,
            on_progress=_reporter(progress),
        )
    save_model(result.model, out)
    for note in result.notes:
        typer.echo(f"Note: {note}", err=True)
    if as_json:
        print_json({"model": str(out), **_numbers(result)})
    else:
        _print(result, out)


def _reporter(progress: Progress) -> Callable[[str, int, int], None]:
    task = progress.add_task("reading", total=None)
    return lambda step, done, total: progress.update(
        task, description=step, completed=done, total=total
    )


def _numbers(result: FitResult) -> dict[str, Any]:
    classifier, schema = result.model.classifier, result.model.schema
    sizes = ("n_train", "n_calibration", "n_test", "n_test_rare")
    return {
        "learner": result.model.learner,
        "candidates": [
            {"learner": tried.learner, "detection": tried.detection} for tried in result.candidates
        ],
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "threshold": classifier.threshold_,
        "flag_rate_interval": classifier.calibration_.interval,
        **{size: getattr(result, size) for size in sizes},
        "measured_on": "held-out rows",
        "rules": result.rules,
        "notes": result.notes,
        "schema": schema.to_json(),
    }


def _print(result: FitResult, out: Path) -> None:
    console, schema = Console(), result.model.schema
    if result.candidates:
        ranked = sorted(result.candidates, key=lambda tried: -tried.detection)
        shown = ", ".join(f"{tried.learner} {tried.detection:.1%}" for tried in ranked)
        console.print(f"Cross-validated detection at the capacity: {shown}", highlight=False)
    table = Table(
        title=f"{result.n_test:,} held-out rows, {result.n_test_rare} of them "
        f"{schema.target} = {schema.rare_label}",
        caption="These rows did not train, calibrate or choose the model. Detection (M) counts "
        "only cases that can be followed up.",
    )
    table.add_column("Rule")
    for heading in ("Flagged", "Found", "Detection", "95 % interval", "Precision"):
        table.add_column(heading, justify="right")
    for rule in result.rules:
        table.add_row(
            rule.rule,
            f"{rule.flagged:g}",
            f"{rule.found:.3g}",
            percent(rule.detection),
            interval(rule.detection_interval),
            percent(rule.precision),
        )
    console.print(table)
    kinds = ", ".join(f"{feature.name} ({feature.kind})" for feature in schema.features)
    console.print(f"Learned from: {kinds}", soft_wrap=True, highlight=False)
    console.print(f"Model ({result.model.learner}): {out}", soft_wrap=True, highlight=False)
