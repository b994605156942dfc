"""The joint rule: prices for all capacities together, thresholds after them, and who sets both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Ints, Mask, Rows
from .._core.ids import hash_ids
from .._core.ranking import keys_within
from .._core.validation import check_as_calibrated, check_option
from ..assignment.integers import FixedPoint, solve_integers
from ..capacity import Capacity
from ..thresholds.promise import GUARANTEES as ALL
from ..thresholds.promise import guarantee_of
from ..thresholds.rules import Rule
from ..thresholds.samples import CalibrationSample, ReferencePrevalence
from ..thresholds.terms import Terms
from ._capacities import JointCapacities
from ._values import JointSample

GUARANTEES = tuple(name for name in ALL if guarantee_of(name).fold_place is not None)
# The gain of a class that may never be flagged.
_NEVER = -(2**62)
# Standard deviations of a number of flags by which prices allow more than the capacity: they put
# the classes in order, and thresholds keep the capacity, which higher prices would leave unused.
_SPARE = 3
# Hashed ties differ by up to this many units: about 1e-7 of the largest value.
_TIE_UNITS = 2.0**23


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

    An item gets the rare class with the highest value minus price, if that class leads strictly,
    and if its lead exceeds the threshold of the class, and its surplus those of its segment and of
    the total. An item whose two best columns tie gets neither.

    Attributes
    ----------
    sample : JointSample
        The calibration items.
    capacities : JointCapacities
        The capacities that the rule keeps.
    scale, prices : FixedPoint, ndarray of int
        Prices in units of a fixed point: of classes, then of segments, then of the total.
    closed : frozenset of int
        Numbers of the classes under which nothing may be flagged.
    classes : dict from int to Rule
        The threshold of the leads of each class that has a capacity.
    overall : Rule or None
        The thresholds of the surplus, for the total and for segments.
    """

    sample: JointSample = field(repr=False)
    capacities: JointCapacities
    scale: FixedPoint = field(repr=False)
    prices: Ints = field(repr=False)
    closed: frozenset[int] = frozenset()
    classes: dict[int, Rule] = field(default_factory=dict, repr=False)
    overall: Rule | None = field(default=None, repr=False)

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
        """Find prices and thresholds that keep all capacities.

        One half of the sample sets prices that put the classes in order. The other half is new to
        them. Therefore the leads of its items that would get class j are scores like any
        others, and their threshold keeps the flag rate of the class. Surpluses do the same for
        segments and the total. For ``guarantee="plug-in"``, all items set both. `random_state`
        divides the sample.
        """
        kind = guarantee_of(check_option("guarantee", guarantee, GUARANTEES))
        if not len(sample):
            raise ValueError("Calibration needs at least one item; got none.")
        first, unseen = sample, sample
        if not kind.of_sample:
            first, unseen = sample.halves(np.random.default_rng(random_state))
        scale = FixedPoint.for_gains(first.gains)
        spare = 0 if kind.of_sample else _SPARE
        rule = cls(sample, capacities, scale, _prices(first, capacities, scale, spare=spare))
        return rule._with_thresholds(unseen, guarantee, 1 - confidence)

    def _with_thresholds(self, unseen: JointSample, guarantee: str, error: float) -> Self:
        """Return the rule with thresholds of items that are new to its prices.

        Each limit is kept on average by itself. A confidence holds for all of them at once: they
        share the error.
        """
        capacities, (best, lead, surplus) = self.capacities, self._margins(unseen)
        surplus[lead <= 0] = lead[lead <= 0] = -np.inf  # these are not flagged
        shared = error / max(_n_limits(capacities.given), 1)

        def rule(scores: Floats, limit: Capacity | None, n_rare: int, segments: Any = None) -> Rule:
            n_limits = _n_limits([limit, *([] if segments is None else segments.limits)])
            counts = n_rare, sum(capacities.counts.values())
            reference = ReferencePrevalence(None, counts, counts)
            terms = Terms(guarantee, 1 - shared * max(n_limits, 1), reference)
            own = CalibrationSample(
                scores, unseen.keys, unseen.keyed_by_ids, segments=unseen.segments
            )
            return Rule([own], limit, terms, segments)

        classes = {
            j: rule(np.where(best == j, lead, -np.inf), limit, capacities.counts[label])
            for j, (label, limit) in enumerate(capacities.classes.items())
            if limit is not None and j not in self.closed
        }
        total, segments, overall = capacities.total, capacities.segments, None
        if total is not None or segments is not None:
            overall = rule(surplus, total, capacities.n_rare, segments)
        found = {j: own.calibrations[0] for j, own in classes.items()}
        shut = {j for j, each in found.items() if each.k < 0 and not each.share}
        if shut:  # their items go to other classes
            return replace(self, closed=self.closed | shut)._with_thresholds(
                unseen, guarantee, error
            )
        return replace(self, classes=classes, overall=overall)

    @property
    def values_of_flags(self) -> list[float]:
        """What one more flag is worth, by all calibration items.

        Of the classes, then of the segments, then of the total.
        """
        prices = _prices(self.sample, self.capacities, self.scale, spare=0)
        return self.scale.to_floats(prices).tolist()

    def _margins(self, items: JointSample) -> tuple[Rows, Floats, Floats]:
        """Compare the classes after prices; a closed class does not compete.

        Return the best class of each item, its lead over all other columns, and its surplus over
        leaving the item alone.
        """
        units = _to_units(items.gains, self.scale, items.keys)
        n_classes, everyone = units.shape[1], np.arange(len(units))
        of_all = self.prices[n_classes + items.segments] + self.prices[-1]
        net = units - self.prices[:n_classes] - of_all[:, np.newaxis]
        net[:, list(self.closed)] = _NEVER
        best = net.argmax(axis=1)
        surplus = net[everyone, best]
        net[everyone, best] = 0  # "leave it" takes the place of the best
        lead = surplus - net.max(axis=1)
        return best, lead.astype(np.float64), surplus.astype(np.float64)  # both are exact

    def decide(self, items: JointSample) -> tuple[Rows, Floats]:
        """Return the column of each item (0 to leave it), and its surplus after prices."""
        if self.sample.keys is not None:
            check_as_calibrated(ids=(items.keyed_by_ids, self.sample.keyed_by_ids))
        best, lead, surplus = self._margins(items)
        flagged, keys = lead > 0, None if items.keys is None else items.keys.__getitem__
        for j, rule in self.classes.items():
            own = np.flatnonzero(best == j)
            own_keys = keys and keys_within(keys, own)
            flagged[own] &= rule.passed(lead[own], own_keys)
        if self.overall is not None:
            flagged &= self.overall.passed(surplus, keys, items.segments)
        surplus[surplus == _NEVER] = -np.inf  # no class may be flagged
        return np.where(flagged, best + 1, 0), np.ldexp(surplus, -self.scale.exponent)


def _prices(
    sample: JointSample, capacities: JointCapacities, scale: FixedPoint, *, spare: int
) -> Ints:
    """Return the lowest prices of the best assignment: of classes, segments and the total."""
    limits = capacities.in_batch(sample.sizes(len(capacities.limits)))
    if spare:
        limits = limits + np.ceil(spare * np.sqrt(limits + 1)).astype(np.int64)
    units = _to_units(sample.gains, scale, sample.keys)
    return solve_integers(units, limits, sample.segments)[1]


def _n_limits(capacities: Sequence[Capacity | None]) -> int:
    return sum(each is not None and each.value > 0 for each in capacities)


def _to_units(gains: Floats, scale: FixedPoint, keys: Floats | None) -> Ints:
    """Round gains to units; tie keys make equal gains differ a little, by class and key."""
    units = scale.to_integers(gains)
    if keys is None:
        return units
    words = np.rint(keys * 2.0**53).astype(np.int64)
    for j in range(units.shape[1]):
        units[:, j] += np.rint((hash_ids(words, seed=j) - 0.5) * _TIE_UNITS).astype(np.int64)
    return units
