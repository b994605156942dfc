"""`shortlist recalibrate`: a new threshold for a model, without fitting it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .._core.files import check_writable
from .._core.formatting import number, stated_percent
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.recalibrate import Recalibration


def recalibrate(
    model: options.Model,
    data: options.Data,
    out: options.NewFile,
    capacity: options.Count = None,
    per: options.Many = None,
    fraction: options.Number = None,
    multiple: options.Number = None,
    budget: options.Number = None,
    guarantee: options.Guarantee = None,
    confidence: options.Number = None,
    target: options.Column = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Set a new threshold from recent cases: no labels, no new fit.

    Also for another capacity, budget or guarantee; what is not given stays as it is.

    Example: shortlist recalibrate fraud.model october.csv -o october.model --fraction 0.04

    Options
    -------
    out
        Where to write the model, such as -o new.model.
    budget
        Or a budget of work, such as --budget 480 --per 10000.
    target
        The column with labels, if there are any, such as --target fraud; --multiple then refers
        to their share.
    """
    given = dict(locals())
    limit = options.capacity_from(
        capacity=capacity, per=per, fraction=fraction, multiple=multiple, budget=budget
    )
    check_writable(out, keep=(model, data))  # before any work
    from ..tables import recalibrate_table, save_model

    loaded = shell.open_model(model)
    loaded.check_budget(budget)
    with shell.progress("reading") as show:
        result = recalibrate_table(
            loaded,
            data,
            reading=options.read_options(read),
            on_progress=show,
            **options.same_named({**given, "capacity": limit}, recalibrate_table),
        )
    save_model(result.model, out)
    shell.tell(result.notes, result.findings)
    if not shell.printed_json(as_json, {"model": str(out), **_numbers(result)}):
        _print(result, out)


def _numbers(result: Recalibration) -> dict[str, Any]:
    classifier = result.model.classifier
    promise = ("capacity_fraction_", "guarantee", "confidence")
    return {
        **{name.rstrip("_"): getattr(classifier, name) for name in promise},
        "thresholds": classifier.thresholds_,
        **{name: value for name, value in vars(result).items() if name != "model"},
    }


def _print(result: Recalibration, out: Path) -> None:
    classifier = result.model.classifier
    before, now = (n / result.n_rows for n in (result.flagged_before, result.flagged_now))
    typer.echo(
        f"The threshold rests on {result.n_rows:,} cases. The old one flags "
        f"{result.flagged_before:,} of them ({shell.percent(before)}), the new one "
        f"{result.flagged_now:,} ({shell.percent(now)})."
    )
    capacity, share = classifier.capacity, stated_percent(classifier.capacity_fraction_)
    if capacity.kind == "effort":
        share = f"work of {number(capacity.value, 12)} for every {capacity.per:,} cases"
    typer.echo(f"The capacity is {share}, the guarantee {classifier.guarantee!r}.")
    typer.echo(f"Model: {out}")
