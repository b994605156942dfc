"""From a table to a model under a capacity: learn from every row, and measure on unseen ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._core.arrays import Doubles, Mask, Rows
from .._core.folds import holds_out
from .._core.formatting import counted, duration, number, percent
from .._core.labels import rare_share
from .._core.validation import check_count, check_option, name_rows
from ..capacity import Capacity, exact
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..learners.members import SIZES, watching_members
from ..thresholds.promise import check_guarantee, guarantee_of
from . import estimators
from ._source import ReadOptions
from .columns import Place
from .inspect import infer_schema, notes_on, notes_on_times, only_labelled
from .learned_rows import RowFingerprints, column_profiles
from .model import ModelCard, TableModel, labels_of, versions_in_use
from .read import open_table, read_whole, table_at
from .recalibrate import about_known, recalibrate_table
from .rules import Money, measure_out_of_fold, measure_test_rows, money_of, weighed_columns
from .schema import TableRows, TableSchema, WorkColumns, is_missing, reference_values

#: Tables with more rows are timed before the fit.
_SHORT = 20_000
#: Rare rows, and other rows, that a fit needs; and that the threshold of a trained model needs.
_FEWEST, _FEWEST_TO_CALIBRATE = 10, 5
#: By the size of the ensemble that ranks lists, that of the ensembles of folds, and their number up
#: to some numbers of rows: lists need no folds.
_FOLDS = {
    "quick": ("quick", {np.inf: 3}),
    "default": ("quick", {50_000: 5, np.inf: 3}),
    "thorough": ("default", {np.inf: 10}),
}
#: Guarantees that do not hold with several thresholds need one model, and rows it has not seen.
_SHARE_FOR_THRESHOLD = 0.25
#: The share of the latest rows, which test a model of the past.
_LATEST = 0.2
_LARGE_CASES_PER_FOLD = 10
_FEWEST_FOLDS = 2
#: Columns that lists and exported reviews have besides those of the cases.
OF_LISTS = (
    *("rank", "row", "score", "probability", "reasons", "selected_by", "inclusion", "tier"),
    *("events", "decided_by", "decided_at"),
)

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True)
class FitResult:
    """A fitted model, and what the capacity finds on rows that were not learned from.

    Attributes
    ----------
    model : TableModel
        What a model file contains. Its card tells what the model and other rules find.
    money : Money or None
        What the rules find in values, if the model weighs them.
    """

    model: TableModel
    money: Money | None = None

    @property
    def card(self) -> ModelCard:
        """Where the model comes from, and what it finds."""
        return self.model.card


def fit_table(
    path: Any,
    *,
    target: str,
    capacity: Capacity,
    rare: str | None = None,
    id: str | None = None,
    labelled_only: bool = False,
    learner: str = "auto",
    guarantee: str = "expected",
    confidence: float = 0.95,
    own: Any = None,
    size: str = "default",
    folds: int | None = None,
    time: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    memory: Any = None,
    unlabelled: Any = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: Progress | None = None,
) -> FitResult:
    """Fit a model to the table in a file.

    Lists are ranked by one model of all rows. For single rows there are smaller models of folds,
    each without a part of the rows: a hash picks the one that decides, with a threshold from the
    rows that it has not seen. They also measure: every row is scored by a model that has not seen
    it.

    Parameters
    ----------
    path : Path, str or data frame
        A CSV, TSV, Excel, JSON lines or Parquet file; ``-`` reads CSV from standard input. Or a
        data frame of pandas, polars or Arrow, which all functions of tables take.
    target : str
        The column with the labels.
    capacity : Capacity
        How many rows can be followed up.
    rare : str, default=None
        The label to look for, as text; `None` takes the rarest. Equally rare labels raise an error.
    id : str, default=None
        The column that identifies a row. It is never learned from, and breaks ties between equal
        scores.
    labelled_only : bool, default=False
        Whether to leave out rows without a label, which are counted in a note. Otherwise they are
        an error.
    learner : str, default="auto"
        One of `LEARNERS`; "auto" is a :class:`~shortlist.learners.CapacityEnsembleClassifier`.
    guarantee : str, default="expected"
        The promise about future flags; see :func:`~shortlist.calibrate_threshold`. For
        "next-batch", "simultaneous" and "anytime", which need one threshold, one model learns from
        three quarters of the rows, and the rest sets it.
    confidence : float, default=0.95
        How surely it holds, unless it is "plug-in" or "expected".
    own : classifier, default=None
        A classifier of your own, instead of `learner`. One that is trained is not fitted again: the
        rows set its threshold, each is judged by that of the others, and none may have trained it.
        It gets the columns it was trained on: numbers, days since 1970 for dates, and texts.
    size : {"quick", "default", "thorough"}, default="default"
        How large the ensemble is. Those of folds are smaller: quick, or "default" beside a
        thorough one.
    folds : int, default=None
        Number of models for single rows, each without the rows of its fold. `None` makes five;
        three above 50,000 rows and with ``size="quick"``; ten with ``size="thorough"`` and for
        single learners. 1 fits a single model to three quarters of the rows, which ranks and
        decides, and the others set its threshold: a small file, which finds less.
    time : str, default=None
        A column with dates or numbers that rise with time. The model learns from the past and is
        tested on the latest fifth of the rows. It is never learned from.
    group : str, default=None
        A column that tells which rows belong together, such as those of a customer. No group is
        both learned from and measured on. It is never learned from.
    weight : str, default=None
        A column with the probability that each row was reviewed, such as ``"inclusion"`` of a list
        with probes: a row of probability p counts as one over the root of p rows, so that a model
        of reviewed cases also learns what most cases look like. Such rows cannot set a threshold:
        `unlabelled` is then needed, `learner` must be "auto", and the capacity no multiple. Columns
        that lists write, such as ``"score"``, are left out.
    random_state : int, default=0
        Seed of the folds and of the learner, and key of the hash.
    n_jobs : int, default=None
        Number of threads that grow trees.
    memory : str or joblib.Memory, default=None
        A folder for finished members of the ensemble: an interrupted fit resumes.
    unlabelled : Path, str or data frame, default=None
        A table like `path`, without labels and with other rows: from them the model that ranks
        lists gets an exact threshold, and decides about single rows, too; see
        :func:`recalibrate_table`.
    reading : ReadOptions, default=None
        What to know about the file; everything else is inferred.
    work : WorkColumns, default=None
        Columns with values and efforts, and what a slot must be worth. The threshold is then one of
        value * probability / effort, and the model keeps the names of the columns. A budget of work
        is the `capacity`.
    on_progress : callable, default=None
        Called with the current step, the work that is done and the work in all: in seconds for
        tables of more than 20,000 rows, of which a piece is timed first.

    Returns
    -------
    FitResult
        The model, and what the capacity finds on rows that were not learned from.
    """
    check_guarantee(guarantee, capacity)
    check_option("size", size, SIZES)
    check_option("learner", learner, estimators.LEARNERS)
    is_ready = own is not None and estimators.is_trained(own)
    if is_ready:
        for_a_fit = {"folds": folds, "time": time, "group": group, "n_jobs": n_jobs}
        _check_unused(for_a_fit | {"memory": memory, "size": size.removeprefix("default")})
    path, unlabelled = table_at(path), None if unlabelled is None else table_at(unlabelled)
    on_progress = on_progress or (lambda step, done, total: None)
    on_progress("reading", 0, 1)
    named = {"target": target, "id": id, "rare": rare, "work": work}
    rows, schema, notes = read_to_fit(path, reading, labelled_only=labelled_only, **named)
    if is_ready:
        schema, about = estimators.columns_of_trained(own, schema, str(path))
        rows, notes = rows.of_columns(schema.features), [*notes, *about]
    if weight is not None:
        _check_weighted(capacity, learner if own is None else "own", unlabelled)
    promise = {
        "capacity": capacity, "guarantee": guarantee, "confidence": confidence,
        "random_state": random_state,
    }  # fmt: skip
    fit = _divided(rows, schema, notes, promise, unlabelled, time=time, group=group, weight=weight)
    if is_ready:
        fit.check_enough(rows, _FEWEST_TO_CALIBRATE)
        return fit.measured(
            fit.model(estimators.adapted(own, schema), estimators.own_name(own), cv="prefit")
        )
    fit.check_enough(fit.learned, _FEWEST)
    fit.check_unlabelled()
    is_ensemble = own is None and learner == "auto"
    fold_size, n_folds = folds_for(size if is_ensemble else "thorough", len(fit.learned.X))
    cv = fit.cv(n_folds if folds is None else check_count("folds", folds))
    sizes = (size,) if holds_out(cv) else (fold_size, size)
    options = {"n_jobs": n_jobs, "memory": memory, "random_state": random_state}
    estimator, *of_lists = fit.estimators(learner, own, sizes, **options)
    name = learner if own is None else estimators.own_name(own)
    with watching_members(fit.reporting(on_progress, estimator, of_lists, cv)):
        model = fit.model(estimator, name, cv=cv, list_estimator=of_lists[0] if of_lists else None)
    return fit.measured(model)


def _check_unused(for_a_fit: dict[str, Any]) -> None:
    """Raise an error for what a trained model does not use."""
    named = ", ".join(f"{name}=..." for name, given in for_a_fit.items() if given not in (None, ""))
    if named:
        raise TableError(f"The model is trained; {named} would not be used.")


@dataclass(frozen=True)
class _Fit:
    """The rows of a table, those to learn from and those that test, and the promise."""

    rows: TableRows
    learned: TableRows
    test: TableRows
    groups: NDArray[Any] | None
    weights: Doubles | None
    schema: TableSchema
    promise: dict[str, Any]
    notes: list[str]
    unlabelled: Path | None

    @property
    def capacity(self) -> Capacity:
        """How many rows can be followed up."""
        capacity: Capacity = self.promise["capacity"]
        return capacity

    def model(self, estimator: Any, learner: str, **options: Any) -> TableModel:
        """Fit a classifier with the promise to the rows to learn from."""
        work, learned = self.schema.work, self.learned
        if options["cv"] != "prefit":
            options["prevalence"] = _prevalence(labels_of(self.rows), **self.promise)
        if work is not None:
            most = work.max_effort if self.capacity.kind == "effort" else None
            options |= {"worth": work.worth, "max_effort": most}
        classifier = CapacityClassifier(
            estimator, rare_label=True, ties="hash", **self.promise, **options
        ).fit(
            learned.X,
            labels_of(learned),
            ids=learned.ids,
            groups=self.groups,
            values=learned.values,
            efforts=learned.efforts,
            **({} if self.weights is None else {"sample_weight": self.weights}),
        )
        usual = reference_values(learned.X, self.schema)
        known = RowFingerprints.of(learned, key=self.promise["random_state"])
        return TableModel(classifier, self.schema, usual, learner, self._card(classifier), known)

    def estimators(
        self, learner: str, own: Any, sizes: tuple[str, ...], **options: Any
    ) -> list[Any]:
        """Return unfitted models of some sizes; other models than ensembles have one size."""
        if own is not None:
            return [estimators.own_pipeline(own, self.schema) for _ in sizes]
        options |= {"capacity": self.as_flags()}
        return [
            estimators.make_estimator(learner, self.schema, size=size, **options) for size in sizes
        ]

    def reporting(
        self, on_progress: Progress, estimator: Any, of_lists: list[Any], cv: int | float
    ) -> Callable[[str, float], None]:
        """Return what reports the work done, in seconds if a piece of a long table is timed."""
        n_rows, n_folds = len(self.learned.X), 1 if holds_out(cv) else int(cv)
        planned = [
            estimators.work_of(each, n_rows) for each in (*of_lists, *([estimator] * n_folds))
        ]
        seconds: dict[str, float] = {}
        if n_rows > _SHORT and planned[0] and not isinstance(estimator, Pipeline):
            on_progress("timing a piece of the rows", 0, 1)
            known = labels_of(self.learned), self.promise["random_state"]
            seconds = estimators.seconds_of_work(estimator, self.learned.X, *known)
        done, total = 0.0, sum(n * seconds.get(name, 1) for of in planned for name, n in of.items())
        on_progress(f"fitting, about {duration(total)} in all" if seconds else "fitting", 0, 1)

        def report(name: str, work: float) -> None:
            nonlocal done
            on_progress(f"fitting {name}", done, total)
            done += work * seconds.get(name, 1)

        return report

    def _card(self, classifier: CapacityClassifier) -> ModelCard:
        """Describe where a model comes from, before it is measured."""
        calibrated, n_train = self.learned, 0
        if classifier.cv != "prefit":
            unseen = classifier.folds_ >= 0
            calibrated = self.learned.take(np.flatnonzero(unseen))
            n_train = int(np.count_nonzero(~unseen)) or unseen.size
        return ModelCard(
            fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions_in_use(),
            **_sizes("n_rows", "n_rare", self.rows),
            n_train=n_train,
            **_sizes("n_calibration", "n_calibration_rare", calibrated),
            profiles=column_profiles(calibrated.X, self.schema),
        )

    def cv(self, wanted: int) -> int | float:
        """Return the number of folds, or the share of the rows that sets one threshold.

        With a budget of work there are so few that each fold has one for some of the largest cases:
        each keeps its budget by itself, and its promise costs the effort of one largest case.
        """
        work, is_rare, groups = self.schema.work, labels_of(self.learned), self.groups
        if groups is not None and np.unique(groups[is_rare]).size < _FEWEST_FOLDS:
            raise TableError(
                "group=... puts all rare rows into one group, and a model would have none to learn "
                "from. Name another column."
            )
        if wanted == 1 or guarantee_of(self.promise["guarantee"]).fold_place is None:
            return _SHARE_FOR_THRESHOLD
        if self.capacity.kind == "effort" and work is not None and work.max_effort:
            budget = float(self.capacity.effort_per_item() * is_rare.size)
            most = int(budget / (_LARGE_CASES_PER_FOLD * work.max_effort))
            wanted = min(wanted, max(most, _FEWEST_FOLDS))
        return wanted

    def as_flags(self) -> Capacity:
        """Return about how many flags a budget of work allows, for learners that know of it."""
        efforts = self.learned.efforts
        if self.capacity.kind != "effort" or efforts is None:
            return self.capacity
        share = self.capacity.effort_per_item() / Fraction(float(np.mean(efforts)))
        return Capacity.fraction(min(share, Fraction(1)))

    def check_enough(self, rows: TableRows, fewest: int) -> None:
        """Raise an error for too few rows of a label, and for a capacity that is not a rate."""
        is_rare = labels_of(rows)
        n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
        if min(n_rare, n_common) < fewest:
            raise TableError(
                f"Only {min(n_rare, n_common)} rows "
                f"{'have the rare label' if n_rare < n_common else 'do not have the rare label'} "
                f"{self.schema.rare_label!r}; at least {fewest} are needed to train, calibrate and "
                "test. Collect more, or name another label with rare=..."
            )
        if self.capacity.kind == "effort":  # a count or an effort without `per` raises an error
            self.capacity.effort_per_item()
        else:
            self.capacity.as_ratio(rare_share(is_rare))

    def check_unlabelled(self) -> None:
        """Raise an error for unlabelled rows that cannot be used, before any model is fitted."""
        if self.unlabelled is None or str(self.unlabelled) == "-":
            return
        prints = RowFingerprints.of(self.learned, key=self.promise["random_state"])
        with self.schema.open(self.unlabelled) as source:
            counts = [prints.count(prints.hashes_of(rows)) for rows in self.schema.rows(source)]
            source.take_notes()
        if counts:
            about_known(prints, prints.seen_of(np.sum(counts, axis=0)), self.unlabelled)

    def measured(self, model: TableModel) -> FitResult:
        """Measure a model on rows that it has not seen, and put that into its card.

        The latest rows measure the threshold of unlabelled rows; otherwise, rows of the fit measure
        the one before it.
        """
        if len(self.test.X):
            model, measured_on = self._recalibrated(model), "latest"
            unseen = measure_test_rows(model, self.test)
        else:
            has_folds = len(model.classifier.estimators_) > 1
            unseen = measure_out_of_fold(model, self.learned)
            model, measured_on = self._recalibrated(model), "calibration"
            measured_on = "out-of-fold" if has_folds else measured_on
        card = replace(
            model.card,
            **_sizes("n_test", "n_test_rare", unseen.rows),
            rules=tuple(unseen.rules),
            measured_on=measured_on,
            notes=tuple(self.notes),
        )
        known = weighed_columns(model, unseen.rows, unseen.probabilities)
        known |= {"is_rare": labels_of(unseen.rows), "flagged": unseen.flagged}
        return FitResult(replace(model, card=card), money_of(model, known))

    def _recalibrated(self, model: TableModel) -> TableModel:
        """Return a model with a threshold from unlabelled rows, if there are any; note that."""
        if self.unlabelled is None:
            return model
        found = recalibrate_table(model, self.unlabelled)
        measured = "." if len(self.test.X) else "; what is measured here is that before it."
        self.notes.extend(
            [
                *found.notes,
                *(finding.message for finding in found.findings),
                f"The threshold for single rows rests on {found.n_rows:,} rows of "
                f"{self.unlabelled}{measured}",
            ]
        )
        return found.model


def _sizes(every: str, rare: str, rows: TableRows) -> dict[str, Any]:
    """Return the number of rows, and of rare ones, by their names."""
    return {every: len(rows.X), rare: int(labels_of(rows).sum())}


def read_to_fit(
    path: Path, reading: ReadOptions | None, *, labelled_only: bool = False, **named: Any
) -> tuple[TableRows, TableSchema, list[str]]:
    """Read a table with labels, and what was decided about its columns."""
    with open_table(path, reading=reading) as source:
        table = read_whole(source)
        if labelled_only:
            table = only_labelled(table, named["target"], source)
        schema = infer_schema(source, table, **named)
        rows = schema.convert(table, target=schema.target, place=Place(source.name))
        return rows, schema, source.take_notes()


def _without(
    rows: TableRows, schema: TableSchema, aside: tuple[str | None, ...]
) -> tuple[TableRows, TableSchema]:
    """Leave out the columns that order or group the rows."""
    kept = tuple(feature for feature in schema.features if feature.name not in aside)
    if not kept:
        raise TableError("No column is left to learn from, other than those that were named.")
    return rows.of_columns(kept), replace(schema, features=kept)


def _with_bound(
    schema: TableSchema, rows: TableRows, capacity: Capacity, guarantee: str, notes: list[str]
) -> TableSchema:
    """Bound the work of a case by that of the table, where nothing was said; note that.

    The promise stays exact: a case that takes more is never flagged. For "expected" this follows
    from the symmetry of all cases, the new one among them: if it is not the largest, the bound is
    that of all of them, and if it is, it costs nothing.
    """
    work = schema.work
    if work is None or rows.efforts is None or capacity.kind != "effort":
        return schema
    most = float(rows.efforts.max())
    if work.max_effort is not None and most > work.max_effort:
        above = np.flatnonzero(rows.efforts > work.max_effort)
        raise TableError(
            f"max_effort={work.max_effort:.12g} must be at least the effort of every case; got "
            f"{number(most, 12)} at most, and more than that in "
            f"{name_rows(above + 1)}. Raise it, or leave these cases out."
        )
    if work.max_effort is not None:
        return schema
    if guarantee_of(guarantee).surely:
        raise TableError(
            f"guarantee={guarantee!r} needs max_effort=..., the most {work.unit} that any case can "
            f"take, in future too; the most in the table is {number(most, 12)}. If work is cut "
            "off after some hours, that is the bound."
        )
    notes.append(
        f"No case of the table takes more than {number(most, 12)} {work.unit}. Later cases that "
        "take more are never flagged. To allow more, use max_effort=..."
    )
    return replace(schema, work=replace(work, max_effort=most))


def _prevalence(
    is_rare: Mask, *, capacity: Capacity, guarantee: str, **others: Any
) -> float | None:
    """Return the share of rare rows in the whole table, to which a multiple refers.

    Some guarantees estimate it from the calibration rows, and cover the error of that estimate.
    """
    if capacity.kind != "multiple" or guarantee_of(guarantee).surely:
        return None
    b, share = exact(capacity.value), float(rare_share(is_rare))
    while b * exact(share) > 1:  # more rare rows than in the population: everything is flagged
        share = float(np.nextafter(min(share, float(1 / b)), 0.0))
    return share


# --- which rows train, which are scored by models without them, and which only test ---


def _divided(
    rows: TableRows,
    schema: TableSchema,
    notes: list[str],
    promise: dict[str, Any],
    unlabelled: Path | None,
    **aside: str | None,
) -> _Fit:
    """Leave columns of times, groups and weights out, and divide the rows by them."""
    schema = _with_bound(schema, rows, promise["capacity"], promise["guarantee"], notes)
    times, groups, chances = set_aside(rows, schema, **aside)
    time, names = aside["time"], [*aside.values()]
    notes += [n for f in schema.features if f.name == time for n in notes_on_times(rows.X[time], f)]
    if chances is not None:
        names += _columns_of_lists(schema, notes)
    rows, schema = _without(rows, schema, tuple(names))
    notes += notes_on(rows, schema)
    learn, test = np.arange(len(rows.X)), np.arange(0)
    if times is not None:
        learn, test = divide_rows(times)
    groups = None if groups is None else groups[learn]
    weights = None if chances is None else 1 / np.sqrt(chances[learn])
    return _Fit(
        rows, rows.take(learn), rows.take(test), groups, weights, schema, promise, notes, unlabelled
    )


def _check_weighted(capacity: Capacity, learner: str, unlabelled: Path | None) -> None:
    """Raise an error for what reviewed rows cannot do: they are not drawn like future ones."""
    problem = None
    if unlabelled is None:
        problem = "they set no threshold. Name recent cases as they come with unlabelled=..."
    elif capacity.kind == "multiple":
        problem = "their share of rare ones is not that of all. Use Capacity.fraction(0.06)"
    elif learner != "auto":
        problem = f"learner={learner!r} takes no weights. Use learner='auto'"
    if problem is not None:
        raise TableError(f"weight=... says that rows were reviewed by choice, so {problem}.")


def _columns_of_lists(schema: TableSchema, notes: list[str]) -> list[str]:
    """Return the columns that lists write, which later cases do not have; note what is measured."""
    names = [feature.name for feature in schema.features if feature.name in OF_LISTS]
    left = f" Columns of lists are left out: {', '.join(map(repr, names))}." if names else ""
    notes.append(
        "What is measured here is of reviewed cases, which are not like all cases. Compare models "
        f"on the same probes: shortlist evaluate --reviews with challenger=...{left}"
    )
    return names


def set_aside(
    rows: TableRows, schema: TableSchema, **aside: str | None
) -> list[NDArray[Any] | None]:
    """Return the columns that `time`, `group` and `weight` name, or say what is wrong with them."""
    kinds = {feature.name: feature.kind for feature in schema.features}
    for option, name in aside.items():
        if name is None:
            continue
        problem = None
        if name not in kinds:
            problem = f"is not a column of features: {', '.join(map(repr, kinds))}"
        elif option == "time" and kinds[name] == "categorical":
            problem = (
                "holds texts. It needs dates or numbers that rise with time. If it holds dates, "
                f"say how they are written: date_format='{name}=DD/MM/YYYY'"
            )
        elif n_missing := int(is_missing(rows.X[name].to_numpy(), kinds[name]).sum()):
            problem = (
                f"has {counted(n_missing, 'missing value')}. Fill them, or leave these rows out"
            )
        elif option == "group" and rows.X[name].nunique() == 1:
            problem = "is the same in all rows: a model would have no other group to learn from"
        elif option == "weight" and not (
            kinds[name] == "numeric" and rows.X[name].between(0, 1, inclusive="right").all()
        ):
            problem = "must hold probabilities above 0, and at most 1"
        if problem is not None:
            raise TableError(f"{option}=... names {name!r}, which {problem}.")
    return [None if name is None else rows.X[name].to_numpy() for name in aside.values()]


def divide_rows(times: NDArray[np.float64]) -> tuple[Rows, Rows]:
    """Return the rows of the past and the latest ones; rows of a moment are on the same side."""
    start = np.quantile(times, 1 - _LATEST, method="higher")
    if start == times.min():
        raise TableError(
            f"time=... leaves no past to learn from: {percent(np.mean(times == start))} of the "
            "rows have the earliest time. Name a column with more times, or test without it."
        )
    return np.flatnonzero(times < start), np.flatnonzero(times >= start)


def folds_for(size: str, n_rows: int) -> tuple[str, int]:
    """Return the size of the ensembles of folds, and how many there are, unless they are named."""
    of_folds, up_to = _FOLDS[size]
    return of_folds, next(number for most, number in up_to.items() if n_rows <= most)
