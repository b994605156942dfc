"""Classes with known densities in any number of dimensions, to compare rules with the best one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from .._core.arrays import Floats
from .._core.validation import check_count, check_number


class KnownDensities:
    r"""Classes whose densities and shares are known, on the line or in many dimensions.

    The posterior of the rare class is the score of the optimal rule: it rises with the likelihood
    ratio :math:`f_0 / \sum_{j \neq 0} \pi_j f_j`. A threshold that is calibrated on many simulated
    items is therefore the optimal rule, up to a sampling error that its interval bounds. For
    several rare classes, :func:`~shortlist.assign` finds the optimum of such
    a sample.

    Parameters
    ----------
    densities : dict of label to SciPy frozen distribution
        Needs `logpdf` and `rvs`: univariate, or multivariate such as
        `scipy.stats.multivariate_normal`.
    shares : dict of label to float
        Share of each class among all items; they add up to 1.

    Examples
    --------
    Rare items are a small cloud inside a large one, in two dimensions:

    >>> from scipy import stats
    >>> from shortlist import Capacity, calibrate_threshold
    >>> from shortlist.theory import KnownDensities
    >>> known = KnownDensities(
    ...     {0: stats.multivariate_normal([1, 0], 0.1), 1: stats.multivariate_normal([0, 0])},
    ...     shares={0: 0.02, 1: 0.98},
    ... )
    >>> X, y = known.sample(100_000, random_state=0)
    >>> best = calibrate_threshold(known.posterior(X)[:, 0], Capacity.fraction(0.04))
    >>> found = best.flag(known.posterior(X)[:, 0])[y == 0].mean()
    >>> print(f"{found:.2f} found, {best.interval.low:.4f} to {best.interval.high:.4f} flagged")
    0.44 found, 0.0388 to 0.0412 flagged
    """

    def __init__(self, densities: Mapping[Any, Any], shares: Mapping[Any, float]) -> None:
        if set(densities) != set(shares):
            raise ValueError(
                "densities and shares must name the same classes; got "
                f"{list(densities)} and {list(shares)}."
            )
        self.classes = np.array(list(densities))
        self._densities = list(densities.values())
        self._shares = np.array([check_number("shares", shares[label]) for label in densities])
        if np.any(self._shares <= 0) or not np.isclose(self._shares.sum(), 1):
            raise ValueError(f"shares must be positive and add up to 1; got {dict(shares)}.")

    def posterior(self, X: ArrayLike) -> Floats:
        """Return the probability of each class at each item, in the order of `classes`."""
        X = np.asarray(X, dtype=np.float64)
        logs = np.column_stack([density.logpdf(X) for density in self._densities])
        # Where no class has a density, the shares are all that is known.
        logs = np.where(np.isneginf(logs).all(axis=1, keepdims=True), 0.0, logs)
        return np.asarray(softmax(logs + np.log(self._shares), axis=1))

    def sample(self, n: int, random_state: int | None = None) -> tuple[Floats, NDArray[Any]]:
        """Draw n independent items, and return them with their labels."""
        rng = np.random.default_rng(random_state)
        places = rng.choice(len(self._shares), size=check_count("n", n), p=self._shares)
        drawn = [density.rvs(size=n, random_state=rng) for density in self._densities]
        return np.stack(drawn)[places, np.arange(n)], self.classes[places]
