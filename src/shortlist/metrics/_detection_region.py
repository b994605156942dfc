"""Bounds of the detection at a capacity, where the threshold is not fixed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats
from .._core.intervals import clopper_pearson_lower, clopper_pearson_upper

# How the error of each end is divided: detection, false alarms, prevalence. More for the detection,
# because rare items are the fewest.
_OF_DETECTION, _OF_FALSE_ALARMS, _OF_PREVALENCE = 0.5, 0.25, 0.25
# Up to this count every bound is computed. Beyond it, bounds are computed this often in a standard
# deviation of the count, and the next worse one is taken.
_EVERY_COUNT, _PER_DEVIATION = 20_000, 16


class DetectionRegion(NamedTuple):
    r"""Which detection rates agree with a labelled sample, at any capacity.

    The true detection at the capacity :math:`c` is the sensitivity :math:`d` of the threshold that
    flags the share :math:`c` of the population. That threshold is unknown, but not random. Among
    the :math:`r` rare and :math:`m` other items of the sample, the numbers above it are therefore
    binomial: :math:`F \sim B(r, d)` and :math:`H \sim B(m, e)` with
    :math:`\pi d + (1 - \pi) e = c`. The bounds of Clopper and Pearson hold for :math:`d`, for
    :math:`e` and for the prevalence :math:`\pi`, each with its part of the error.

    The point :math:`(F, H)` is unknown, but it lies on the path of the sample: the rare and other
    items found above each threshold. A value of :math:`d` is excluded if it disagrees with every
    point of the path. Along the path, the lower bound :math:`a` of the detection and the upper
    bound :math:`b` of the false alarms both rise, so the smallest :math:`d` that is not excluded,

    .. math:: \min \max\{a, (c - (1 - \pi) b) / \pi\},

    lies where :math:`\pi a + (1 - \pi) b` reaches :math:`c`. The upper end is the same with the
    other bounds. For a given truth only one end of the interval of :math:`\pi` can do harm, and
    the worse one is taken.

    The path crosses a block of tied scores somewhere between two corners; the worse corner is
    taken. This covers any order of the block that does not depend on the labels.

    Attributes
    ----------
    detection_low, alarms_high : ndarray
        Bounds at the points of the path, for the lower end.
    detection_high, alarms_low : ndarray
        The same for the upper end.
    prevalences : tuple of float
        Ends of the interval of the prevalence.
    """

    detection_low: Floats
    alarms_high: Floats
    detection_high: Floats
    alarms_low: Floats
    prevalences: tuple[float, float]

    @classmethod
    def of_path(
        cls, n_flagged: NDArray[np.intp], n_found: NDArray[np.intp], *, error: float
    ) -> DetectionRegion:
        """Make it from all cuts, from no flags to everything flagged; `error` is for both ends."""
        n_items, n_rare = int(n_flagged[-1]), int(n_found[-1])
        n_alarms = n_flagged - n_found
        n_common, tail = n_items - n_rare, error / 2
        detection, alarms = _OF_DETECTION * tail, _OF_FALSE_ALARMS * tail
        prevalence = _OF_PREVALENCE * tail
        return cls(
            detection_low=_lower(n_found, n_rare, error=detection),
            alarms_high=_upper(_next(n_alarms), n_common, error=alarms),
            detection_high=_upper(_next(n_found), n_rare, error=detection),
            alarms_low=_lower(n_alarms, n_common, error=alarms),
            prevalences=(
                float(clopper_pearson_lower(n_rare, n_items, error=prevalence)),
                float(clopper_pearson_upper(n_rare, n_items, error=prevalence)),
            ),
        )

    def ends_at(self, flagged: Any, *, is_multiple: bool = False) -> tuple[Floats, Floats]:
        """Return both ends of the detection when a share of the items is flagged.

        A multiple of the prevalence of the population is a share at each end of its interval.
        """
        units = [share if is_multiple else 1.0 for share in self.prevalences]
        given = [
            (np.minimum(np.multiply(flagged, unit), 1.0), share)
            for unit, share in zip(units, self.prevalences, strict=True)
        ]
        low = [self._low(c, prevalence) for c, prevalence in given]
        high = [self._high(c, prevalence) for c, prevalence in given]
        return np.clip(np.min(low, axis=0), 0, 1), np.clip(np.max(high, axis=0), 0, 1)

    def _place(self, a: Floats, b: Floats, c: Floats, prevalence: float) -> NDArray[np.intp]:
        return np.searchsorted(prevalence * a + (1 - prevalence) * b, c)

    def _low(self, c: Floats, prevalence: float) -> Floats:
        a, b = self.detection_low, self.alarms_high
        place = self._place(a, b, c, prevalence)
        after = np.append(a, 1.0)[place]
        before = np.where(place > 0, (c - (1 - prevalence) * b[place - 1]) / prevalence, 1.0)
        return np.minimum(after, before)

    def _high(self, c: Floats, prevalence: float) -> Floats:
        a, b = self.detection_high, self.alarms_low
        place = self._place(a, b, c, prevalence)
        before = np.where(place > 0, a[place - 1], 0.0)
        after = (c - (1 - prevalence) * np.append(b, 1.0)[place]) / prevalence
        return np.maximum(before, after)


def _next(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the counts of the next cut; the last cut has none but itself."""
    return np.append(counts[1:], counts[-1])


def _lower(counts: NDArray[np.intp], trials: int, *, error: float) -> Floats:
    """Return lower bounds of proportions, many of them for the same trials."""
    grid, bounds = _bounds(clopper_pearson_lower, trials, error)
    return bounds[np.searchsorted(grid, counts, side="right") - 1]


def _upper(counts: NDArray[np.intp], trials: int, *, error: float) -> Floats:
    grid, bounds = _bounds(clopper_pearson_upper, trials, error)
    return bounds[np.searchsorted(grid, counts)]


@lru_cache(maxsize=8)
def _bounds(bound: Any, trials: int, error: float) -> tuple[NDArray[np.intp], Floats]:
    grid = counts_with_bounds(trials)
    return grid, bound(grid, trials, error=error)


def counts_with_bounds(trials: int) -> NDArray[np.intp]:
    """Return the counts for which bounds are computed, from 0 to all trials."""
    if trials <= _EVERY_COUNT:
        return np.arange(trials + 1)
    roots = np.arange(_EVERY_COUNT**0.5, trials**0.5, 0.5 / _PER_DEVIATION)
    beyond = np.append((roots**2).astype(np.intp), trials)
    return np.union1d(np.arange(_EVERY_COUNT + 1), beyond)
