"""`shortlist fit`: from a labelled table to a model for a capacity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .._core.atomic import check_writable
from ._compiling import announce_compiling
from ._errors import answering
from ._reading import with_column_options
from ._shared import (
    AsJson,
    CapacityCount,
    Confidence,
    Data,
    Fraction,
    Guarantee,
    Id,
    Multiple,
    NBatches,
    Per,
    columns_of_data,
    interval,
    percent,
    print_json,
    progress_bar,
    reporter,
    shown_table,
    tell,
)
from ._worth_options import (
    Budget,
    Effort,
    MaxEffort,
    Unit,
    Value,
    WorthOption,
    money_table,
    rate_from,
)

if TYPE_CHECKING:
    from ..tables import ReadOptions
    from ..tables.fit import FitResult


def _learners(incomplete: str) -> list[str]:
    from ..tables.estimators import LEARNERS

    return [name for name in LEARNERS if name.startswith(incomplete)]


def _sizes(incomplete: str) -> list[str]:
    from ..learners.members import SIZES

    return [name for name in SIZES if name.startswith(incomplete)]


@answering
@with_column_options
def fit(
    data: Data,
    target: Annotated[
        str,
        typer.Option(
            help="The column with the labels, such as --target fraud.",
            metavar="COLUMN",
            autocompletion=columns_of_data,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the model, such as -o fraud.model.")
    ],
    rare: Annotated[
        str | None,
        typer.Option(
            help="The label to look for, such as --rare yes. Default: the rarest.", metavar="LABEL"
        ),
    ] = None,
    value: Value = None,
    effort: Effort = None,
    budget: Budget = None,
    unit: Unit = "units",
    worth: WorthOption = None,
    max_effort: MaxEffort = None,
    capacity: CapacityCount = None,
    per: Per = None,
    fraction: Fraction = None,
    multiple: Multiple = None,
    learner: Annotated[
        str,
        typer.Option(
            help="auto (boosting, forests, a network and a logistic model together), or one of "
            "logistic, forest, boosting, svm, knn, kde, network. Learners that start with aware- "
            "(-linear, -svm, -forest, -boosting, -network) are trained for the capacity. Such as "
            "--learner forest.",
            autocompletion=_learners,
        ),
    ] = "auto",
    guarantee: Guarantee = None,
    confidence: Confidence = None,
    n_batches: NBatches = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="A scikit-learn classifier of your own, such as --model mine.skops: a trained one "
            "is calibrated by the rows, another one is fitted to them.",
        ),
    ] = None,
    trust_model: Annotated[
        bool,
        typer.Option(
            "--trust-model",
            help="Load --model even if the file could execute code, such as a .joblib file that "
            "you made yourself.",
        ),
    ] = False,
    id: Id = None,
    size: Annotated[
        str,
        typer.Option(
            help="How large auto is: quick (as fast as three forests), default or thorough, such "
            "as --size quick.",
            autocompletion=_sizes,
        ),
    ] = "default",
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Most time for auto, such as --minutes 5. Results then depend on the machine.",
            metavar="NUMBER",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            help="Number of models, each without a part of the rows. --folds 1 makes a small file "
            "that finds less.",
            min=1,
        ),
    ] = 10,
    test_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the rows that only test the model, such as --test-share 0.2. By default "
            "every row is learned from, and measured by models that have not seen it.",
            metavar="SHARE",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="A column with times, such as --time opened: the past trains, the latest rows "
            "test. It is not learned from.",
            metavar="COLUMN",
            autocompletion=columns_of_data,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="A column that tells which rows belong together, such as --group customer. It is "
            "not learned from.",
            metavar="COLUMN",
            autocompletion=columns_of_data,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of folds and learner, such as --seed 1; the same seed, the same model.",
            min=0,
        ),
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Threads that grow trees, such as --jobs 4; -1 takes all cores.", metavar="NUMBER"
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="A folder for finished parts of auto, such as --resume parts: an interrupted fit "
            "goes on there.",
            metavar="FOLDER",
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Fit a model to a labelled table, for a capacity.

    Every row is learned from. The output shows what the capacity finds on rows that the models
    had not seen.

    With --value and --effort the threshold is one of value * probability / effort, and the model
    keeps the names of these columns. 480 minutes for every 10,000 cases are --effort minutes
    --budget 480 --per 10000 --unit minutes.
    """
    limit = rate_from(capacity, per, fraction, multiple, budget, effort)
    check_writable(out, keep=(data, model))  # before any work
    own = _own_model(model, learner, trust=trust_model)
    from ..tables import WorkColumns, fit_table, save_model

    announce_compiling()
    with progress_bar() as progress:
        result = fit_table(
            data,
            own=own,
            target=target,
            capacity=limit,
            rare=rare,
            id=id,
            learner=learner,
            guarantee="expected" if guarantee is None else guarantee,
            size=size,
            minutes=minutes,
            folds=folds,
            test_share=test_share,
            time=time,
            group=group,
            confidence=0.95 if confidence is None else confidence,
            n_batches=1 if n_batches is None else n_batches,
            random_state=seed,
            n_jobs=jobs,
            memory=None if resume is None else str(resume),
            reading=reading,
            work=WorkColumns(value, effort, None, worth, unit, max_effort),
            on_progress=reporter(progress, "reading"),
        )
    save_model(result.model, out)
    tell(result.card.notes)
    if as_json:
        print_json({"model": str(out), "file_bytes": out.stat().st_size, **_numbers(result)})
    else:
        _print(result, out)


