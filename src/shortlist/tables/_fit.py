"""From a table to a model under a capacity: choose a learner, fit, calibrate, and measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from .._core.arrays import Mask, Rows
from .._core.labels import rare_share
from ..capacity import Capacity, exact
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..metrics import capacity_scorer
from ..thresholds import check_guarantee
from ._candidates import candidate_models, smote_twin
from ._evaluate import labels_of, measure_default, measure_list, measure_random, measure_rule
from ._formats import open_source
from ._model import ModelCard, RuleResult, TableModel, versions_in_use
from ._profile import column_profiles, notes_on
from ._reading import Reading
from ._schema import TableRows, TableSchema, infer_schema, reference_values

__all__ = ["Candidate", "FitResult", "fit_table"]

# Three parts of the rows: one chooses and trains, one sets the threshold, one tests.
_TEST_SHARE = 0.2
_CALIBRATION_SHARE = 0.25  # of the rest: a fifth of all rows
_MOST_FOLDS = 5
_FEWEST_RARE = 10

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Candidate:
    """A learner that was tried: its cross-validated detection at the capacity, by fold."""

    learner: str
    by_fold: list[float]

    @property
    def detection(self) -> float:
        """The mean over the folds."""
        return float(np.mean(self.by_fold))


@dataclass(frozen=True)
class FitResult:
    """A fitted model, the learners that were tried, and what the capacity finds on the test rows.

    `notes` are sentences about columns to check.
    """

    model: TableModel
    candidates: list[Candidate]
    rules: list[RuleResult]
    n_train: int
    n_calibration: int
    n_test: int
    n_test_rare: int
    notes: list[str] = field(default_factory=list)


def fit_table(
    path: Path,
    *,
    target: str,
    capacity: Capacity,
    rare: str | None = None,
    id: str | None = None,
    learner: str = "auto",
    guarantee: str = "expected",
    smote: bool = True,
    random_state: int = 0,
    reading: Reading | None = None,
    on_progress: Progress | None = None,
) -> FitResult:
    """Fit a model to the table in a file.

    A fifth of the rows is held out to measure the finished model, a fifth sets its threshold, and
    the rest trains it. All parts have the same share of rare cases. The learner is chosen by its
    cross-validated detection at the capacity, on the training rows only.

    Parameters
    ----------
    path : Path
        A CSV, TSV (also gzipped), Parquet or Feather file; ``-`` reads CSV from standard input.
    target : str
        The column with the labels.
    capacity : Capacity
        How many rows can be followed up.
    rare : str, default=None
        The label to look for, as text; `None` takes the rarest.
    id : str, default=None
        The column that identifies a row. It is never learned from, and breaks ties between equal
        scores.
    learner : str, default="auto"
        One of `LEARNERS`; "auto" tries several and takes the best.
    guarantee : {"plug-in", "expected", "confident", "next-batch"}, default="expected"
        The promise about future flags; see :func:`~shortlist.calibrate_threshold`.
    smote : bool, default=True
        Whether to train the same learner after SMOTE as well, for comparison in reports. This
        needs the extra `smote`, and is skipped without it.
    random_state : int, default=0
        Seed of the split and of the learner, and key of the hash.
    reading : Reading, default=None
        What to know about the file; everything else is inferred.
    on_progress : callable, default=None
        Called with the current step, the number of finished steps and the total number.

    Returns
    -------
    FitResult
        The model, the learners that were tried, and what the capacity finds on the held-out rows.
    """
    check_guarantee(guarantee, capacity)
    on_progress = on_progress or (lambda step, done, total: None)
    with open_source(path, reading=reading) as source:
        on_progress("reading", 0, 1)
        table = source.read()
        schema = infer_schema(source, table, target=target, id=id, rare=rare)
        rows = schema.convert(table, target=target)
    _check_enough(rows, schema, capacity)
    is_rare = labels_of(rows)
    train, calibration, test = parts = _parts(is_rare, random_state)

    candidates = candidate_models(learner, schema, capacity=capacity, random_state=random_state)
    tried = _try_all(candidates, rows.take(train), capacity, random_state, on_progress)
    best = max(tried, key=lambda candidate: candidate.detection) if tried else None
    name = best.learner if best else learner
    on_progress("fitting", 0, 1)
    X_train = rows.X.iloc[train]
    pipeline = candidates[name].fit(X_train, is_rare[train])
    unseen = rows.take(calibration)
    classifier = CapacityClassifier(
        pipeline,
        capacity=capacity,
        rare_label=True,
        prevalence=_prevalence(is_rare, capacity, guarantee),
        cv="prefit",
        guarantee=guarantee,
        ties="hash",
        random_state=random_state,
    ).fit(unseen.X, unseen.is_rare, ids=unseen.ids)
    on_progress("fitting for comparison", 0, 1)
    twin = None
    if smote:
        twin = smote_twin(pipeline, X_train, is_rare[train], random_state=random_state)
    model = TableModel(classifier, schema, reference_values(X_train, schema), name, twin=twin)
    measured = _measure(model, rows.take(test))
    return FitResult(
        replace(model, card=_card(rows, schema, parts, measured)),
        tried,
        measured,
        train.size,
        calibration.size,
        test.size,
        int(is_rare[test].sum()),
        notes_on(rows, schema),
    )


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
    capacity.as_ratio(rare_share(is_rare))  # a count without `per` raises an error here


def _parts(is_rare: Mask, random_state: int) -> tuple[Rows, Rows, Rows]:
    everything = np.arange(is_rare.size)
    rest, test = train_test_split(
        everything, test_size=_TEST_SHARE, stratify=is_rare, random_state=random_state
    )
    train, calibration = train_test_split(
        rest, test_size=_CALIBRATION_SHARE, stratify=is_rare[rest], random_state=random_state
    )
    return np.sort(train), np.sort(calibration), np.sort(test)


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


def _try_all(
    candidates: dict[str, Any],
    rows: TableRows,
    capacity: Capacity,
    random_state: int,
    on_progress: Progress,
) -> list[Candidate]:
    """Cross-validate the detection at the capacity, unless there is only one candidate."""
    if len(candidates) == 1:
        return []
    is_rare, scorer = labels_of(rows), capacity_scorer(capacity, rare_label=True)
    n_folds = min(_MOST_FOLDS, int(is_rare.sum()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    splits = list(folds.split(rows.X, is_rare))
    tried, done = [], 0
    for name, pipeline in candidates.items():
        by_fold = []
        for train, unseen in splits:
            on_progress(f"trying {name}", done, len(candidates) * n_folds)
            fitted = clone(pipeline).fit(rows.X.iloc[train], is_rare[train])
            by_fold.append(scorer(fitted, rows.X.iloc[unseen], is_rare[unseen]))
            done += 1
        tried.append(Candidate(name, by_fold))
    return tried


def _measure(model: TableModel, test: TableRows) -> list[RuleResult]:
    classifier, is_rare = model.classifier, labels_of(test)
    capacity = classifier.capacity
    flagged = classifier.flag(test.X, ids=test.ids)
    order = model.rank(test.X, test.ids, classifier.score_samples(test.X))
    measured = [
        measure_rule("this model, row by row", is_rare, flagged, capacity),
        measure_list("this model, as a list", is_rare, order, capacity),
    ]
    if model.twin is not None:
        predicted = np.asarray(model.twin.predict(test.X), dtype=bool)
        measured.append(measure_rule("SMOTE, default threshold", is_rare, predicted, capacity))
    default = measure_default(model, test.X, is_rare)
    return [*measured, default, measure_random(is_rare, capacity)]


def _card(
    rows: TableRows, schema: TableSchema, parts: tuple[Rows, Rows, Rows], measured: list[RuleResult]
) -> ModelCard:
    train, calibration, test = parts
    is_rare = labels_of(rows)
    return ModelCard(
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions_in_use(),
        n_rows=is_rare.size,
        n_rare=int(is_rare.sum()),
        n_train=train.size,
        n_calibration=calibration.size,
        n_calibration_rare=int(is_rare[calibration].sum()),
        n_test=test.size,
        n_test_rare=int(is_rare[test].sum()),
        rules=tuple(measured),
        profiles=column_profiles(rows.X.iloc[calibration], schema, bins_from=rows.X.iloc[train]),
    )
