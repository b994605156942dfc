"""What a fitted model with joint capacities can be asked."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from .._core.binomial import clopper_pearson_lower
from .._core.hashing import check_keyed_alike, hash_ids, hash_rows
from .._core.scoring import n_rows, probabilities
from .._core.steady import as_calibrated
from .._core.validation import check_ids
from .._wrapping.segments import segment_codes
from ..assignment import assign
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._calibrate import JointSample, confident_rule, plug_in_rule
from ._capacities import JointCapacities, Ratios, check_joint_capacities
from ._rule import JointRule, to_units
from ._values import Valuation

__all__ = ["JointDecisionMixin"]

_UNCHANGED: Any = "unchanged"


class JointDecisionMixin:
    """Labels and lists under joint capacities, for a classifier with posteriors.

    `fit` sets `estimator_`, `classes_`, `rare_labels_`, `_counts` (of the classes), `_joint`,
    `_valuation` and `_seed`, and hands a calibration sample to `_calibrate_on` at last.
    """

    capacities: Any
    total: Capacity | None
    segment_capacities: dict[Any, Capacity | None] | None
    default_segment_capacity: Capacity | None
    guarantee: str
    confidence: float
    ties: str
    estimator_: Any
    classes_: NDArray[Any]
    rare_labels_: list[Any]
    objective_: float
    plug_in_objective_: float
    _counts: NDArray[np.intp]
    _joint: JointCapacities
    _valuation: Valuation
    _seed: int
    _rule: JointRule
    _calibration_sample: JointSample

    def predict(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict labels one item at a time: a rare label where the item is worth its prices.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties, if there were any in calibration.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels; an item without a rare label gets the likeliest label of the majority.
        """
        check_is_fitted(self)
        posteriors = self.predict_proba(X)
        sample = self._sample(X, posteriors, segments, ids)
        units = to_units(sample.gains, self._rule.scale, sample.keys)
        return self._labels(self._rule.choose(units, sample.segments), posteriors)

    def flag(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Tell which items get a rare label.

        Parameters
        ----------
        X, segments, ids
            As for :meth:`predict`.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            True where the item gets any of the rare labels.
        """
        return np.isin(self.predict(X, segments=segments, ids=ids), self.rare_labels_)

    def select(
        self,
        X: Any,
        capacities: Any = _UNCHANGED,
        *,
        total: Any = _UNCHANGED,
        segment_capacities: Any = _UNCHANGED,
        segments: ArrayLike | None = None,
        case_values: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Label a batch as well as its capacities allow: the exact optimum for this batch.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            The batch.
        capacities, total, segment_capacities : default="unchanged"
            Capacities for this batch, as for the class; ``Capacity.count(50)`` is a number of
            items here. Those of the classifier when absent.
        segments : array-like of shape (n_items,), default=None
            The segment of each item, where segments have capacities.
        case_values : array-like of shape (n_items,), default=None
            An amount at stake for each item, which multiplies its values.
        ids : array-like of shape (n_items,), default=None
            Identifiers that break ties; the row's own values are hashed when absent.

        Returns
        -------
        ndarray of shape (n_items,)
            Labels, of which no rare one occurs more often than its capacity allows.
        """
        check_is_fitted(self)
        joint = self._changed(capacities, total, segment_capacities)
        posteriors, n = self.predict_proba(X), n_rows(X)
        values = self._valuation(posteriors)
        codes = segment_codes(segments, joint.segments, n)
        columns = assign(
            np.column_stack([np.zeros(n), values.gains]),
            [
                None if limit is None else limit.max_flags(n, self._prevalence(label))
                for label, limit in joint.classes.items()
            ],
            total=None if joint.total is None else joint.total.max_flags(n, self._prevalence(None)),
            segments=codes,
            segment_capacities=self._segment_limits(joint, codes),
            case_values=case_values,
            ids=hash_rows(indexable(X)[0], seed=self._seed) if ids is None else ids,
            random_state=self._seed,
        )
        return self._labels(columns, posteriors)

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the model's probabilities; the capacities do not change them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return probabilities(self.estimator_, X, self.classes_)

    def with_capacities(
        self,
        capacities: Any = _UNCHANGED,
        *,
        total: Any = _UNCHANGED,
        segment_capacities: Any = _UNCHANGED,
    ) -> Self:
        """Return a fitted copy for other capacities, from the same model and calibration items.

        Parameters
        ----------
        capacities, total, segment_capacities : default="unchanged"
            The new capacities, as for the class. They must name the same labels and segments,
            in which the calibration items are counted.

        Returns
        -------
        classifier
            Fitted, and sharing the fitted model; this one is left as it is.
        """
        check_is_fitted(self)
        joint = self._changed(capacities, total, segment_capacities)
        if self._joint.segments is not None:
            # The calibration items are numbered in the old order.
            joint = replace(joint, segments=self._joint.segments.changed_to(joint.segments))
        elif joint.segments is not None:
            raise CapacityError(
                "segment_capacities were not given to fit, so that the segments of the "
                "calibration items are not known. Fit with segments."
            )
        changed = copy.copy(self)
        changed.capacities, changed.total = joint.classes, joint.total
        changed.segment_capacities = None if joint.segments is None else joint.segments.named
        changed._joint = joint
        changed._calibrate_on(self._calibration_sample)
        return changed

    def recalibrate(
        self, X: Any, *, segments: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> Self:
        """Find new prices from other items, without labels and without refitting the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items that are recent, and that the model has not been trained on.
        segments, ids
            As for :meth:`fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        keys = self._keys(X, check_ids(ids, n_rows(X)))
        posteriors = self.predict_proba(X)
        codes = segment_codes(segments, self._joint.segments, n_rows(X))
        sample = JointSample(
            *self._valuation(posteriors), codes, keys, ids is not None, posteriors.dtype
        )
        self._calibrate_on(sample)
        return self

    @property
    def prices_(self) -> dict[Any, float]:
        """What a class pays for capacity."""
        prices = self._rule.scale.to_floats(self._rule.class_prices)
        return dict(zip(self.rare_labels_, prices.tolist(), strict=True))

    @property
    def total_price_(self) -> float:
        """What the total costs, on top of the class."""
        return float(self._rule.scale.to_floats(self._rule.total_price))

    @property
    def segment_prices_(self) -> dict[Any, float]:
        """What a segment pays for capacity; None stands for segments that are not named."""
        if self._joint.segments is None:
            return {}
        prices = self._rule.scale.to_floats(self._rule.segment_prices).tolist()
        return dict(zip(self._joint.segments.names, prices, strict=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objective_")

    # --- capacities ----------------------------------------------------------------------------

    def _check_capacities(self, capacities: Any, total: Any, segments: Any) -> JointCapacities:
        return check_joint_capacities(
            capacities,
            total,
            segments,
            self.default_segment_capacity,
            classes=self.classes_,
            most_common=self.classes_.tolist()[int(self._counts.argmax())],
        )

    def _changed(self, capacities: Any, total: Any, segments: Any) -> JointCapacities:
        """Check capacities that take the place of some of those in use."""
        old = self._joint
        joint = self._check_capacities(
            old.classes if _is_unchanged(capacities) else capacities,
            old.total if _is_unchanged(total) else total,
            old.segments and old.segments.named if _is_unchanged(segments) else segments,
        )
        if set(joint.classes) != set(self.rare_labels_):
            raise CapacityError(
                f"capacities must name the rare labels of fit, {self.rare_labels_}; got "
                f"{list(joint.classes)}."
            )
        in_order = {label: joint.classes[label] for label in self.rare_labels_}
        return replace(joint, classes=in_order)

    def _prevalence(self, label: Any) -> Fraction:
        """Return the share of a label in `fit`, exactly; None is all rare labels together."""
        return Fraction(self._count(label), int(self._counts.sum()))

    def _count(self, label: Any) -> int:
        labels = list(self._joint.classes) if label is None else [label]
        return int(self._counts[np.isin(self.classes_, labels)].sum())

    # --- calibrating and deciding ---------------------------------------------------------------

    def _calibrate_on(self, sample: JointSample) -> None:
        if not len(sample):
            raise ValueError("Calibration needs at least one item; got none.")
        plug_in = plug_in_rule(sample, self._joint.ratios(self._prevalence))
        rule = plug_in if self.guarantee == "plug-in" else self._confident(sample)
        self.plug_in_objective_ = sample.objective(self._choose(plug_in, sample))
        self.objective_ = sample.objective(self._choose(rule, sample))
        self._rule, self._calibration_sample = rule, sample

    def _confident(self, sample: JointSample) -> JointRule:
        error = 1 - self.confidence
        ratios = self._joint.ratios(self._prevalence)
        if any(capacity.kind == "multiple" for capacity in self._joint.all):
            error, ratios = error / 2, self._ratios_at_lowest(error / 2)
        segments = [None] if self._joint.segments is None else self._joint.segments.names
        names = {
            "classes": [f"class {label!r}" for label in self.rare_labels_],
            "segments": [
                "other segments" if name is None else f"segment {name!r}" for name in segments
            ],
        }
        rng = np.random.default_rng(self._seed % 2**64)
        return confident_rule(sample, ratios, error=error, rng=rng, names=names)

    def _ratios_at_lowest(self, error: float) -> Ratios:
        """Return the limits at lower bounds of all prevalences, which share the error."""
        share = error / (len(self.rare_labels_) + 1)
        n = int(self._counts.sum())
        return self._joint.ratios(
            lambda label: Fraction(float(clopper_pearson_lower(self._count(label), n, error=share)))
        )

    def _choose(self, rule: JointRule, sample: JointSample) -> NDArray[np.intp]:
        return rule.choose(to_units(sample.gains, rule.scale, sample.keys), sample.segments)

    def _sample(
        self, X: Any, posteriors: Any, segments: ArrayLike | None, ids: ArrayLike | None
    ) -> JointSample:
        calibrated = self._calibration_sample
        codes = segment_codes(segments, self._joint.segments, n_rows(X))
        if self.ties == "hash":
            check_keyed_alike(ids is not None, calibrated.keyed_by_ids)
        values = self._valuation(as_calibrated(posteriors, calibrated.precision))
        keys = self._keys(X, check_ids(ids, n_rows(X)))
        return JointSample(*values, codes, keys, ids is not None, calibrated.precision)

    def _keys(self, X: Any, ids: NDArray[Any] | None) -> NDArray[np.float64] | None:
        if self.ties != "hash":
            return None
        if ids is not None:
            return hash_ids(ids, seed=self._seed)
        return hash_rows(indexable(X)[0], seed=self._seed)

    def _segment_limits(
        self, joint: JointCapacities, codes: NDArray[np.intp]
    ) -> dict[int, int | None]:
        """Return how many flags each segment allows in a batch, by its number."""
        limits = joint.segment_limits
        sizes = np.bincount(codes, minlength=len(limits)).tolist()
        return {
            code: None if capacity is None else capacity.max_flags(size, self._prevalence(None))
            for code, (capacity, size) in enumerate(zip(limits, sizes, strict=True))
        }

    def _labels(self, columns: NDArray[np.intp], posteriors: NDArray[Any]) -> NDArray[Any]:
        common = self._valuation.common
        codes = common[posteriors[:, common].argmax(axis=1)]
        flagged = np.flatnonzero(columns)
        codes[flagged] = self._valuation.rare[columns[flagged] - 1]
        return self.classes_[codes]


def _is_unchanged(value: Any) -> bool:
    return isinstance(value, str) and value == _UNCHANGED
