"""From a table to a model under a capacity: choose, fit, calibrate, and measure on unseen rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from .._core.labels import rare_share
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..metrics import capacity_scorer
from ..thresholds._calibrate import check_guarantee
from ._candidates import candidate_models
from ._card import ModelCard, now, versions_in_use
from ._measure import RuleResult, measure_default, measure_random, measure_rule
from ._model import TableModel
from ._notes import notes_on
from ._profile import column_profiles
from ._read import open_source
from ._schema import Rows, TableSchema, infer_schema, reference_values
from ._smote import smote_twin

__all__ = ["Candidate", "FitResult", "fit_table"]

# Three parts, each with its own work: what chooses and trains, what sets the threshold, what tests.
_TEST_SHARE = 0.2
_CALIBRATION_SHARE = 0.25  # of the rest: a fifth of all rows
_MOST_FOLDS = 5
_FEWEST_RARE = 10

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Candidate:
    """A model that was tried: its cross-validated detection at the capacity, by fold."""

    learner: str
    by_fold: list[float]

    @property
    def detection(self) -> float:
        """The mean over the folds."""
        return float(np.mean(self.by_fold))


@dataclass(frozen=True)
class FitResult:
    """A fitted model, what was tried, and what the capacity finds on the test rows.

    `notes` are sentences about columns that deserve a second look.
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
    on_progress: Progress | None = None,
) -> FitResult:
    """Fit a model to the table in a file.

    A fifth of the rows is kept aside to measure the finished model, a fifth sets its threshold,
    and the rest trains it; all parts have the same share of rare cases. The learner is chosen by
    its cross-validated detection at the capacity, within the training rows alone.

    Parameters
    ----------
    path : Path
        A CSV, TSV (also gzipped), Parquet or Feather file; ``-`` is CSV from standard input.
    target : str
        The column with the labels.
    capacity : Capacity
        How much can be followed up.
    rare : str, default=None
        The label that is looked for, as text; `None` takes the rarest.
    id : str, default=None
        The column that names a row. It is never learned from, and decides between equal scores.
    learner : str, default="auto"
        One of `LEARNERS`; "auto" takes the best of some.
    guarantee : {"plug-in", "expected", "confident", "next-batch"}, default="expected"
        What is promised about future flags; see :func:`~shortlist.calibrate_threshold`.
    smote : bool, default=True
        Whether the same learner is also trained on SMOTE's rows, to be compared with in reports;
        this needs the extra `smote`, and is left out without it.
    random_state : int, default=0
        Seed of the split and of the learner, and key of the hash.
    on_progress : callable, default=None
        Called with what is being done, how many steps are done, and how many there are.

    Returns
    -------
    FitResult
        The model, what was tried, and what the capacity finds on the rows kept aside.
    """
    check_guarantee(guarantee, capacity)
    on_progress = on_progress or (lambda step, done, total: None)
    with open_source(path) as source:
        on_progress("reading", 0, 1)
        table = source.read()
        schema = infer_schema(source, table, target=target, id=id, rare=rare)
        rows = schema.convert(table, target=target)
    _check_enough(rows, schema, capacity)
    train, calibration, test = _parts(_labels(rows), random_state)

    candidates = candidate_models(learner, schema, capacity=capacity, random_state=random_state)
    tried = _try_all(candidates, _take(rows, train), capacity, random_state, on_progress)
    best = max(tried, key=lambda candidate: candidate.detection) if tried else None
    name = best.learner if best else learner
    on_progress("fitting", 0, 1)
    X_train, y_train = rows.X.iloc[train], _labels(rows)[train]
    pipeline = candidates[name].fit(X_train, y_train)
    classifier = CapacityClassifier(
        pipeline,
        capacity=capacity,
        rare_label=True,
        prevalence=_prevalence(_labels(rows), capacity, guarantee),
        cv="prefit",
        guarantee=guarantee,
        ties="hash",
        random_state=random_state,
    ).fit(rows.X.iloc[calibration], _labels(rows)[calibration], ids=_some(rows.ids, calibration))
    on_progress("fitting for comparison", 0, 1)
    twin = smote_twin(pipeline, X_train, y_train, random_state=random_state) if smote else None
    model = TableModel(classifier, schema, reference_values(X_train, schema), name, twin=twin)
    measured = _measure(model, _take(rows, test))
    card = _card(rows, schema, (train, calibration, test), measured)
    return FitResult(
        replace(model, card=card),
        tried,
        measured,
        train.size,
        calibration.size,
        test.size,
        int(_labels(rows)[test].sum()),
        notes_on(rows, schema),
    )


