"""`shortlist recalibrate`: a new threshold for a model, without fitting it again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.atomic import check_writable
from ._compiling import announce_compiling
from ._errors import answering
from ._reading import with_reading_options
from ._shared import (
    AsJson,
    CapacityCount,
    Confidence,
    Data,
    Fraction,
    Guarantee,
    Model,
    Multiple,
    NBatches,
    Per,
    capacity_from,
    percent,
    print_json,
    progress_bar,
    rows_read,
    tell,
)
from ._worth_options import Budget, budget_from, check_knows_effort

if TYPE_CHECKING:
    from ..capacity import Capacity
    from ..tables import ReadOptions
    from ..tables.recalibrate import Recalibration


@answering
@with_reading_options
def recalibrate(
    model: Model,
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the model, such as -o new.model.")
    ],
    capacity: CapacityCount = None,
    per: Per = None,
    fraction: Fraction = None,
    multiple: Multiple = None,
    budget: Budget = None,
    guarantee: Guarantee = None,
    confidence: Confidence = None,
    n_batches: NBatches = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column with labels, if there are any, such as --target fraud; --multiple "
            "then refers to their share.",
            metavar="NAME",
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Set a new threshold from recent cases: no labels, no new fit.

    Also for another capacity, budget or guarantee; what is not given stays as it is.

    Example: shortlist recalibrate fraud.model october.csv -o october.model --fraction 0.04
    """
    limit = _capacity(capacity, per, fraction, multiple, budget)
    check_writable(out, keep=(model, data))  # before any work
    from ..tables import load_model, recalibrate_table, save_model

    announce_compiling()
    loaded = load_model(model)
    if budget is not None:
        check_knows_effort(loaded)
    with progress_bar() as progress:
        result = recalibrate_table(
            loaded,
            data,
            capacity=limit,
            guarantee=guarantee,
            confidence=confidence,
            n_batches=n_batches,
            target=target,
            reading=reading,
            on_progress=rows_read(progress),
        )
    save_model(result.model, out)
    tell(result.notes, result.findings)
    if as_json:
        print_json({"model": str(out), **_numbers(result)})
    else:
        _print(result, out)


def _capacity(
    capacity: int | None,
    per: int | None,
    fraction: float | None,
    multiple: float | None,
    budget: float | None,
) -> Capacity | None:
    if all(value is None for value in (capacity, per, fraction, multiple, budget)):
        return None
    if budget is None:
        return capacity_from(capacity, per, fraction, multiple)
    return budget_from(capacity, per, fraction, multiple, budget)


def _numbers(result: Recalibration) -> dict[str, Any]:
    classifier = result.model.classifier
    return {
        "n_rows": result.n_rows,
        "n_left_out": result.n_left_out,
        "flagged_before": result.flagged_before,
        "flagged_now": result.flagged_now,
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "n_batches": classifier.n_batches,
        "thresholds": [each.value for each in classifier.calibrations_],
        "notes": result.notes,
        "findings": [asdict(finding) for finding in result.findings],
    }


def _print(result: Recalibration, out: Path) -> None:
    classifier = result.model.classifier
    typer.echo(
        f"The threshold rests on {result.n_rows:,} cases. The old one flags "
        f"{result.flagged_before:,} of them ({percent(result.flagged_before / result.n_rows)}), "
        f"the new one {result.flagged_now:,} ({percent(result.flagged_now / result.n_rows)})."
    )
    capacity, share = classifier.capacity, percent(classifier.capacity_fraction_)
    if capacity.kind == "effort":
        share = f"work of {capacity.value:g} for every {capacity.per:,} cases"
    typer.echo(f"The capacity is {share}, the guarantee {classifier.guarantee!r}.")
    typer.echo(f"Model: {out}")
