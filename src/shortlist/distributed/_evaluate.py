"""What a model finds in a labelled table of any size: M, intervals, curve and drift."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from .._core.binomial import proportion_interval
from .._core.labels import EstimatedShare
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import CapacityCurve, adjusted_detection_of_counts, curve_of_counts
from ..tables import (
    ColumnProfile,
    Evaluation,
    RuleResult,
    TableModel,
    chances_of_flags,
    compare_columns,
    judge_shifts,
    points_at,
    spread_capacities,
    verdict_on,
)
from ._cut import CutSearch, Totals
from ._engine import Engine
from ._kernels import ALL, Columns, CountInside
from ._models import ColumnCounts, ModelRows, plan_rows
from ._operations import on_arrays

__all__ = ["Drift", "LargeEvaluation", "measure_model"]

#: Up to so many rows, the curve has every cut; beyond, about so many.
_MOST_CUTS = 1 << 17
_COLUMNS = ("score", "decided", "flagged", "is_rare")


@dataclass(frozen=True)
class Drift:
    """How the rows differ from the calibration rows.

    Attributes
    ----------
    score : dict
        Counts of the scores in tenths of the calibration scores, stability index and p-value.
    columns : list of dict
        The same for each column of the model card; empty without one.
    verdict : str
        What this says.
    chance_of_as_many, chance_of_as_few : float
        Of so many or so few flags, if the rows were like those of the calibration.
    """

    score: dict[str, Any]
    columns: list[dict[str, Any]]
    verdict: str
    chance_of_as_many: float
    chance_of_as_few: float


@dataclass(frozen=True)
class LargeEvaluation(Evaluation):
    """An :class:`~shortlist.tables.Evaluation`, and the drift of the same rows."""

    drift: Drift | None = None


@dataclass(frozen=True)
class _Tally:
    """Counts rows, rare rows, flags, flagged rare rows, and scores in bins."""

    profile: ColumnProfile

    def __call__(self, columns: Columns) -> NDArray[np.int64]:
        flagged, is_rare = columns["flagged"].astype(bool), columns["is_rare"].astype(bool)
        counts = [flagged.size, is_rare.sum(), flagged.sum(), (flagged & is_rare).sum()]
        return np.array([*counts, *self.profile.count(columns["decided"])], dtype=np.int64)


@dataclass(frozen=True)
class _Above:
    """Counts the rows and the rare rows strictly above each of some rising values."""

    values: Doubles

    def __call__(self, columns: Columns) -> NDArray[np.int64]:
        places = np.searchsorted(self.values, columns["score"], side="left")
        is_rare = columns["is_rare"].astype(bool)
        return np.array([self._above(places), self._above(places[is_rare])])

    def _above(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        counts = np.bincount(places, minlength=self.values.size + 1)
        return np.cumsum(counts[::-1])[::-1][1:]


def measure_model(
    engine: Engine,
    model: Any,
    table: Any,
    *,
    id: str | None,
    target: str | None = None,
    segment: str | None = None,
) -> LargeEvaluation:
    """Measure a model on a labelled table with any engine.

    Parameters
    ----------
    engine, table
        The engine, and a table of its kind.
    model : TableModel or CapacityClassifier
        Fitted.
    id, segment : str or None
        Columns with the ids, and with the segments if the model has capacities for them.
    target : str, default=None
        The column with the labels; `None` takes the target of a table model.

    Returns
    -------
    LargeEvaluation
        Up to 131,072 rows, all numbers are those of :func:`~shortlist.tables.evaluate_table`; only
        the interval of M is for the same threshold on new rows. Beyond, so are all counts and M.
        The intervals for a
        capacity are then at most a little wider, and `marginal` is that of a coarser curve.
    """
    target = _target(model, target)
    rows = ModelRows(model, id, segment, target)
    kernel, schema = plan_rows(engine, table, rows, said=_COLUMNS, kept=[])
    profile = _score_profile(rows.classifier)
    with engine.kept_rows(table, kernel, schema) as decided:
        summaries = on_arrays(engine, decided, [*_COLUMNS])
        tally = _sum(summaries(_Tally(profile)), 4 + len(profile.counts))
        _check_classes(tally, target)
        curve = _curve(CutSearch(summaries, "score", "score"), *tally[:2].tolist())
    drift = _drift(engine, table, rows, profile, tally)
    return _evaluation(rows.classifier.capacity, tally, curve, drift)


def _target(model: Any, target: str | None) -> str:
    if target is None and isinstance(model, TableModel):
        return model.schema.target
    if target is None:
        raise TableError("Name the column with the labels: target=...")
    return target


def _score_profile(classifier: Any) -> ColumnProfile:
    scores = np.asarray(classifier.calibration_scores_, dtype=np.float64)
    return ColumnProfile.from_values("score", "numeric", scores)


def _sum(answers: Iterable[Any], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    for answer in answers:
        total += answer
    return total


def _check_classes(tally: NDArray[np.int64], target: str) -> None:
    n_items, n_rare = tally[:2].tolist()
    if n_items == 0:
        raise TableError("The table has no rows.")
    if n_rare in (0, n_items):
        raise TableError(
            f"The column {target!r} has {n_rare:,} rare rows of {n_items:,}. Evaluation needs rare "
            "rows and others. Check the target and its labels."
        )


# --- the curve ---


def _curve(search: CutSearch, n_items: int, n_rare: int) -> CapacityCurve:
    rising = _grid(search, search.totals()[ALL])
    above, found = np.sum(list(search.summaries(_Above(rising))), axis=0)
    # At the largest score nothing lies above; behind the smallest, everything does.
    n_flagged, first = np.unique(np.append(above[::-1], n_items), return_index=True)
    thresholds = np.append(rising[::-1], -np.inf)[first]
    return curve_of_counts(thresholds, n_flagged, np.append(found[::-1], n_rare)[first])


def _grid(search: CutSearch, totals: Totals) -> Doubles:
    """Return the scores at which the curve is cut, rising: all, or those of its points and more."""
    if totals.n <= _MOST_CUTS:
        everything = CountInside(search.score, {ALL: (-np.inf, None)})
        return np.unique(np.concatenate([a[ALL].values for a in search.summaries(everything)]))
    counts = [int(capacity.value) for capacity in spread_capacities(totals.n)]
    places = [0, *(count for count in counts if count < totals.n)]
    marks = np.sort(totals.marks)
    return np.union1d(search.values_at(totals, places), marks[:: 1 + marks.size // _MOST_CUTS])


# --- the answer ---


def _evaluation(
    capacity: Capacity, tally: NDArray[np.int64], curve: CapacityCurve, drift: Drift
) -> LargeEvaluation:
    n_items, n_rare, n_flagged, n_found = tally[:4].tolist()
    return LargeEvaluation(
        n_items=n_items,
        n_rare=n_rare,
        capacity_fraction=capacity.as_fraction(EstimatedShare(n_rare, n_items)),
        flag_rate=n_flagged / n_items,
        flag_rate_interval=proportion_interval(n_flagged, n_items),
        rules=[
            _measured(n_items, n_rare, n_flagged, n_found, capacity),
            _random(n_items, n_rare, capacity),
        ],
        curve=points_at(curve, spread_capacities(n_items)),
        drift=drift,
    )


def _measured(
    n_items: int, n_rare: int, n_flagged: int, n_found: int, capacity: Capacity
) -> RuleResult:
    detection, interval = adjusted_detection_of_counts(
        n_items=n_items, n_rare=n_rare, n_flagged=n_flagged, n_found=n_found, capacity=capacity
    )
    precision = n_found / n_flagged if n_flagged else float("nan")
    of_flags = proportion_interval(n_found, n_flagged)
    return RuleResult("this model", n_flagged, n_found, detection, interval, precision, of_flags)


def _random(n_items: int, n_rare: int, capacity: Capacity) -> RuleResult:
    share = EstimatedShare(n_rare, n_items)
    n_flagged = capacity.max_flags(n_items, share)
    detection = n_flagged / n_items
    return RuleResult("random", n_flagged, detection * n_rare, detection, None, float(share), None)


def _drift(
    engine: Engine, table: Any, rows: ModelRows, profile: ColumnProfile, tally: NDArray[np.int64]
) -> Drift:
    card = rows.model.card if isinstance(rows.model, TableModel) else None
    columns = [] if card is None else _column_drift(engine, table, rows, card.profiles)
    (score,) = compare_columns((profile,), [tuple(tally[4:].tolist())])
    judge_shifts([score, *columns])
    calibrations = rows.classifier.calibrations_
    chances = chances_of_flags(calibrations, *tally[[0, 2]].tolist())
    return Drift(score, columns, verdict_on(score, columns), *chances)


def _column_drift(
    engine: Engine, table: Any, rows: ModelRows, profiles: tuple[ColumnProfile, ...]
) -> list[dict[str, Any]]:
    answers = list(engine.summaries(table, rows.needs, ColumnCounts(rows)))
    counts = [tuple(np.sum(each, axis=0).tolist()) for each in zip(*answers, strict=True)]
    return compare_columns(profiles, counts)
