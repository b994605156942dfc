"""`shortlist fit`: from a labelled table to a model for a capacity."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import check_writable
from .._core.formatting import number
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.fit import FitResult

#: Of more columns, only the first are printed; `inspect` shows all of them.
_MOST_COLUMNS = 20
#: Of larger tables, finished parts of a fit are kept until the model is written.
_MOST_BYTES = 2_000_000


def fit(
    data: options.Data,
    target: Annotated[str, typer.Option(metavar="COLUMN")],
    out: options.NewFile,
    rare: options.Text = None,
    value: options.Column = None,
    effort: options.Column = None,
    budget: options.Number = None,
    worth: options.Number = None,
    unit: str = "units",
    capacity: options.Count = None,
    per: options.Many = None,
    fraction: options.Number = None,
    multiple: options.Number = None,
    learner: str = "auto",
    guarantee: options.Guarantee = None,
    confidence: options.Number = None,
    model: options.OtherModel = None,
    trust_model: bool = False,
    id: options.Column = None,
    labelled_only: bool = False,
    size: str = "default",
    folds: options.Many = None,
    time: options.Column = None,
    group: options.Column = None,
    weight: options.Column = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int | None, typer.Option(metavar="N")] = None,
    unlabelled: options.File = None,
    drop: options.Columns = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a model to a labelled table, for a capacity.

    Lists are ranked by one model of all rows. Smaller models, each without a part of the rows,
    decide about single rows, and show what the capacity finds on rows that they had not seen.

    With --value and --effort the threshold is one of value * probability / effort, and the model
    keeps the names of these columns. 480 minutes for every 10,000 cases are --effort time
    --budget 480 --unit minutes --per 10000.

    Example: shortlist fit cases.csv --target fraud --fraction 0.06 -o fraud.model

    Options
    -------
    target
        The column with the labels, such as --target fraud.
    out
        Where to write the model, such as -o fraud.model.
    rare
        The label to look for, such as --rare yes. Default: the rarest.
    labelled_only
        Leave out rows without a label; otherwise they are an error.
    effort
        The column that says how much work a case takes, such as --effort time; perhaps with the
        most that a case can take: --effort time,max=60. Default: the most in the table; later cases
        that take more are never flagged.
    learner
        auto (boosting, forests, a network and a logistic model together), or one of logistic,
        forest, boosting, svm, knn, kde, network. Learners that start with aware- (-linear, -svm,
        -forest, -boosting, -network) are trained for the capacity. Such as --learner forest.
    model
        A scikit-learn classifier of your own, such as --model mine.skops: a trained one is
        calibrated by the rows, another one is fitted to them.
    trust_model
        Load --model even if the file could execute code, such as a .joblib file that you made
        yourself.
    size
        How large auto is: quick, default or thorough, such as --size quick.
    folds
        Number of models for single rows, each without a part of the rows, such as --folds 5.
        Default: 5; 3 with --size quick and for long tables, 10 with --size thorough or --learner.
        --folds 1 makes a small file that finds less.
    time
        A column with times, such as --time opened: the past trains, the latest fifth of the rows
        tests. It is not learned from.
    group
        A column that tells which rows belong together, such as --group customer. It is not
        learned from.
    weight
        For reviewed cases: the column with the probability of each review, such as --weight
        inclusion, so that the model does not only know what was flagged. It needs --unlabelled,
        because such rows set no threshold.
    seed
        Seed of folds and learner, such as --seed 1; the same seed, the same model.
    jobs
        Threads that grow trees, such as --jobs 4; -1 takes all cores.
    unlabelled
        Recent cases without labels, such as --unlabelled october.csv: from them the model that
        ranks lists gets an exact threshold, and decides about single cases, too.
    """
    given = dict(locals())
    limit = options.capacity_from(
        capacity=capacity, per=per, fraction=fraction, multiple=multiple, budget=budget
    )
    if limit is None:
        raise typer.BadParameter(
            "give the capacity: --capacity 600 --per 10000, --fraction 0.06, or --multiple 3"
        )
    check_writable(out, keep=(data, model, unlabelled))  # before any work
    own = _own_model(model, learner, trust=trust_model)
    from ..tables import fit_table, save_model

    parts = _folder_of_parts(data, out) if own is None and learner == "auto" else None
    with shell.progress("reading") as show, _resumable(parts):
        result = fit_table(
            data,
            own=own,
            random_state=seed,
            n_jobs=jobs,
            memory=None if parts is None else str(parts),
            reading=options.read_options(read, drop, but=()),
            work=options.work_from(value, effort, worth, None, unit, "max"),
            on_progress=show,
            **options.same_named({**given, "capacity": limit}, fit_table),
        )
    save_model(result.model, out)
    shell.tell(result.card.notes)
    numbers = {"model": str(out), **_numbers(result, out)}
    if not shell.printed_json(as_json, numbers):
        _print(result, out)


def _folder_of_parts(data: Path, out: Path) -> Path | None:
    """Return where finished members of a long fit are kept until the model is written."""
    is_long = isinstance(data, Path) and data.is_file() and data.stat().st_size > _MOST_BYTES
    return out.with_name(f"{out.name}.parts") if is_long else None


@contextmanager
def _resumable(parts: Path | None) -> Iterator[None]:
    """Say how to continue an interrupted fit; remove its parts when they are no longer needed."""
    try:
        yield
    except KeyboardInterrupt:
        if parts is None or not parts.exists():
            raise
        raise KeyboardInterrupt(
            f" What is finished is in {parts}: the same command continues from there."
        ) from None
    if parts is not None:
        shutil.rmtree(parts, ignore_errors=True)


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


def _numbers(result: FitResult, out: Path) -> dict[str, Any]:
    classifier, schema = result.model.classifier, result.model.schema
    sizes = ("n_train", "n_calibration", "n_test", "n_test_rare")
    return {
        "learner": result.model.learner,
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "thresholds": [each.value for each in classifier.calibrations_],
        "flag_rate_interval": classifier.rule_.flag_rate_interval,
        **{size: getattr(result.card, size) for size in sizes},
        "measured_on": shell.MEASURED_ON[result.card.measured_on],
        "file_bytes": out.stat().st_size,
        "rules": result.card.rules,
        "money": result.money,
        "notes": result.card.notes,
        "schema": schema,
    }


def _print(result: FitResult, out: Path) -> None:
    card, schema = result.card, result.model.schema
    shell.print_table(
        shell.RULES,
        card.rules,
        title=f"{card.n_test:,} rows, {card.n_test_rare:,} of them {schema.target} = "
        f"{schema.rare_label}",
        caption=f"Measured on {shell.MEASURED_ON[card.measured_on]}. Detection (M) counts only "
        "cases that can be followed up.",
    )
    shell.print_money(result.money)
    kinds = [f"{feature.name} ({feature.kind})" for feature in schema.features]
    more = f" and {len(kinds) - _MOST_COLUMNS:,} more" if len(kinds) > _MOST_COLUMNS else ""
    typer.echo(f"Learned from: {', '.join(kinds[:_MOST_COLUMNS])}{more}")
    megabytes = number(out.stat().st_size / 1e6, 2)
    typer.echo(f"Model ({result.model.learner}, {megabytes} MB): {out}")
