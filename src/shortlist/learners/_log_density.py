"""Logarithms of kernel density estimates, without underflow and without visiting every point.

Training points are sorted into small boxes. For each query, boxes are visited from the nearest on,
until all that is left together could not change the sum by one part in 10^12.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["DENSITY_KERNELS", "LogDensity"]

#: Names of the product kernels of :class:`KernelDensityClassifier`.
DENSITY_KERNELS = ("gaussian", "laplace", "epanechnikov")
_GAUSSIAN, _LAPLACE, _EPANECHNIKOV = range(len(DENSITY_KERNELS))
_LOG_NORMALISER = {
    "gaussian": -0.5 * math.log(2 * math.pi),
    "laplace": -math.log(2),
    "epanechnikov": math.log(0.75),
}
_BOX = 32
_LOG_PRECISION = 28.0  # exp(-28) is below 1e-12
_OUTSIDE = -1e4  # below the logarithm of any density inside the support of a compact kernel

Floats = NDArray[np.float64]


class LogDensity:
    """Kernel density estimate with a product kernel and a bandwidth for each feature.

    Outside of the support of a compact kernel the density is zero. There the Gaussian kernel takes
    its place, far below, so that points outside of all supports are still ranked.
    """

    def __init__(self, X: Floats, bandwidth: Floats, *, kernel: str) -> None:
        self.kernel, self.bandwidth = kernel, bandwidth
        points = X / bandwidth
        points = points[_box_order(points)]
        starts = np.arange(0, len(points), _BOX)
        self._low = np.minimum.reduceat(points, starts, axis=0)
        self._high = np.maximum.reduceat(points, starts, axis=0)
        # The last box is filled up with points that are infinitely far away.
        padded = np.full((starts.size * _BOX, X.shape[1]), np.inf)
        padded[: len(points)] = points
        self._boxes = np.ascontiguousarray(padded.reshape(-1, _BOX, X.shape[1]).swapaxes(1, 2))
        self._log_n = math.log(len(points))
        self._log_volume = float(np.log(bandwidth).sum()) + self._log_n

    def __call__(self, X: Floats) -> Floats:
        """Return the logarithm of the density at each row; always finite."""
        queries = np.ascontiguousarray(X / self.bandwidth)
        logs = self._sum(queries, self.kernel)
        empty = np.flatnonzero(np.isneginf(logs))
        if empty.size:
            logs[empty] = self._sum(queries[empty], "gaussian") + _OUTSIDE
        return logs

    def _sum(self, queries: Floats, kernel: str) -> Floats:
        code, n_features = DENSITY_KERNELS.index(kernel), queries.shape[1]
        logs = np.empty(len(queries))
        _log_sums(queries, self._boxes, self._low, self._high, code, self._log_n, logs)
        return logs + n_features * _LOG_NORMALISER[kernel] - self._log_volume


def _box_order(points: Floats) -> NDArray[np.intp]:
    """Order points so that runs of `_BOX` of them lie close together: halve the widest side."""
    order = np.arange(len(points))
    pending = [(0, len(points))]
    while pending:
        start, stop = pending.pop()
        if stop - start <= _BOX:
            continue
        rows = order[start:stop]
        widest = int(np.argmax(np.ptp(points[rows], axis=0)))
        # Whole boxes on the left, so that the runs of the final order are the leaves.
        middle = _BOX * max(1, round((stop - start) / 2 / _BOX))
        order[start:stop] = rows[np.argpartition(points[rows, widest], middle - 1)]
        pending += [(start, start + middle), (start + middle, stop)]
    return order


@njit(cache=True, nogil=True)
def _exp(x):
    """Return exp(x) for x in [-700, 0], in steps that the compiler does for many x at once."""
    # The nearest whole k to x / log 2 appears in the last bits of a number with a large exponent.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    series = 1.0 / 479001600.0
    for factorial in (39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0):
        series = series * r + 1.0 / factorial
    series = ((series * r + 0.5) * r + 1.0) * r + 1.0
    bits = (np.float64(shifted).view(np.int64) + 1023) << 52
    return series * np.int64(bits).view(np.float64)


@njit(cache=True, nogil=True)
def _bound(kernel, query, low, high):
    """Return an upper bound of the log kernel over a box: its value at the nearest place."""
    total, product = 0.0, 1.0
    for j in range(query.size):
        gap = max(low[j] - query[j], query[j] - high[j], 0.0)
        if kernel == _GAUSSIAN:
            total -= 0.5 * gap * gap
        elif kernel == _LAPLACE:
            total -= gap
        else:
            product *= max(1.0 - gap * gap, 0.0)
    if kernel == _EPANECHNIKOV:
        return np.log(product) if product > 0 else -np.inf
    return total


@njit(cache=True, nogil=True)
def _terms(kernel, query, box, terms):
    """Fill in the log kernel at each point of a box, up to its constant."""
    terms[:] = 0.0
    for j in range(query.size):
        for lane in range(_BOX):
            gap = abs(query[j] - box[j, lane])
            terms[lane] -= 0.5 * gap * gap if kernel == _GAUSSIAN else gap


@njit(cache=True, nogil=True)
def _products(query, box, products):
    """Fill in the compact kernel itself at each point of a box."""
    products[:] = 1.0
    for j in range(query.size):
        for lane in range(_BOX):
            gap = query[j] - box[j, lane]
            products[lane] *= max(1.0 - gap * gap, 0.0)


@njit(cache=True, nogil=True)
def _log_sums(queries, boxes, low, high, kernel, log_n, logs):
    n_boxes = len(boxes)
    bounds, terms = np.empty(n_boxes), np.empty(_BOX)
    for i in range(len(queries)):
        query, best = queries[i], 0
        for box in range(n_boxes):
            bounds[box] = _bound(kernel, query, low[box], high[box])
            if bounds[box] > bounds[best]:
                best = box
        # The nearest box comes first: its largest term tells what is negligible.
        largest, total = -np.inf, 0.0
        for step in range(n_boxes + 1):
            box = best if step == 0 else step - 1
            seen = step > 0 and box == best
            if seen or bounds[box] == -np.inf or bounds[box] < largest - log_n - _LOG_PRECISION:
                continue
            if kernel == _EPANECHNIKOV:
                _products(query, boxes[box], terms)
                total += terms.sum()
                continue
            _terms(kernel, query, boxes[box], terms)
            if terms.max() > largest:
                total *= np.exp(largest - terms.max())
                largest = terms.max()
            for lane in range(_BOX):
                terms[lane] = _exp(max(terms[lane] - largest, -700.0))
            total += terms.sum()
        start = 0.0 if kernel == _EPANECHNIKOV else largest
        logs[i] = start + np.log(total) if total > 0 else -np.inf
