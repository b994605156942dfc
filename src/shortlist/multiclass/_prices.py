"""Prices and cuts for all capacities together: how they decide, and how a sample sets them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import Floats, Ints, Rows
from .._core.hashing import hash_ids
from .._core.ranking import cut_after
from .._core.validation import warn_user
from ..assignment import FixedPoint, solve_integers
from ..exceptions import InsufficientCalibrationWarning
from ..thresholds import confident_k, confident_sample_size, plug_in_k
from ._capacities import Ratios
from ._values import JointSample

__all__ = ["NEVER", "Prices", "confident_prices", "plug_in_prices"]

#: A cut that no surplus exceeds.
NEVER = 2**62
# Hashed ties differ by up to this many units: about 1e-7 of the largest value.
_TIE_UNITS = 2.0**23


class _Margins(NamedTuple):
    """The best class of each item, its lead over all other columns, and over leaving it alone."""

    best: Rows
    lead: Ints
    surplus: Ints


@dataclass(frozen=True)
class Prices:
    """Prices and cuts, in units of a fixed point.

    An item gets its best class if that class leads by more than its cut, and if the surplus of the
    item exceeds the cuts of its segment and of the total. Cuts are never negative. Therefore an
    item whose two best columns tie gets neither.
    """

    scale: FixedPoint
    class_prices: Ints
    segment_prices: Ints
    total_price: int
    class_cuts: Ints
    segment_cuts: Ints
    total_cut: int

    def margins(self, units: Ints, segments: Rows) -> _Margins:
        """Compare the classes after prices; a class that may never be flagged does not compete."""
        net = units - self.class_prices - self.segment_prices[segments, np.newaxis]
        net -= self.total_price
        net[:, self.class_cuts == NEVER] = -NEVER
        best = net.argmax(axis=1)
        everyone = np.arange(len(net))
        surplus = net[everyone, best]
        net[everyone, best] = 0  # "leave it" takes the place of the best
        return _Margins(best, surplus - net.max(axis=1), surplus)

    def choose(self, items: JointSample) -> tuple[Rows, Ints]:
        """Return the column of each item (0 to leave it, j + 1 for class j), and its surplus."""
        units = _to_units(items.gains, self.scale, items.keys)
        best, lead, surplus = self.margins(units, items.segments)
        flagged = (lead > self.class_cuts[best]) & (surplus > self.total_cut)
        flagged &= surplus > self.segment_cuts[items.segments]
        return np.where(flagged, best + 1, 0), surplus


def _to_units(gains: Floats, scale: FixedPoint, keys: Floats | None) -> Ints:
    """Round gains to units; tie keys make equal gains differ a little, by class and key."""
    units = scale.to_integers(gains)
    if keys is None:
        return units
    words = np.rint(keys * 2.0**53).astype(np.int64)
    for j in range(units.shape[1]):
        units[:, j] += np.rint((hash_ids(words, seed=j) - 0.5) * _TIE_UNITS).astype(np.int64)
    return units


def plug_in_prices(sample: JointSample, ratios: Ratios) -> Prices:
    """Keep all capacities on the sample itself, at the lowest prices of its best assignment."""
    scale = FixedPoint.for_gains(sample.gains)
    units = _to_units(sample.gains, scale, sample.keys)
    in_segment = np.bincount(sample.segments, minlength=len(ratios.segments))
    solution = solve_integers(
        units,
        class_limits=_whole(ratios.classes, len(sample)),
        segment_of=sample.segments,
        segment_limits=_whole(ratios.segments, in_segment),
        total=int(_whole([ratios.total], len(sample))[0]),
    )
    prices = Prices(
        scale,
        solution.class_prices,
        solution.segment_prices,
        solution.total_price,
        class_cuts=_open_or_never(ratios.classes),
        segment_cuts=_open_or_never(ratios.segments),
        total_cut=int(_open_or_never([ratios.total])[0]),
    )
    return _price_empty_segments(prices, units, in_segment, ratios)


def _whole(ratios: list[Fraction | None], sizes: Any) -> Ints:
    sizes = np.broadcast_to(sizes, len(ratios)).tolist()
    limits = [
        size if ratio is None else math.floor(ratio * size)
        for ratio, size in zip(ratios, sizes, strict=True)
    ]
    return np.array(limits, dtype=np.int64)


def _open_or_never(ratios: list[Fraction | None]) -> Ints:
    """Return cuts of 0, or `NEVER` where the capacity is zero."""
    return np.array([NEVER if ratio == 0 else 0 for ratio in ratios], dtype=np.int64)


def _price_empty_segments(prices: Prices, units: Ints, in_segment: Rows, ratios: Ratios) -> Prices:
    """Price a segment without calibration items as if all items belonged to it."""
    segment_prices = prices.segment_prices.copy()
    for s in np.flatnonzero(in_segment == 0):
        ratio = ratios.segments[s]
        if ratio is not None and ratio > 0:
            surplus = prices.margins(units, np.full(len(units), s)).surplus
            segment_prices[s] = _cut(surplus, plug_in_k(len(units), ratio))
    return replace(prices, segment_prices=segment_prices)


def _cut(values: Ints, k: int) -> int:
    """Return the (k + 1)-th largest value, but at least 0; units are exact as floats."""
    cut = cut_after(values.astype(np.float64), k).value
    return NEVER if cut == np.inf else max(0, int(cut)) if cut > 0 else 0


def confident_prices(
    sample: JointSample,
    ratios: Ratios,
    *,
    error: float,
    rng: np.random.Generator,
    names: dict[str, list[str]],
) -> Prices:
    """Keep all capacities at once, except with probability `error`.

    One half of the sample sets the prices. The other half is new to these prices. Therefore the
    leads of its items that would get class j are scores like any others, and a cut at an order
    statistic keeps the flag rate of the class. Surpluses do the same for segments and the total.
    The limits share the error (Bonferroni). Items that do not exceed a cut are left alone.
    """
    shuffled = rng.permutation(len(sample))
    half = len(sample) // 2
    unseen = sample.take(shuffled[half:])
    share = error / max(ratios.n_limits, 1)
    # A class with too few items for its guarantee must not compete, neither here nor later.
    prices = plug_in_prices(
        sample.take(shuffled[:half]), _without_hopeless(ratios, len(unseen), error=share)
    )
    units = _to_units(unseen.gains, prices.scale, unseen.keys)
    found = prices.margins(units, unseen.segments)
    cut_at = _Cuts(share)
    class_cuts = [
        cut_at(np.where(found.best == j, found.lead, -1), ratio, names["classes"][j])
        for j, ratio in enumerate(ratios.classes)
    ]
    segment_cuts = [
        cut_at(found.surplus[unseen.segments == s], ratio, names["segments"][s])
        for s, ratio in enumerate(ratios.segments)
    ]
    total_cut = cut_at(found.surplus, ratios.total, "the total")
    cut_at.warn(1 - error)
    return replace(
        prices,
        class_cuts=np.array(class_cuts, dtype=np.int64),
        segment_cuts=np.array(segment_cuts, dtype=np.int64),
        total_cut=total_cut,
    )


def _without_hopeless(ratios: Ratios, n: int, *, error: float) -> Ratios:
    """Close the classes for which `n` items are too few."""
    classes = [
        Fraction(0) if ratio is not None and confident_k(n, ratio, error=error) < 0 else ratio
        for ratio in ratios.classes
    ]
    return replace(ratios, classes=classes)


class _Cuts:
    """Finds cuts that each fail with probability `error`, and lists those with too few items."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.too_few: list[str] = []

    def __call__(self, values: Ints, ratio: Fraction | None, name: str) -> int:
        if ratio is None or ratio >= 1:
            return 0
        k = confident_k(values.size, ratio, error=self.error)
        if k < 0 and ratio > 0:
            needed = confident_sample_size(ratio, error=self.error)
            self.too_few.append(f"{name} (needs {needed} items, got {values.size})")
        return _cut(values, k)

    def warn(self, confidence: float) -> None:
        """Warn about the capacities that get no flags, and name the number of items they need."""
        if self.too_few:
            warn_user(
                f"guarantee='confident' with confidence {confidence:g}, shared by all capacities, "
                "uses half of the calibration items for the prices. The other half has too few "
                f"items for {', '.join(self.too_few)}. Nothing is flagged there.",
                InsufficientCalibrationWarning,
            )
