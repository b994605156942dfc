"""The joint rule: prices for all capacities together, thresholds after them, and who sets both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Ints, Mask, Rows
from .._core.ids import hash_ids
from .._core.labels import ReferencePrevalence
from .._core.ranking import keys_within, lift
from .._core.validation import check_option, check_positive, name_rows
from ..assignment.integers import FixedPoint, solve_integers
from ..capacity import Capacity
from ..thresholds.promise import GUARANTEES as ALL
from ..thresholds.promise import guarantee_of
from ..thresholds.rules import Rule
from ..thresholds.samples import CalibrationSample
from ..thresholds.terms import Terms
from ..thresholds.threshold import check_as_calibrated
from ._capacities import JointCapacities

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


# --- items as the rule sees them ---


class Valuation(NamedTuple):
    r"""Columns and weights: an item is worth :math:`w_j \eta_j(x) / \pi_j` in rare class j.

    Left alone, it is worth :math:`\max_k \eta_k(x) / \pi_{maj}` over the classes k of the
    majority, or nothing where the majority does not count.
    """

    rare: Rows
    common: Rows
    rare_weights: Floats
    common_weight: float

    @classmethod
    def from_counts(
        cls, counts: Mapping[Any, int], rare_labels: list[Any], *, weights: Any, majority: bool
    ) -> Self:
        """Weight each label by its share of the items; `counts` are those of all labels."""
        known = list(counts)
        rare = np.array([known.index(label) for label in rare_labels])
        common = np.setdiff1d(np.arange(len(known)), rare)
        shares = np.array(list(counts.values())) / sum(counts.values())
        common_weight = 1 / shares[common].sum() if majority and shares[common].any() else 0.0
        return cls(rare, common, _check_weights(weights, rare_labels) / shares[rare], common_weight)

    def sample(
        self,
        posteriors: Any,
        segments: Rows,
        keys: Floats | None = None,
        *,
        keyed_by_ids: bool = False,
    ) -> JointSample:
        """Value items by their posteriors, after removing noise in the last digits."""
        posteriors = np.asarray(posteriors)
        if posteriors.dtype not in (np.float32, np.float64):
            posteriors = posteriors.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(posteriors).all(axis=1))
        if bad.size:
            raise ValueError(
                f"predict_proba of the model gave NaN or infinity at {name_rows(bad)}. Leave these "
                "items out, or add an imputer to the model."
            )
        steady = lift(posteriors).astype(np.float64)
        left_alone = steady[:, self.common].max(axis=1) * self.common_weight
        gains = steady[:, self.rare] * self.rare_weights - left_alone[:, np.newaxis]
        return JointSample(gains, segments, keys, keyed_by_ids, posteriors.dtype)

    def classes_of(self, columns: Rows, posteriors: Floats) -> Rows:
        """Return the number of the class that each item gets: rare by its column, or common."""
        codes = self.common[posteriors[:, self.common].argmax(axis=1)]
        flagged = np.flatnonzero(columns)
        codes[flagged] = self.rare[columns[flagged] - 1]
        return codes


def _check_weights(weights: Mapping[Any, Any] | None, rare_labels: list[Any]) -> Floats:
    checked = dict.fromkeys(rare_labels, 1.0)
    for label, weight in (weights or {}).items():
        if label not in checked:
            raise ValueError(
                f"class_weights names {label!r}, which has no capacity; the labels with one "
                f"are {rare_labels}. The majority weighs 1, or 0 with majority=False."
            )
        checked[label] = check_positive(f"class_weights[{label!r}]", weight)
    return np.array(list(checked.values()))


@dataclass(frozen=True)
class JointSample:
    """Items to calibrate on, or to decide about.

    Attributes
    ----------
    gains : ndarray of shape (n_items, m)
        The gain of each rare class over leaving the item alone.
    segments : ndarray of int, shape (n_items,)
        The number of each item's segment; 0 without segments.
    keys : ndarray of shape (n_items,), or None
        Tie keys between 0 and 1; `None` leaves ties alone.
    keyed_by_ids : bool
        Whether the keys come from ids, rather than from the items' own values.
    precision : dtype
        The type of the posteriors that the gains come from.
    """

    gains: Floats
    segments: Rows
    keys: Floats | None = None
    keyed_by_ids: bool = False
    precision: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009

    def __len__(self) -> int:
        return len(self.gains)

    def sizes(self, n_limits: int) -> list[int]:
        """Return how many items each limit applies to: of classes, of segments, of the total."""
        n, n_classes = self.gains.shape
        in_segment = np.bincount(self.segments, minlength=n_limits - n_classes - 1)
        return [*[n] * n_classes, *in_segment.tolist(), n]

    def take(self, rows: Rows) -> JointSample:
        """Return the items at these positions."""
        return replace(
            self,
            gains=self.gains[rows],
            segments=self.segments[rows],
            keys=None if self.keys is None else self.keys[rows],
        )

    def halves(self, rng: np.random.Generator) -> tuple[JointSample, JointSample]:
        """Divide the items at random; the second half is never empty."""
        shuffled, half = rng.permutation(len(self)), len(self) // 2
        return self.take(shuffled[:half]), self.take(shuffled[half:])