def _check_enough(rows: Rows, schema: TableSchema, capacity: Capacity) -> None:
    is_rare = _labels(rows)
    n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
    if min(n_rare, n_common) < _FEWEST_RARE:
        raise TableError(
            f"Only {min(n_rare, n_common)} rows "
            f"{'have the rare label' if n_rare < n_common else 'do not have the rare label'} "
            f"{schema.rare_label!r}; at least {_FEWEST_RARE} are needed to train, calibrate and "
            "test. Collect more, or name another label with --rare."
        )
    capacity.as_ratio(rare_share(is_rare))  # an impossible capacity fails before any work


def _parts(is_rare: NDArray[np.bool_], random_state: int) -> tuple[Any, Any, Any]:
    everything = np.arange(is_rare.size)
    rest, test = train_test_split(
        everything, test_size=_TEST_SHARE, stratify=is_rare, random_state=random_state
    )
    train, calibration = train_test_split(
        rest, test_size=_CALIBRATION_SHARE, stratify=is_rare[rest], random_state=random_state
    )
    return np.sort(train), np.sort(calibration), np.sort(test)


def _prevalence(is_rare: NDArray[np.bool_], capacity: Capacity, guarantee: str) -> float | None:
    """Refer a multiple to the share of rare rows in the whole table, not in a fifth of it.

    The confident guarantee estimates it from the calibration rows, and covers the error of that.
    """
    if capacity.kind != "multiple" or guarantee == "confident":
        return None
    return float(rare_share(is_rare))


def _try_all(
    candidates: dict[str, Any],
    rows: Rows,
    capacity: Capacity,
    random_state: int,
    on_progress: Progress,
) -> list[Candidate]:
    """Cross-validate the detection at the capacity; a single candidate needs no contest."""
    if len(candidates) == 1:
        return []
    is_rare, scorer = _labels(rows), capacity_scorer(capacity, rare_label=True)
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


def _measure(model: TableModel, test: Rows) -> list[RuleResult]:
    classifier, is_rare = model.classifier, _labels(test)
    rules = {
        "this model, row by row": classifier.flag(test.X, ids=test.ids),
        "this model, as a list": classifier.select(test.X, ids=test.ids),
    }
    if model.twin is not None:
        rules["SMOTE, default threshold"] = np.asarray(model.twin.predict(test.X), dtype=bool)
    capacity = classifier.capacity
    measured = [measure_rule(name, is_rare, flags, capacity) for name, flags in rules.items()]
    default = measure_default(model, test.X, is_rare)
    return [*measured, default, measure_random(is_rare, capacity)]


def _card(
    rows: Rows, schema: TableSchema, parts: tuple[Any, Any, Any], measured: list[RuleResult]
) -> ModelCard:
    train, calibration, test = parts
    is_rare = _labels(rows)
    return ModelCard(
        fitted_at=now(),
        versions=versions_in_use(),
        n_rows=is_rare.size,
        n_rare=int(is_rare.sum()),
        n_train=train.size,
        n_calibration=calibration.size,
        n_test=test.size,
        n_test_rare=int(is_rare[test].sum()),
        rules=tuple(measured),
        profiles=column_profiles(rows.X.iloc[calibration], schema),
    )


def _labels(rows: Rows) -> NDArray[np.bool_]:
    assert rows.is_rare is not None  # every table that is fitted is read with its labels
    return rows.is_rare


def _take(rows: Rows, places: NDArray[np.intp]) -> Rows:
    return Rows(rows.X.iloc[places], _some(rows.ids, places), _some(rows.is_rare, places))


def _some(values: Any, places: NDArray[np.intp]) -> Any:
    return None if values is None else values[places]
