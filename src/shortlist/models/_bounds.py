"""Sums of products with a bound of their rounding errors, whatever the order of their terms.

A library adds the terms of a product of matrices in an order of its own, which changes with the
number of rows. A sum of n terms has an error of at most about n units in the last place times the
sum of the sizes of its terms, in every order (Higham, Accuracy and Stability of Numerical
Algorithms, section 4.2). The bounds here cover two such errors: that of the sum here, and that of
the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numba import njit
from scipy.special import expit

from .._core.arrays import Doubles
from ._preparation import Unsupported

__all__ = ["UNIT", "Form", "linear_form", "logistic_below", "network_form", "sum_error"]

#: Values, and how far those of the model can be from them.
Form = Callable[[Doubles], tuple[Doubles, Doubles]]
#: The largest relative error of one operation.
UNIT = 2.0**-53
#: More than the error of the functions used here, in units.
_FEW = 8


def sum_error(n_terms: int, sizes: Doubles) -> Doubles:
    """Return how far two sums of the same terms or products can differ; `sizes` adds them up."""
    return 2.02 * (n_terms + 2) * UNIT * sizes


def linear_form(weights: Doubles, shift: float) -> Form:
    """Return a linear form."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)

    def form(X: Doubles) -> tuple[Doubles, Doubles]:
        values, sizes = np.empty(len(X)), np.empty(len(X))
        _add_products(X, weights, shift, values, sizes)
        return values, sum_error(weights.size, sizes)

    return form


@njit(cache=True)
def _add_products(X, weights, shift, values, sizes):
    for i in range(X.shape[0]):
        value, size = shift, abs(shift)
        for k in range(weights.size):
            term = X[i, k] * weights[k]
            value += term
            size += abs(term)
        values[i] = value
        sizes[i] = size


def network_form(coefs: Sequence[Doubles], shifts: Sequence[Doubles], activation: str) -> Form:
    """Return the last layer of a network, before its logistic function."""
    if activation not in _ACTIVATIONS:
        raise Unsupported(f"a network with the activation {activation!r}")
    activate, last = _ACTIVATIONS[activation], len(coefs) - 1
    layers = [
        (np.ascontiguousarray(W, dtype=np.float64), np.asarray(b, dtype=np.float64))
        for W, b in zip(coefs, shifts, strict=True)
    ]

    def form(X: Doubles) -> tuple[Doubles, Doubles]:
        values, errors = X, np.zeros(X.shape)
        for place, (W, b) in enumerate(layers):
            values, errors = _next_layer(values, errors, W, b)
            if place < last:  # none of these functions is steeper than 1
                values = activate(values)
                errors += _FEW * UNIT * np.abs(values)
        return values[:, 0], errors[:, 0]

    return form


@njit(cache=True)
def _next_layer(X, errors, W, b):
    """Return the sums of a layer, and how far those of the model can be from them."""
    values = np.empty((X.shape[0], W.shape[1]))
    bounds = np.empty_like(values)
    rounding = 2.02 * (W.shape[0] + 2) * 2.0**-53
    for i in range(X.shape[0]):
        for j in range(W.shape[1]):
            value, size, moved = b[j], abs(b[j]), 0.0
            for k in range(W.shape[0]):
                value += X[i, k] * W[k, j]
                size += (abs(X[i, k]) + errors[i, k]) * abs(W[k, j])
                moved += errors[i, k] * abs(W[k, j])
            values[i, j] = value
            bounds[i, j] = moved * (1 + 1e-12) + rounding * size
    return values, bounds


_ACTIVATIONS: dict[str, Callable[[Doubles], Doubles]] = {
    "identity": lambda z: z,
    "logistic": expit,
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
}


def logistic_below(low: Doubles, *, second: bool) -> Doubles:
    """Return what a probability is not below; that of the first class is 1 less the other one."""
    if second:
        return expit(low) * (1 - _FEW * UNIT)
    return np.maximum(expit(low) - _FEW * UNIT, 0.0)
