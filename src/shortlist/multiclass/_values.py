"""Items as the joint rule sees them: what each class is worth, segments and tie keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._core.arrays import Floats, Rows
from .._core.ranking import lift
from .._core.validation import check_positive, name_rows

_DOUBLE = np.dtype(np.float64)


class Valuation(NamedTuple):
    r"""Columns and weights: an item is worth :math:`w_j \eta_j(x) / \pi_j` in rare class j.

    Left alone, it is worth :math:`\max_k \eta_k(x) / \pi_{maj}` over the classes k of the
    majority, or nothing where the majority does not count.
    """

    rare: Rows
    common: Rows
    rare_weights: Floats
    common_weight: float

    @classmethod
    def from_counts(
        cls, counts: Mapping[Any, int], rare_labels: list[Any], *, weights: Any, majority: bool
    ) -> Self:
        """Weight each label by its share of the items; `counts` are those of all labels."""
        known = list(counts)
        rare = np.array([known.index(label) for label in rare_labels])
        common = np.setdiff1d(np.arange(len(known)), rare)
        shares = np.array(list(counts.values())) / sum(counts.values())
        common_weight = 1 / shares[common].sum() if majority and shares[common].any() else 0.0
        return cls(rare, common, _check_weights(weights, rare_labels) / shares[rare], common_weight)

    def sample(
        self,
        posteriors: Any,
        segments: Rows,
        keys: Floats | None = None,
        *,
        keyed_by_ids: bool = False,
    ) -> JointSample:
        """Value items by their posteriors, after removing noise in the last digits."""
        posteriors = np.asarray(posteriors)
        if posteriors.dtype not in (np.float32, np.float64):
            posteriors = posteriors.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(posteriors).all(axis=1))
        if bad.size:
            raise ValueError(
                f"predict_proba of the model gave NaN or infinity at {name_rows(bad)}. Leave these "
                "items out, or add an imputer to the model."
            )
        steady = lift(posteriors).astype(np.float64)
        left_alone = steady[:, self.common].max(axis=1) * self.common_weight
        gains = steady[:, self.rare] * self.rare_weights - left_alone[:, np.newaxis]
        return JointSample(gains, segments, keys, keyed_by_ids, posteriors.dtype)

    def classes_of(self, columns: Rows, posteriors: Floats) -> Rows:
        """Return the number of the class that each item gets: rare by its column, or common."""
        codes = self.common[posteriors[:, self.common].argmax(axis=1)]
        flagged = np.flatnonzero(columns)
        codes[flagged] = self.rare[columns[flagged] - 1]
        return codes


def _check_weights(weights: Mapping[Any, Any] | None, rare_labels: list[Any]) -> Floats:
    checked = dict.fromkeys(rare_labels, 1.0)
    for label, weight in (weights or {}).items():
        if label not in checked:
            raise ValueError(
                f"class_weights names {label!r}, which has no capacity; the labels with one "
                f"are {rare_labels}. The majority weighs 1, or 0 with majority=False."
            )
        checked[label] = check_positive(f"class_weights[{label!r}]", weight)
    return np.array(list(checked.values()))


@dataclass(frozen=True)
class JointSample:
    """Items to calibrate on, or to decide about.

    Attributes
    ----------
    gains : ndarray of shape (n_items, m)
        The gain of each rare class over leaving the item alone.
    segments : ndarray of int, shape (n_items,)
        The number of each item's segment; 0 without segments.
    keys : ndarray of shape (n_items,), or None
        Tie keys between 0 and 1; `None` leaves ties alone.
    keyed_by_ids : bool
        Whether the keys come from ids, rather than from the items' own values.
    precision : dtype
        The type of the posteriors that the gains come from.
    """

    gains: Floats
    segments: Rows
    keys: Floats | None = None
    keyed_by_ids: bool = False
    precision: np.dtype[Any] = _DOUBLE

    def __len__(self) -> int:
        return len(self.gains)

    def sizes(self, n_limits: int) -> list[int]:
        """Return how many items each limit applies to: of classes, of segments, of the total."""
        n, n_classes = self.gains.shape
        in_segment = np.bincount(self.segments, minlength=n_limits - n_classes - 1)
        return [*[n] * n_classes, *in_segment.tolist(), n]

    def take(self, rows: Rows) -> JointSample:
        """Return the items at these positions."""
        return replace(
            self,
            gains=self.gains[rows],
            segments=self.segments[rows],
            keys=None if self.keys is None else self.keys[rows],
        )

    def halves(self, rng: np.random.Generator) -> tuple[JointSample, JointSample]:
        """Divide the items at random; the second half is never empty."""
        shuffled, half = rng.permutation(len(self)), len(self) // 2
        return self.take(shuffled[:half]), self.take(shuffled[half:])