def _own_model(file: Path | None, learner: str, *, trust: bool) -> Any:
    """Return the classifier in a file, if one is named."""
    if file is None:
        if trust:
            raise typer.BadParameter("--trust-model belongs to --model, which was not given")
        return None
    if learner != "auto":
        raise typer.BadParameter("--model and --learner both name a model; give one of them")
    from ..models.files import load_own_model

    return load_own_model(file, trust=trust)


def _numbers(result: FitResult) -> dict[str, Any]:
    classifier, schema = result.model.classifier, result.model.schema
    sizes = ("n_train", "n_calibration", "n_test", "n_test_rare")
    return {
        "learner": result.model.learner,
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "thresholds": [each.value for each in classifier.calibrations_],
        "flag_rate_interval": classifier.rule_.flag_rate_interval,
        **{size: getattr(result.card, size) for size in sizes},
        "measured_on": _MEASURED_ON[result.card.measured_on],
        "rules": result.card.rules,
        "money": result.money,
        "notes": result.card.notes,
        "schema": schema.to_json(),
    }


_MEASURED_ON = {
    "out-of-fold": "all rows, by models that had not seen them",
    "calibration": "the rows that set the threshold, which it had not learned from",
    "held-out": "held-out rows",
    "latest": "the latest rows, after those learned from",
}


def _print(result: FitResult, out: Path) -> None:
    console, schema = Console(), result.model.schema
    table = shown_table(
        ("Rule", "Flagged", "Found", "Detection", "95 % interval", "Precision"),
        [
            (
                rule.rule,
                f"{rule.flagged:g}",
                f"{rule.found:.3g}",
                percent(rule.detection),
                interval(rule.detection_interval),
                percent(rule.precision),
            )
            for rule in result.card.rules
        ],
        title=f"{result.card.n_test:,} rows, {result.card.n_test_rare} of them "
        f"{schema.target} = {schema.rare_label}",
        caption=f"Measured on {_MEASURED_ON[result.card.measured_on]}. Detection (M) counts only "
        "cases that can be followed up.",
    )
    console.print(table)
    if result.money is not None:
        console.print(money_table(result.money))
        console.print(result.money.one_more_in_words, highlight=False)
    kinds = ", ".join(f"{feature.name} ({feature.kind})" for feature in schema.features)
    console.print(f"Learned from: {kinds}", soft_wrap=True, highlight=False)
    console.print(f"Model ({result.model.learner}): {out}", soft_wrap=True, highlight=False)
    console.print(f"Size: {out.stat().st_size / 1e6:.1f} MB", highlight=False)
