"""Why a row has a high score: the columns that raised it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrow import pd
from .._core.formatting import number
from .columns import MISSING_CATEGORY, date_text
from .model import TableModel

_MOST_REASONS = 3
_AT_ONCE = 4_096  # changed rows that are scored together
_SLIGHTEST = 0.01  # of the largest effect in the row; a smaller effect is not a reason

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Reason:
    """A column that raised a score, its value, and how far the usual value would lower it."""

    column: str
    value: Any
    effect: float

    @property
    def in_words(self) -> str:
        """The column, its value, and the effect, such as ``amount = 250 (+0.31)``."""
        return f"{self.column} = {value_in_words(self.value)} (+{number(self.effect, 2)})"


def reasons_for(
    model: TableModel, X: Any, *, on_progress: Progress | None = None
) -> list[list[Reason]]:
    """Measure for each column how much the score falls if it takes its usual value.

    Columns are changed one at a time, in these rows only, and only where they differ from the
    usual value. Many such changes are scored together. This works for every learner, and describes
    the model itself. Columns that can replace each other may each show a small effect.
    """
    if not len(X):
        return []
    features, scores = model.schema.features, model.classifier.score_samples(X)
    usual = [model.reference[feature.name] for feature in features]
    differs = [(X[each.name] != value) for each, value in zip(features, usual, strict=True)]
    columns, rows = np.nonzero(np.array(differs))
    effects = np.zeros((len(X), len(features)))
    for start in range(0, rows.size, _AT_ONCE):
        if on_progress is not None:
            on_progress("reasons", start, rows.size)
        own, of = rows[start : start + _AT_ONCE], columns[start : start + _AT_ONCE]
        changed = {name: X[name].array.take(own) for name in X.columns}
        for column in np.unique(of).tolist():
            changed[features[column].name][of == column] = usual[column]
        effects[own, of] = scores[own] - model.classifier.score_samples(pd.DataFrame(changed))
    largest = np.argsort(-effects, axis=1, kind="stable")[:, :_MOST_REASONS]
    return [
        [
            Reason(
                features[column].name,
                _shown(X.iloc[row, column], features[column].kind),
                float(effects[row, column]),
            )
            for column in largest[row].tolist()
            if effects[row, column] > _SLIGHTEST * effects[row].max(initial=0)
        ]
        for row in range(len(X))
    ]


def reasons_in_words(reasons: list[Reason]) -> str:
    """Return the reasons for a score as one text."""
    return "; ".join(reason.in_words for reason in reasons)


def _shown(value: Any, kind: str) -> Any:
    """Return a value in the form of the table: a date as a date, None if it is missing."""
    if kind == "categorical":
        return None if value == MISSING_CATEGORY else value
    if value != value:
        return None
    if kind == "date":
        return date_text(value)
    return bool(value) if kind == "boolean" else float(value)


def value_in_words(value: Any) -> str:
    """Return a value as people read it."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return number(value, 8) if isinstance(value, float) else str(value)
