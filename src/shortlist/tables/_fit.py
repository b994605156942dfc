"""From a table to a model under a capacity: learn from every row, and measure on unseen ones."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Mask
from .._core.labels import rare_share
from .._core.validation import check_count, check_number, check_option, check_positive
from ..capacity import Capacity, exact
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..learners import SIZES, watching_members
from ..thresholds import check_guarantee
from ._candidates import LEARNERS, make_estimator
from ._evaluate import labels_of
from ._fit_notes import notes_on, notes_on_times
from ._model import ModelCard, RuleResult, TableModel, versions_in_use
from ._money import Money, money_of, weighed_columns
from ._out_of_fold import Candidate, OutOfFold, measure_test_rows
from ._own import own_name, own_pipeline
from ._splits import LATEST_SHARE, N_FOLDS, Parts, divide_rows, make_folds, set_aside
from ._twin import smote_twin
from ._work import WorkColumns
from ._work_fit import affordable_folds, as_flags, check_rate, promise_about_work, with_bound
from .columns import Place
from .fingerprints import RowFingerprints
from .monitor import DriftMonitor
from .options import ReadOptions
from .profile import column_profiles
from .read import open_table
from .schema import TableRows, TableSchema, infer_schema, reference_values

__all__ = ["FitResult", "fit_table", "read_to_fit"]

_FEWEST_RARE = 10
_TIMED_ROWS = 2_000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FitResult:
    """A fitted model, and what the capacity finds on rows that were not learned from.

    Attributes
    ----------
    model : TableModel
        What a model file contains.
    candidates : list of Candidate
        The members of an ensemble, and what each of them finds alone.
    rules : list of RuleResult
        What this model and other rules find.
    n_train, n_calibration, n_test, n_test_rare : int
        How many rows trained, set the threshold and were measured, and rare ones among these.
    measured_on : {"out-of-fold", "calibration", "held-out", "latest"}
        Where the numbers come from: every row, by models that have not seen it; the rows that set
        the threshold of a single model; a share of the rows kept aside; or the latest rows.
    seconds_per_row : float
        Processor time for the score of one row among many.
    notes : list of str
        Sentences about columns to check.
    money : Money or None
        What the rules find in values, if the model weighs them.
    """

    model: TableModel
    candidates: list[Candidate]
    rules: list[RuleResult]
    n_train: int
    n_calibration: int
    n_test: int
    n_test_rare: int
    measured_on: str = "out-of-fold"
    seconds_per_row: float = float("nan")
    notes: list[str] = field(default_factory=list)
    money: Money | None = None


def fit_table(
    path: Path,
    *,
    target: str,
    capacity: Capacity,
    rare: str | None = None,
    id: str | None = None,
    learner: str = "auto",
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    own: Any = None,
    size: str = "default",
    minutes: float | None = None,
    folds: int = N_FOLDS,
    test_share: float | None = None,
    time: str | None = None,
    group: str | None = None,
    unlabelled: Path | None = None,
    smote: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    memory: Any = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: Progress | None = None,
) -> FitResult:
    """Fit a model to the table in a file.

    Every row is learned from, and every row is scored by a model that has not seen it: ten models
    learn from nine tenths of the rows each. Lists rank by the mean of all ten. Row by row, a hash
    picks the model that decides, with a threshold from the tenth that it has not seen.

    Parameters
    ----------
    path : Path
        A CSV, TSV (also gzipped), Parquet or Feather file; ``-`` reads CSV from standard input.
    target : str
        The column with the labels.
    capacity : Capacity
        How many rows can be followed up.
    rare : str, default=None
        The label to look for, as text; `None` takes the rarest. Equally rare labels raise an error.
    id : str, default=None
        The column that identifies a row. It is never learned from, and breaks ties between equal
        scores.
    learner : str, default="auto"
        One of `LEARNERS`; "auto" is a :class:`~shortlist.learners.CapacityEnsembleClassifier`.
    guarantee : str, default="expected"
        The promise about future flags; see :func:`~shortlist.calibrate_threshold`. For
        "next-batch" and "simultaneous", which need one threshold, one model learns from three
        quarters of the rows, and the rest sets it.
    confidence : float, default=0.95
        How surely "confident", "next-batch" and "simultaneous" hold.
    n_batches : int, default=1
        With "next-batch", the number of batches in none of which there may be too many flags.
    own : classifier, default=None
        An untrained classifier of your own, instead of `learner`.
    size : {"quick", "default", "thorough"}, default="default"
        How large the ensemble is.
    minutes : float, default=None
        Most time for the members of the ensemble. Results then depend on the machine.
    folds : int, default=10
        Number of models, each without the rows of its fold. 1 fits a single model to three
        quarters of the rows, and the others set its threshold: a small file, which finds less.
    test_share : float, default=None
        Share of the rows that only test the finished model. `None` keeps none aside, or the latest
        fifth with `time`.
    time : str, default=None
        A column with dates or numbers that rise with time. The model learns from the past and is
        tested on the latest rows. It is never learned from.
    group : str, default=None
        A column that tells which rows belong together, such as those of a customer. No group is
        both learned from and measured on. It is never learned from.
    unlabelled : Path, default=None
        A table of recent rows without labels. They set the threshold of the mean of all models,
        which then decides row by row, too.
    smote : bool, default=True
        Whether to train a learner after SMOTE as well, for comparison in reports. This needs the
        extra `smote`, and is skipped without it.
    random_state : int, default=0
        Seed of the folds and of the learner, and key of the hash.
    n_jobs : int, default=None
        Number of threads that grow trees.
    memory : str or joblib.Memory, default=None
        A folder for finished members of the ensemble: an interrupted fit resumes.
    reading : ReadOptions, default=None
        What to know about the file; everything else is inferred.
    work : WorkColumns, default=None
        Columns with values and efforts, and what a slot must be worth. The threshold is then one of
        value * probability / effort, and the model keeps the names of the columns. A budget of work
        is the `capacity`.
    on_progress : callable, default=None
        Called with the current step, the number of finished steps and the total number.

    Returns
    -------
    FitResult
        The model, and what the capacity finds on rows that were not learned from.
    """
    check_guarantee(guarantee, capacity, n_batches)
    check_option("size", size, SIZES)
    check_option("learner", learner, LEARNERS)
    test_share = _check_test_share(test_share, time)
    on_progress = on_progress or (lambda step, done, total: None)
    on_progress("reading", 0, 1)
    rows, schema, notes = read_to_fit(path, reading, target=target, id=id, rare=rare, work=work)
    schema, capped = with_bound(schema, rows, capacity, guarantee)
    notes += capped
    aside = set_aside(rows, schema, time=time, group=group)
    notes += [n for f in schema.features if f.name == time for n in notes_on_times(rows.X[time], f)]
    rows, schema = _without(rows, schema, (time, group))
    parts = divide_rows(labels_of(rows), aside, test_share=test_share, random_state=random_state)
    learned = rows.take(parts.learn)
    _check_enough(learned, schema, capacity)
    groups = aside.groups_of(parts.learn)
    folds = affordable_folds(check_count("folds", folds), learned, schema, capacity)
    pairs = make_folds(
        labels_of(learned), groups, guarantee, folds=folds, random_state=random_state
    )
    if own is None:
        minutes = None if minutes is None else check_positive("minutes", minutes) / len(pairs)
        options = {"size": size, "minutes": minutes, "n_jobs": n_jobs, "memory": memory}
        options |= {"capacity": as_flags(capacity, learned), "random_state": random_state}
        estimator = make_estimator(learner, schema, **options)
    else:
        learner, estimator = own_name(own), own_pipeline(own, schema)
    terms: dict[str, Any] = {
        "guarantee": guarantee,
        "confidence": confidence,
        "n_batches": n_batches,
    }
    terms |= promise_about_work(schema, capacity)
    prevalence = _prevalence(labels_of(rows), capacity, guarantee)
    classifier = CapacityClassifier(
        estimator, capacity=capacity, rare_label=True, prevalence=prevalence, cv=pairs, **terms
    ).set_params(ensemble=True, ties="hash", random_state=random_state)
    on_progress("fitting", 0, 1)
    with watching_members(_by_fold(on_progress, len(pairs))):
        classifier.fit(
            learned.X,
            labels_of(learned),
            ids=learned.ids,
            groups=groups,
            values=learned.values,
            efforts=learned.efforts,
        )
    unseen = OutOfFold.of(classifier, learned, [scored for _, scored in pairs], groups)
    reference = reference_values(learned.X, schema)
    known = RowFingerprints.of(learned, key=random_state)
    model = TableModel(classifier, schema, reference, learner, fingerprints=known)
    if smote and own is None:
        on_progress("fitting for comparison", 0, 1)
        model = replace(model, twin=smote_twin(model, learned, random_state=random_state))
    recent = None if unlabelled is None else _set_threshold(model, unlabelled)
    n_train = parts.learn.size if len(pairs) > 1 else pairs[0][0].size
    where = _measured_on(parts, len(pairs), time)
    notes += notes_on(rows, schema)
    result = _result(model, rows, parts, unseen, where, n_train, notes)
    if recent is None:
        return result
    monitor = DriftMonitor(result.model)
    monitor.add(recent)
    found = [f"In {unlabelled}, {finding.message}" for finding in monitor.findings()]
    return replace(result, notes=[*notes, *found])


def read_to_fit(
    path: Path, reading: ReadOptions | None, **named: Any
) -> tuple[TableRows, TableSchema, list[str]]:
    """Read a table with labels, and what was decided about its columns."""
    with open_table(path, reading=reading) as source:
        table = source.read()
        schema = infer_schema(source, table, **named)
        rows = schema.convert(table, target=schema.target, place=Place(source.name))
        return rows, schema, source.take_notes()


def _measured_on(parts: Parts, n_folds: int, time: str | None) -> str:
    if parts.test.size:
        return "held-out" if time is None else "latest"
    return "out-of-fold" if n_folds > 1 else "calibration"


def _check_test_share(share: float | None, time: str | None) -> float:
    if share is None:
        return LATEST_SHARE if time is not None else 0.0
    if not 0 <= float(check_number("test_share", share)) < 1:
        raise ValueError(
            f"test_share (--test-share) is a share of the rows from 0 to below 1; got {share!r}."
        )
    if time is not None and share == 0:
        raise ValueError(
            "With --time, the latest rows test the model; --test-share 0 leaves none of them."
        )
    return float(share)


def _without(
    rows: TableRows, schema: TableSchema, names: tuple[str | None, ...]
) -> tuple[TableRows, TableSchema]:
    """Leave out the columns that order or group the rows."""
    kept = tuple(feature for feature in schema.features if feature.name not in names)
    if not kept:
        raise TableError("There is no column left to learn from besides those that were named.")
    return rows.of_columns(kept), replace(schema, features=kept)


def _by_fold(on_progress: Progress, n_folds: int) -> Progress:
    """Count the members of all folds together."""
    done = 0

    def report(member: str, of_fold: int, n_members: int) -> None:
        nonlocal done
        on_progress(f"fitting {member}", done, n_folds * n_members)
        done += 1

    return report


def _set_threshold(model: TableModel, unlabelled: Path) -> TableRows:
    """Set the threshold of the model by recent rows without labels, and return them."""
    with model.schema.open(unlabelled) as source:
        recent = model.schema.read(source)
    model.classifier.recalibrate(
        recent.X, ids=recent.ids, values=recent.values, efforts=recent.efforts
    )
    return recent


def _result(
    model: TableModel,
    rows: TableRows,
    parts: Parts,
    unseen: OutOfFold,
    measured_on: str,
    n_train: int,
    notes: list[str],
) -> FitResult:
    """Measure the model on the rows kept aside, or else on all rows out of fold."""
    learned, test = rows.take(parts.learn), rows.take(parts.test)
    measured = measure_test_rows(model, test) if parts.test.size else unseen.measure(model)
    measured_rows = labels_of(test) if parts.test.size else unseen.is_rare
    card = ModelCard(
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions_in_use(),
        n_rows=labels_of(rows).size,
        n_rare=int(labels_of(rows).sum()),
        n_train=n_train,
        n_calibration=unseen.is_rare.size,
        n_calibration_rare=int(unseen.is_rare.sum()),
        n_test=measured_rows.size,
        n_test_rare=int(measured_rows.sum()),
        rules=tuple(measured),
        profiles=column_profiles(learned.X.iloc[unseen.rows], model.schema, bins_from=learned.X),
        measured_on=measured_on,
        notes=tuple(notes),
    )
    return FitResult(
        replace(model, card=card),
        unseen.members(model.flag_capacity),
        measured,
        card.n_train,
        card.n_calibration,
        card.n_test,
        card.n_test_rare,
        measured_on,
        _seconds_per_row(model, learned),
        notes,
        _money(model, test, learned, unseen),
    )


def _money(
    model: TableModel, test: TableRows, learned: TableRows, unseen: OutOfFold
) -> Money | None:
    rows = test if len(test.X) else learned.take(unseen.rows)
    known = weighed_columns(model, rows)
    if not known:
        return None
    known |= {"is_rare": labels_of(rows), "flagged": unseen.flagged}
    if len(test.X):
        known["flagged"] = model.decide(test).flagged
    else:
        known["p"] = model.classifier.out_of_fold_scores_[unseen.rows]
    return money_of(model, known)


def _seconds_per_row(model: TableModel, rows: TableRows) -> float:
    some = rows.X.head(_TIMED_ROWS)
    start = clock.process_time()
    model.classifier.score_samples(some)
    return (clock.process_time() - start) / len(some)


def _check_enough(rows: TableRows, schema: TableSchema, capacity: Capacity) -> None:
    is_rare = labels_of(rows)
    n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
    if min(n_rare, n_common) < _FEWEST_RARE:
        raise TableError(
            f"Only {min(n_rare, n_common)} rows "
            f"{'have the rare label' if n_rare < n_common else 'do not have the rare label'} "
            f"{schema.rare_label!r}; at least {_FEWEST_RARE} are needed to train, calibrate and "
            "test. Collect more, or name another label with --rare."
        )
    check_rate(capacity, rare_share(is_rare))  # a count without `per` raises an error here


def _prevalence(is_rare: Mask, capacity: Capacity, guarantee: str) -> float | None:
    """Return the share of rare rows in the whole table, to which a multiple refers.

    "confident" and "simultaneous" estimate it from the calibration rows, and cover the error of
    that estimate.
    """
    if capacity.kind != "multiple" or guarantee in ("confident", "simultaneous"):
        return None
    b, share = exact(capacity.value), float(rare_share(is_rare))
    while b * exact(share) > 1:  # more rare rows than in the population: everything is flagged
        share = float(np.nextafter(min(share, float(1 / b)), 0.0))
    return share
