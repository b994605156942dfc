"""The rule learned from calibration: it decides, changes its capacities and recalibrates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask, Rows
from .._core.ids import check_keyed_alike
from .._core.validation import check_option
from ..assignment.integers import PerLimit
from ._capacities import JointCapacities
from ._prices import NEVER, OrderStatistic, Prices, guaranteed_prices, plug_in_prices
from ._values import JointSample

GUARANTEES = ("plug-in", "expected", "confident")


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
        if guarantee == "plug-in":
            prices = plug_in_prices(sample, capacities.ratios())
        else:
            error = 1 - confidence if guarantee == "confident" else None
            prices = _guaranteed_prices(sample, capacities, error, random_state)
        return cls(sample, capacities, prices)

    def decide(self, items: JointSample) -> tuple[Rows, Floats]:
        """Return the column of each item (0 to leave it), and its surplus after prices."""
        if self.sample.keys is not None:
            check_keyed_alike(items.keyed_by_ids, self.sample.keyed_by_ids)
        columns, units = self.prices.choose(items)
        surplus = self.prices.scale.to_floats(units)
        surplus[units == -NEVER] = -np.inf  # no class may be flagged
        return columns, surplus

    @property
    def class_prices(self) -> dict[Any, float]:
        """The price of each rare label."""
        prices = self.prices.scale.to_floats(self.prices.prices.classes)
        return dict(zip(self.capacities.classes, prices.tolist(), strict=True))

    @property
    def segment_prices(self) -> dict[Any, float]:
        """The price of each segment; None stands for the segments that are not named."""
        if self.capacities.segments is None:
            return {}
        prices = self.prices.scale.to_floats(self.prices.prices.segments)
        return dict(zip(self.capacities.segment_names, prices.tolist(), strict=True))

    @property
    def total_price(self) -> float:
        """The price of the total, on top of that of the label."""
        return float(self.prices.scale.to_floats(self.prices.prices.total))

    @cached_property
    def objective(self) -> float:
        """The mean value of the rule's choices in the sample."""
        return self.sample.objective(self.prices.choose(self.sample)[0])

    @cached_property
    def plug_in_objective(self) -> float:
        """The same without the cost of the guarantee."""
        prices = plug_in_prices(self.sample, self.capacities.ratios())
        return self.sample.objective(prices.choose(self.sample)[0])


def _guaranteed_prices(
    sample: JointSample, capacities: JointCapacities, error: float | None, random_state: Any
) -> Prices:
    """Return prices that hold on average, or with an `error` all at once."""
    ratios = capacities.ratios()
    if error is not None and any(capacity.kind == "multiple" for capacity in capacities.all):
        if sample.groups is not None:
            raise ValueError(
                "guarantee='confident' with groups and a multiple as capacity is not possible: "
                "items of one group say too little about the prevalences. Use Capacity.fraction, "
                "or guarantee='expected'."
            )
        # Half of the error pays for lower bounds of the prevalences.
        error, ratios = error / 2, capacities.lowest_ratios(error=error / 2)
    rule = OrderStatistic.expected()
    if error is not None:
        rule = OrderStatistic.confident(ratios, error=error)
    names = PerLimit(
        [f"class {label!r}" for label in capacities.classes],
        [
            "other segments" if name is None else f"segment {name!r}"
            for name in capacities.segment_names
        ],
        "the total",
    )
    rng = np.random.default_rng(random_state)
    return guaranteed_prices(sample, ratios, rule, rng=rng, names=names)
