"""Classes with known densities to compare rules with the best one, and bounds for samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from .._core.arrays import Floats
from .._core.labels import find_rare
from .._core.validation import check_confidence, check_count, check_number, check_same_length


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


# --- losses and bounds ---


def empirical_loss(y_true: ArrayLike, y_pred: ArrayLike, *, rare_label: Any = None) -> float:
    r"""Return the paper's loss on a sample: one less the share of items both rare and flagged.

    For rules within the same capacity, a lower loss means more rare items found. It has no penalty
    for flagging too much, which the metric M has.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_items,)
        True and predicted labels.
    rare_label : label, default=None
        The rare label; `None` uses the rarest in `y_true`.

    Returns
    -------
    float
        :math:`\hat L_n(g) = 1 - \frac{1}{n} \sum_j 1\{g(X_j) = 0, Y_j = 0\}`.

    Examples
    --------
    One of two rare items among ten is flagged:

    >>> from shortlist.theory import empirical_loss
    >>> empirical_loss([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    0.9
    """
    check_same_length(y_true=y_true, y_pred=y_pred)
    is_rare, rare_label = find_rare(y_true, rare_label)
    return 1 - float(np.mean(is_rare & (np.asarray(y_pred) == rare_label)))


def vc_dimension_bound(hidden_units: int, features: int) -> float:
    r"""Bound the VC dimension of networks with one hidden layer of threshold units.

    The bound also holds for the networks that respect a capacity: a smaller class cannot shatter
    more points (Theorem 1 of the paper).

    Parameters
    ----------
    hidden_units : int
        Number of hidden units :math:`k`.
    features : int
        Number of inputs :math:`d`.

    Returns
    -------
    float
        :math:`2(kd + 2k + 1)\log(e(kd + 2k + 1))`, after Baum and Haussler (1989).

    Examples
    --------
    >>> from shortlist.theory import vc_dimension_bound
    >>> round(vc_dimension_bound(hidden_units=5, features=23), 1)
    1470.7
    """
    parameters = _count_parameters(hidden_units, features)
    return 2 * parameters * math.log(math.e * parameters)


def log_shatter_bound(n: int, hidden_units: int, features: int) -> float:
    r"""Bound the logarithm of how many ways threshold networks can label `n` items.

    Parameters
    ----------
    n : int
        Number of items.
    hidden_units : int
        Number of hidden units :math:`k`.
    features : int
        Number of inputs :math:`d`.

    Returns
    -------
    float
        :math:`(kd + 2k + 1) \log(ne)`, the logarithm of the shatter bound in section 3.6 of the
        paper, or :math:`n \log 2` where that is less.

    Examples
    --------
    >>> from shortlist.theory import log_shatter_bound
    >>> round(log_shatter_bound(8_000, hidden_units=5, features=23), 1)
    1258.4
    """
    parameters = _count_parameters(hidden_units, features)
    return min(parameters * math.log(check_count("n", n) * math.e), n * math.log(2))


def deviation_bound(n: int, *, log_shatter: float | None = None, confidence: float = 0.95) -> float:
    r"""Bound how far flag rate and detection on a sample can be from the truth, for all rules.

    With this confidence, every rule of the class at once has a true flag rate
    :math:`P(g = 0)` and a true loss :math:`L(g) = 1 - P(g = 0, Y = 0)` within
    :math:`\varepsilon` of those on a sample of `n` items. So the best rule *on the sample* among
    those that flag at most :math:`c` *of the sample* flags at most :math:`c + \varepsilon` of all
    items, and loses at most :math:`2\varepsilon` to the best rule that flags at most
    :math:`c - \varepsilon` of all items. The class is constrained by what can be observed, where
    the paper's Corollary 1 constrains it by the unknown :math:`P`.

    Parameters
    ----------
    n : int
        Number of items in the sample.
    log_shatter : float, default=None
        Logarithm of the shatter coefficient of the class at `n`, such as
        :func:`log_shatter_bound`. `None` is for thresholds of one score that was fixed beforehand.
    confidence : float, default=0.95
        Probability with which the bound holds, for both rates together.

    Returns
    -------
    float
        :math:`\varepsilon`, at most 1: the inequality of Vapnik and Chervonenkis,
        :math:`\sqrt{32(\log S + \log(16 / \delta)) / n}`, or for one score that of
        Dvoretzky, Kiefer, Wolfowitz and Massart, :math:`\sqrt{\log(4 / \delta) / (2n)}`.

    Examples
    --------
    >>> from shortlist.theory import deviation_bound, log_shatter_bound
    >>> round(deviation_bound(8_000), 4)
    0.0165
    >>> shatter = log_shatter_bound(10**7, hidden_units=2, features=3)
    >>> round(deviation_bound(10**7, log_shatter=shatter), 4)
    0.0249
    """
    n, error = check_count("n", n), 1 - check_confidence(confidence)
    if log_shatter is None:
        return min(math.sqrt(math.log(4 / error) / (2 * n)), 1.0)
    return min(math.sqrt(32 * (log_shatter + math.log(16 / error)) / n), 1.0)


def _count_parameters(hidden_units: int, features: int) -> int:
    hidden_units = check_count("hidden_units", hidden_units)
    return hidden_units * check_count("features", features) + 2 * hidden_units + 1
