"""Complexity of classes of rules."""

from __future__ import annotations

import math

from .._core.validation import check_count


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
    check_count("hidden_units", hidden_units)
    check_count("features", features)
    parameters = hidden_units * features + 2 * hidden_units + 1
    return 2 * parameters * math.log(math.e * parameters)
