"""What a model finds on a labelled table: M, flag rate, precision and the curve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.binomial import Interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import CapacityCurve, capacity_curve
from ._measure import RuleResult, measure_default, measure_random, measure_rule, proportion
from ._model import TableModel
from ._read import open_source
from ._schema import all_rows

__all__ = [
    "CurvePoint",
    "Evaluation",
    "check_labels",
    "evaluate_table",
    "labelled_curve",
    "points_at",
]

_MOST_POINTS = 100


@dataclass(frozen=True)
class CurvePoint:
    """What the `flagged` highest scores find; `marginal` is what one more flag would add."""

    flagged: int
    fraction: float
    found: int
    detection: float
    detection_interval: Interval
    precision: float | None
    marginal: float


@dataclass(frozen=True)
class Evaluation:
    """What a model did on labelled rows; `capacity_fraction` is the capacity on these rows."""

    n_items: int
    n_rare: int
    capacity_fraction: float
    flag_rate: float
    flag_rate_interval: Interval
    rules: list[RuleResult]
    curve: list[CurvePoint]

    @property
    def model(self) -> RuleResult:
        """The result of the model's own rule, which is the first."""
        return self.rules[0]


def evaluate_table(model: TableModel, path: Path, *, target: str | None = None) -> Evaluation:
    """Measure the calibrated rule of a model on labelled rows that it has not seen.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A labelled table.
    target : str, default=None
        The column with the labels; `None` takes the one the model was fitted with.

    Returns
    -------
    Evaluation
        M, flag rate and precision with exact intervals, and the curve.
    """
    target = model.schema.target if target is None else target
    with open_source(path) as source:
        rows = all_rows(model.schema, source, target=target)
    is_rare = check_labels(rows.is_rare, model, target)
    classifier, capacity = model.classifier, model.classifier.capacity
    decided = classifier.decide(rows.X, ids=rows.ids)
    n_flagged = int(decided.flagged.sum())
    curve = capacity_curve(is_rare, decided.scores, rare_label=True)
    return Evaluation(
        n_items=is_rare.size,
        n_rare=int(is_rare.sum()),
        capacity_fraction=capacity.as_fraction(rare_share(is_rare)),
        flag_rate=n_flagged / is_rare.size,
        flag_rate_interval=proportion(n_flagged, is_rare.size),
        rules=[
            measure_rule("this model", is_rare, decided.flagged, capacity),
            measure_default(model, rows.X, is_rare),
            measure_random(is_rare, capacity),
        ],
        curve=points_at(curve, _spread(is_rare.size)),
    )


def labelled_curve(model: TableModel, rows: Any, target: str) -> CapacityCurve:
    """Return what every capacity would find on labelled rows."""
    is_rare = check_labels(rows.is_rare, model, target)
    scores = model.classifier.score_samples(rows.X)
    return capacity_curve(is_rare, scores, rare_label=True)


def points_at(curve: CapacityCurve, capacities: list[Capacity]) -> list[CurvePoint]:
    """Read the curve at the largest cuts within the given capacities, each cut once."""
    rows = [curve.at(capacity) for capacity in capacities]
    by_cut = {row["n_flagged"]: row for row in rows}
    return [
        CurvePoint(
            flagged=int(row["n_flagged"]),
            fraction=row["fraction"],
            found=int(row["n_found"]),
            detection=row["detection"],
            detection_interval=Interval(row["detection_low"], row["detection_high"]),
            precision=row["precision"] if row["n_flagged"] else None,
            marginal=row["marginal"],
        )
        for row in by_cut.values()
    ]


def _spread(n_items: int) -> list[Capacity]:
    """Return capacities from one row to all, evenly spread on a logarithmic scale."""
    spread = np.geomspace(1, n_items, min(n_items, _MOST_POINTS))
    return [Capacity.count(count) for count in np.unique(spread.round().astype(int)).tolist()]


def check_labels(is_rare: NDArray[np.bool_] | None, model: TableModel, target: str) -> Any:
    """Return labels with which something can be found, or complain."""
    if is_rare is None or not is_rare.any():
        raise TableError(
            f"The column {target!r} has no row with the rare label {model.schema.rare_label!r}, so "
            "that nothing can be found. Check the target, or use a table with rare cases."
        )
    if is_rare.all():
        raise TableError(
            f"The column {target!r} has only one class, {model.schema.rare_label!r}. Evaluation "
            "needs the other cases as well."
        )
    return is_rare
