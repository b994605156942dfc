"""SMOTE, and the two amounts of it in the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.smote import oversample as _oversample

__all__ = ["PAPER_FACTOR", "appendix_factor", "oversample", "share_after"]

Floats = NDArray[np.floating]

#: Rare cases after SMOTE for each rare case before it, in section 3.7.
PAPER_FACTOR = 4.0


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
    return _oversample(X, y, rare_label=1, wanted=round(factor * n_rare), seed=seed)


def appendix_factor(prevalence: float) -> float:
    """Return the factor of appendix A: large where rare cases are few.

    The text gives one point, twenty synthetic cases for each rare one at a share of 0.005, and says
    that the number falls in a curve. The curve is ours: as the inverse root of the share.
    """
    return 1.0 + 20.0 * float(np.sqrt(0.005 / prevalence))


def share_after(prevalence: float, factor: float) -> float:
    """Return the share of rare cases once each has become `factor` of them."""
    return prevalence * factor / (prevalence * factor + 1 - prevalence)
