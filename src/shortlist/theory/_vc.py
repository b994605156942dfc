"""Complexity of classes of rules."""

from __future__ import annotations

import math

__all__ = ["vc_dimension_bound"]


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
    for name, value in {"hidden_units": hidden_units, "features": features}.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    parameters = hidden_units * features + 2 * hidden_units + 1
    return 2 * parameters * math.log(math.e * parameters)
