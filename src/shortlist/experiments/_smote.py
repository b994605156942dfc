"""SMOTE, and the two amounts of it in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PAPER_FACTOR", "appendix_factor", "oversample", "share_after"]

Floats = NDArray[np.floating]

#: Rare cases after SMOTE for each rare case before it, in section 3.7.
PAPER_FACTOR = 4.0
_NEIGHBORS = 5


def oversample(
    X: Floats, y: NDArray[np.int64], *, factor: float, seed: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Add synthetic rare cases (label 1) until there are `factor` times as many as before.

    Each lies between a rare case and one of its five nearest, by distances in the units of the
    data. The paper does not say whether features are standardised before. If they are, SMOTE finds
    more with support vectors (M of 0.06 instead of 0.03 at a share of 0.02), and lies farther from
    a rerun of the study in R.
    """
    n_rare = int(np.count_nonzero(y == 1))
    if n_rare < 2:
        raise ValueError(f"SMOTE joins two rare cases by a line; the sample has {n_rare}.")
    smote = _smote_class()(
        sampling_strategy={1: round(factor * n_rare)},
        k_neighbors=min(_NEIGHBORS, n_rare - 1),
        random_state=seed,
    )
    return smote.fit_resample(X, y)


def appendix_factor(prevalence: float) -> float:
    """Return the factor of appendix A: large where rare cases are few.

    The text gives one point, twenty synthetic cases for each rare one at a share of 0.005, and says
    that the number falls in a curve. The curve is ours: as the inverse root of the share.
    """
    return 1.0 + 20.0 * float(np.sqrt(0.005 / prevalence))


def share_after(prevalence: float, factor: float) -> float:
    """Return the share of rare cases once each has become `factor` of them."""
    return prevalence * factor / (prevalence * factor + 1 - prevalence)


def _smote_class() -> Any:
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError as error:
        raise ImportError(
            "The figures with SMOTE need imbalanced-learn: pip install 'shortlist[smote]'. "
            "The others need nothing more."
        ) from error
    return SMOTE
