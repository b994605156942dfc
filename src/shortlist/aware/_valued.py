"""Values in training: rare items count by what they are worth; did it pay?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._core.arrays import Doubles, Mask
from .._core.work import check_values
from ._evidence import detected

__all__ = ["ValueFound", "compare_value", "rare_weights"]

_CLEAR = 2.0  # standard errors


class ValueFound(NamedTuple):
    """Share of the rare items' value found out of sample, trained with values and without.

    Attributes
    ----------
    weighted, unweighted : float
        The shares.
    error : float
        Standard error of their difference, over the rare items.

    Examples
    --------
    >>> from shortlist.aware import ValueFound
    >>> ValueFound(0.31, 0.24, error=0.02).paid
    True
    """

    weighted: float
    unweighted: float
    error: float

    @property
    def paid(self) -> bool:
        """Whether training with values found more, by over two standard errors."""
        return self.weighted - self.unweighted > _CLEAR * self.error


def rare_weights(values: ArrayLike, is_rare: Mask) -> Doubles:
    """Return weights in proportion to values, 1 on average over rare items, and 1 for all others.

    Examples
    --------
    >>> rare_weights([10, 30, 7], np.array([True, True, False]))
    array([0.5, 1.5, 1. ])
    """
    checked = check_values(values, is_rare.size)
    assert checked is not None
    mean = checked[is_rare].mean()
    if mean == 0:
        raise ValueError("values must be greater than 0 for some of the rare items; got 0 for all.")
    return np.where(is_rare, checked / mean, 1.0)


def compare_value(
    weighted: Doubles, unweighted: Doubles, is_rare: Mask, worth: Doubles, max_flags: int
) -> ValueFound:
    """Compare the value that two scores find within a number of flags."""
    own = worth[is_rare]
    found = [detected(scores, is_rare, max_flags) for scores in (weighted, unweighted)]
    total = float(own.sum()) or 1.0
    gains = own * (found[0] - found[1])
    error = float(np.sqrt(gains.size) * gains.std(ddof=1)) if gains.size > 1 else np.inf
    shares = [float((own * chances).sum()) / total for chances in found]
    return ValueFound(shares[0], shares[1], error / total)
