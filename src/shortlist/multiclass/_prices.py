"""Prices and cuts for all capacities together: how they decide, and how a sample sets them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from .._core.arrays import Floats, Ints, Rows
from .._core.ids import hash_ids
from .._core.ranking import cut_after
from .._core.validation import warn_user
from ..assignment.integers import FixedPoint, PerLimit, solve_integers
from ..exceptions import InsufficientCalibrationWarning
from ..thresholds.guarantees import confident_k, expected_k, plug_in_k
from ._values import JointSample

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
    prices: PerLimit
    cuts: PerLimit

    def margins(self, units: Ints, segments: Rows) -> _Margins:
        """Compare the classes after prices; a class that may never be flagged does not compete."""
        net = units - self.prices.classes - self.prices.segments[segments, np.newaxis]
        net -= self.prices.total
        net[:, self.cuts.classes == NEVER] = -NEVER
        best = net.argmax(axis=1)
        everyone = np.arange(len(net))
        surplus = net[everyone, best]
        net[everyone, best] = 0  # "leave it" takes the place of the best
        return _Margins(best, surplus - net.max(axis=1), surplus)

    def choose(self, items: JointSample) -> tuple[Rows, Ints]:
        """Return the column of each item (0 to leave it, j + 1 for class j), and its surplus."""
        units = _to_units(items.gains, self.scale, items.keys)
        best, lead, surplus = self.margins(units, items.segments)
        flagged = (lead > self.cuts.classes[best]) & (surplus > self.cuts.total)
        flagged &= surplus > self.cuts.segments[items.segments]
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


def plug_in_prices(sample: JointSample, ratios: PerLimit) -> Prices:
    """Keep all capacities on the sample itself, at the lowest prices of its best assignment."""
    scale, n = FixedPoint.for_gains(sample.gains), len(sample)
    units = _to_units(sample.gains, scale, sample.keys)
    in_segment = np.bincount(sample.segments, minlength=len(ratios.segments))
    limits = PerLimit(
        np.array([_whole(ratio, n) for ratio in ratios.classes]),
        np.array(
            [_whole(*each) for each in zip(ratios.segments, in_segment.tolist(), strict=True)]
        ),
        _whole(ratios.total, n),
    )
    _, prices = solve_integers(units, limits, sample.segments)
    cuts = PerLimit(
        np.array([_open_or_never(ratio) for ratio in ratios.classes]),
        np.array([_open_or_never(ratio) for ratio in ratios.segments]),
        _open_or_never(ratios.total),
    )
    return _price_empty_segments(Prices(scale, prices, cuts), units, in_segment, ratios)


def _whole(ratio: Fraction | None, size: int) -> int:
    return size if ratio is None else math.floor(ratio * size)


def _open_or_never(ratio: Fraction | None) -> int:
    """Return a cut of 0, or `NEVER` if the capacity is zero."""
    return NEVER if ratio == 0 else 0


def _price_empty_segments(
    prices: Prices, units: Ints, in_segment: Rows, ratios: PerLimit
) -> Prices:
    """Price a segment without calibration items as if all items belonged to it."""
    for s in np.flatnonzero(in_segment == 0):
        ratio = ratios.segments[s]
        if ratio is not None and ratio > 0:
            surplus = prices.margins(units, np.full(len(units), s)).surplus
            prices.prices.segments[s] = _cut(surplus, plug_in_k(len(units), ratio))
    return prices


def _cut(values: Ints, k: int) -> int:
    """Return the (k + 1)-th largest value, but at least 0; units are exact as floats."""
    cut = cut_after(values.astype(np.float64), k).value
    return NEVER if cut == np.inf else max(0, int(cut)) if cut > 0 else 0


class OrderStatistic(NamedTuple):
    """Which order statistic of unseen values keeps a limit.

    `k` returns how many of n values may lie above a cut that keeps a fraction.
    """

    k: Callable[[int, Fraction], int]
    promise: str

    @classmethod
    def expected(cls) -> OrderStatistic:
        """Keep each limit on average over calibrations; several limits need no correction."""
        return cls(expected_k, "guarantee='expected'")

    @classmethod
    def confident(cls, ratios: PerLimit, *, error: float) -> OrderStatistic:
        """Keep all limits at once, except with probability `error`, which they share."""
        several = [*ratios.classes, *ratios.segments, ratios.total]
        n_limits = sum(ratio is not None and 0 < ratio < 1 for ratio in several)
        share = error / max(n_limits, 1)
        return cls(
            partial(confident_k, error=share),
            f"guarantee='confident' with confidence {1 - error:g}, shared by all capacities,",
        )


def guaranteed_prices(
    sample: JointSample,
    ratios: PerLimit,
    rule: OrderStatistic,
    *,
    rng: np.random.Generator,
    names: PerLimit,
) -> Prices:
    """Keep all capacities for future items, as the rule of order statistics promises.

    One half of the sample sets the prices. The other half is new to these prices. Therefore the
    leads of its items that would get class j are scores like any others, and a cut at an order
    statistic keeps the flag rate of the class. Surpluses do the same for segments and the total.
    Items that do not exceed a cut are left alone.
    """
    first, unseen = sample.halves(rng)
    groups = unseen.groups
    # A class with too few items for its guarantee must not compete, neither here nor later.
    n_unseen = len(unseen) if groups is None else np.unique(groups).size
    prices = plug_in_prices(first, _without_hopeless(ratios, n_unseen, rule))
    units = _to_units(unseen.gains, prices.scale, unseen.keys)
    found = prices.margins(units, unseen.segments)
    cut_at = _Cuts(rule, groups, rng)
    everyone = np.arange(len(unseen))
    class_cuts = [
        cut_at(np.where(found.best == j, found.lead, -1), everyone, ratio, names.classes[j])
        for j, ratio in enumerate(ratios.classes)
    ]
    segment_cuts = [
        cut_at(found.surplus, np.flatnonzero(unseen.segments == s), ratio, names.segments[s])
        for s, ratio in enumerate(ratios.segments)
    ]
    total_cut = cut_at(found.surplus, everyone, ratios.total, names.total)
    cut_at.warn()
    return replace(prices, cuts=PerLimit(np.array(class_cuts), np.array(segment_cuts), total_cut))


def _without_hopeless(ratios: PerLimit, n: int, rule: OrderStatistic) -> PerLimit:
    """Close the classes for which `n` items are too few."""
    classes = [
        Fraction(0) if ratio is not None and rule.k(n, ratio) < 0 else ratio
        for ratio in ratios.classes
    ]
    return ratios._replace(classes=classes)


class _Cuts:
    """Finds cuts that keep limits, and lists the limits with too few items.

    With groups a cut is one for an item of a new group: from one item of each group, drawn at
    random, and not below the one that keeps the limit among the items themselves.
    """

    def __init__(self, rule: OrderStatistic, groups: Rows | None, rng: np.random.Generator) -> None:
        self.rule, self.groups = rule, groups
        self.too_few: list[str] = []
        if groups is not None:
            self.lots = rng.random(groups.size)

    def __call__(self, values: Ints, rows: Rows, ratio: Fraction | None, name: str) -> int:
        if ratio is None or ratio >= 1:
            return 0
        own = values[self._drawn(rows)]
        k = self.rule.k(own.size, ratio)
        if k < 0 and ratio > 0:
            self.too_few.append(f"{name} (got {own.size} {self._unit})")
        if self.groups is None:
            return _cut(own, k)
        return max(_cut(own, k), _cut(values[rows], plug_in_k(rows.size, ratio)))

    @property
    def _unit(self) -> str:
        return "items" if self.groups is None else "groups"

    def _drawn(self, rows: Rows) -> Rows:
        """Return one row of each group, drawn at random; all of them without groups."""
        if self.groups is None:
            return rows
        order = rows[np.lexsort((self.lots[rows], self.groups[rows]))]
        return order[np.unique(self.groups[order], return_index=True)[1]]

    def warn(self) -> None:
        """Warn about the capacities that get no flags."""
        if self.too_few:
            warn_user(
                f"{self.rule.promise} uses half of the calibration items for the prices. The other "
                f"half has too few items for {', '.join(self.too_few)}. Nothing is flagged there.",
                InsufficientCalibrationWarning,
            )
