"""What each class is worth for an item: posteriors, weighted so that sensitivities add up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.steady import lift
from .._core.validation import name_rows

__all__ = ["Valuation", "Values"]

Floats = NDArray[np.float64]


class Values(NamedTuple):
    """The gain of each rare class over leaving an item alone, and the worth of the latter."""

    gains: Floats
    left_alone: Floats


class Valuation(NamedTuple):
    r"""Columns and weights: an item is worth :math:`w_j \eta_j(x) / \pi_j` in rare class j.

    Left alone, it is worth :math:`\max_k \eta_k(x) / \pi_{maj}` over the classes k of the
    majority, or nothing where the majority does not count.
    """

    rare: NDArray[np.intp]
    common: NDArray[np.intp]
    rare_weights: Floats
    common_weight: float

    def __call__(self, posteriors: Any) -> Values:
        """Value items by their posteriors, steadied against noise in the last digits."""
        posteriors = np.asarray(posteriors)
        if posteriors.dtype not in (np.float32, np.float64):
            posteriors = posteriors.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(posteriors).all(axis=1))
        if bad.size:
            raise ValueError(
                f"predict_proba of the model gave NaN or infinity at {name_rows(bad)}. Leave these "
                "items out, or give the model an imputer."
            )
        steady = lift(posteriors).astype(np.float64)
        left_alone = steady[:, self.common].max(axis=1) * self.common_weight
        return Values(steady[:, self.rare] * self.rare_weights - left_alone[:, None], left_alone)
