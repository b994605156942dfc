"""The joint rule: prices and cuts for all capacities together, and how a sample sets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Ints, Mask, Rows
from .._core.ids import hash_ids
from .._core.ranking import cut_after
from .._core.validation import check_as_calibrated, check_option, warn_user
from ..assignment.integers import FixedPoint, solve_integers
from ..exceptions import InsufficientCalibrationWarning
from ..thresholds.guarantees import confident_k, expected_k
from ..thresholds.promise import GUARANTEES as ALL
from ..thresholds.promise import guarantee_of
from ._capacities import JointCapacities
from ._values import JointSample

#: The limit of each class, of each segment and of the total as a share of its items, or None.
Ratios = Sequence[Fraction | None]
GUARANTEES = tuple(name for name in ALL if guarantee_of(name).joint)
#: A cut that no surplus exceeds.
NEVER = 2**62
# Hashed ties differ by up to this many units: about 1e-7 of the largest value.
_TIE_UNITS = 2.0**23


@dataclass(frozen=True)
class Prices:
    """Prices and cuts in units of a fixed point: of classes, then of segments, then of the total.

    An item gets its best class if that class leads by more than its cut, and if the surplus of the
    item exceeds the cuts of its segment and of the total. Cuts are never negative. Therefore an
    item whose two best columns tie gets neither.
    """

    scale: FixedPoint
    prices: Ints
    cuts: Ints

    def margins(self, units: Ints, segments: Rows) -> tuple[Rows, Ints, Ints]:
        """Compare the classes after prices; a class that may never be flagged does not compete.

        Return the best class of each item, its lead over all other columns, and over leaving it.
        """
        n_classes, everyone = units.shape[1], np.arange(len(units))
        of_all = self.prices[n_classes + segments] + self.prices[-1]
        net = units - self.prices[:n_classes] - of_all[:, np.newaxis]
        net[:, self.cuts[:n_classes] == NEVER] = -NEVER
        best = net.argmax(axis=1)
        surplus = net[everyone, best]
        net[everyone, best] = 0  # "leave it" takes the place of the best
        return best, surplus - net.max(axis=1), surplus

    def choose(self, items: JointSample) -> tuple[Rows, Ints]:
        """Return the column of each item (0 to leave it, j + 1 for class j), and its surplus."""
        units = _to_units(items.gains, self.scale, items.keys)
        best, lead, surplus = self.margins(units, items.segments)
        flagged = (lead > self.cuts[best]) & (surplus > self.cuts[-1])
        flagged &= surplus > self.cuts[units.shape[1] + items.segments]
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
    """Keep all capacities on the sample itself, at the lowest prices of its best assignment.

    Nothing is flagged under a capacity of zero, or in a segment that the sample has no items of.
    """
    scale, sizes = FixedPoint.for_gains(sample.gains), sample.sizes(len(ratios))
    limits = [
        size if ratio is None else math.floor(ratio * size)
        for ratio, size in zip(ratios, sizes, strict=True)
    ]
    cuts = [
        NEVER if ratio is not None and ratio * size == 0 else 0
        for ratio, size in zip(ratios, sizes, strict=True)
    ]
    units = _to_units(sample.gains, scale, sample.keys)
    _, prices = solve_integers(units, np.array(limits), sample.segments)
    return Prices(scale, prices, np.array(cuts))


def order_statistic(ratios: Ratios, error: float | None) -> Callable[[int, Fraction], int]:
    """Return the rule for how many of n unseen values may lie above a cut that keeps a ratio.

    Without an `error`, each limit is kept on average over calibrations, and several need no
    correction. Otherwise all are kept at once, except with this probability, which they share.
    """
    if error is None:
        return expected_k
    n_limits = sum(ratio is not None and 0 < ratio < 1 for ratio in ratios)
    share = error / max(n_limits, 1)
    return partial(confident_k, error=share)


def guaranteed_prices(
    sample: JointSample, ratios: Ratios, error: float | None, *, rng: np.random.Generator
) -> tuple[Prices, list[int]]:
    """Keep all capacities for future items, on average or together up to an `error`.

    One half of the sample sets the prices. The other half is new to these prices. Therefore the
    leads of its items that would get class j are scores like any others, and a cut at an order
    statistic keeps the flag rate of the class. Surpluses do the same for segments and the total.
    Items that do not exceed a cut are left alone. Return also how many of the unseen values may lie
    above each cut; less than 0 means that there are too few of them.
    """
    n_classes, rule = sample.gains.shape[1], order_statistic(ratios, error)
    first, unseen = sample.halves(rng)
    most = [
        size if ratio is None or ratio >= 1 else rule(size, ratio)
        for ratio, size in zip(ratios, unseen.sizes(len(ratios)), strict=True)
    ]
    # A class with too few items for its guarantee must not compete, neither here nor later.
    open_classes = [Fraction(0) if k < 0 else r for r, k in zip(ratios, most, strict=True)]
    prices = plug_in_prices(first, [*open_classes[:n_classes], *ratios[n_classes:]])
    units = _to_units(unseen.gains, prices.scale, unseen.keys)
    best, lead, surplus = prices.margins(units, unseen.segments)
    values = [
        *(np.where(best == j, lead, -1) for j in range(n_classes)),
        *(surplus[unseen.segments == s] for s in range(len(ratios) - n_classes - 1)),
        surplus,
    ]
    cuts = [_cut(each, k) for each, k in zip(values, most, strict=True)]
    return replace(prices, cuts=np.array(cuts)), most


def _cut(values: Ints, k: int) -> int:
    """Return the (k + 1)-th largest value, but at least 0; units are exact as floats."""
    cut = cut_after(values.astype(np.float64), k).value
    return NEVER if cut == np.inf else int(max(cut, 0))


class JointDecisions(NamedTuple):
    """Decisions about items; made by `MulticlassCapacityClassifier.decide`.

    Attributes
    ----------
    labels : ndarray of shape (n_items,)
        The predicted labels; an item that is not flagged gets its likeliest common label.
    columns : ndarray of int, shape (n_items,)
        0 for items that are not flagged, j + 1 for ``rare_labels_[j]``.
    posteriors : ndarray of shape (n_items, n_classes)
        The model's probabilities, in the order of `classes_`.
    surplus : ndarray of shape (n_items,)
        The gain of the best rare label over leaving the item alone, after prices. It is positive
        for every flagged item. It can be positive for other items, too: for a tie of two rare
        labels, or where the guarantee asks for a larger lead.
    """

    labels: NDArray[Any]
    columns: Rows
    posteriors: Floats
    surplus: Floats

    @property
    def flagged(self) -> Mask:
        """True for the items that get a rare label."""
        return self.columns > 0


@dataclass(frozen=True)
class JointRule:
    """Prices for all capacities, and the calibration items that set them; made by `calibrate`.

    An item gets the rare class with the highest value minus price, if that is strictly more than
    the value of leaving the item alone; under the other guarantees, if it is clearly more.

    Attributes
    ----------
    sample : JointSample
        The calibration items.
    capacities : JointCapacities
        The capacities that the rule keeps.
    """

    sample: JointSample = field(repr=False)
    capacities: JointCapacities
    prices: Prices = field(repr=False)

    @classmethod
    def calibrate(
        cls,
        sample: JointSample,
        capacities: JointCapacities,
        *,
        guarantee: str = "expected",
        confidence: float = 0.95,
        random_state: Any = 0,
    ) -> Self:
        """Find the prices at which the sample keeps all capacities.

        `random_state` divides the sample, except for ``guarantee="plug-in"``.
        """
        check_option("guarantee", guarantee, GUARANTEES)
        if not len(sample):
            raise ValueError("Calibration needs at least one item; got none.")
        ratios = capacities.ratios()
        kind = guarantee_of(guarantee)
        if kind.of_sample:
            prices = plug_in_prices(sample, ratios)
            most = [size - 1 for size in sample.sizes(len(ratios))]
        else:
            error = 1 - confidence if kind.surely else None
            if error and any(capacity.kind == "multiple" for capacity in capacities.given):
                # Half of the error pays for lower bounds of the prevalences.
                error, ratios = error / 2, capacities.ratios(error=error / 2)
            rng = np.random.default_rng(random_state)
            prices, most = guaranteed_prices(sample, ratios, error, rng=rng)
        closed = zip(capacities.limits, ratios, most, strict=True)
        if too_few := [limit.name for limit, ratio, k in closed if ratio and k < 0]:
            warn_user(
                f"{len(sample):,} calibration items, of which half set the prices unless "
                "guarantee='plug-in', are too few for the capacity of "
                f"{', '.join(too_few)}: nothing is flagged there. Calibrate on more items.",
                InsufficientCalibrationWarning,
            )
        return cls(sample, capacities, prices)

    def decide(self, items: JointSample) -> tuple[Rows, Floats]:
        """Return the column of each item (0 to leave it), and its surplus after prices."""
        if self.sample.keys is not None:
            check_as_calibrated(ids=(items.keyed_by_ids, self.sample.keyed_by_ids))
        columns, units = self.prices.choose(items)
        surplus = self.prices.scale.to_floats(units)
        surplus[units == -NEVER] = -np.inf  # no class may be flagged
        return columns, surplus
