"""What a model finds on rows that it has not seen: out of fold, or on rows kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import Interval, proportion_interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..learners import CapacityEnsembleClassifier
from ..metrics import out_of_fold_detection
from .model import RuleResult, TableModel, labels_of
from .rules import default_name, measure_default, measure_list, measure_random, measure_rule
from .schema import TableRows

__all__ = ["Candidate", "OutOfFold", "measure_test_rows"]


@dataclass(frozen=True)
class Candidate:
    """A member of an ensemble: its weight, and what it detects alone at the capacity."""

    learner: str
    detection: float
    weight: float


@dataclass(frozen=True)
class OutOfFold:
    """Rows with the scores of the models that have not seen them.

    Attributes
    ----------
    X : data frame
        The rows, fold by fold.
    ids : ndarray or None
        Their ids.
    rows : ndarray of int
        Their positions among the rows that were learned from.
    folds : ndarray of int
        The number of the fold of each row.
    groups : ndarray or None
        The group of each row, where some belong together.
    is_rare : ndarray of bool
        Their labels.
    scores : ndarray
        The score of each row, by the model of its fold.
    flagged, by_default : ndarray of bool
        Whether the threshold of its fold flags it, and whether the model predicts the rare label.
    by_member : dict from str to ndarray
        The scores of each member of an ensemble; empty for a single learner.
    weights : dict from str to float
        The mean weight of each member.
    probabilities : ndarray
        The probability of each row by the model of its fold, before values and efforts weigh in.
    """

    X: Any
    ids: NDArray[Any] | None
    rows: Rows
    folds: Rows
    groups: NDArray[Any] | None
    is_rare: Mask
    scores: Doubles
    flagged: Mask
    by_default: Mask
    by_member: dict[str, Doubles]
    weights: dict[str, float]
    probabilities: Doubles

    @classmethod
    def of(
        cls,
        classifier: CapacityClassifier,
        learned: TableRows,
        folds: list[Rows],
        groups: NDArray[Any] | None = None,
    ) -> OutOfFold:
        """Collect what the models of a fitted classifier say about the rows of their folds."""
        rows = np.concatenate(folds)
        unseen = learned.take(rows)
        frames = [learned.X.iloc[fold] for fold in folds]
        judged = [
            calibration.flag_with_keys(sample.scores, np.asarray(sample.tie_keys).__getitem__)
            for calibration, sample in zip(
                classifier.calibrations_, classifier.rule_.samples, strict=True
            )
        ]
        predicted = [
            model.predict(X) for model, X in zip(classifier.estimators_, frames, strict=True)
        ]
        return cls(
            unseen.X,
            unseen.ids,
            rows,
            np.repeat(np.arange(len(folds)), [fold.size for fold in folds]),
            None if groups is None else groups[rows],
            labels_of(unseen),
            np.asarray(classifier.calibration_scores_, dtype=np.float64),
            np.concatenate(judged),
            np.concatenate(predicted).astype(bool),
            _by_member(classifier.estimators_, frames),
            _weights(classifier.estimators_),
            np.asarray(classifier.out_of_fold_scores_, dtype=np.float64)[rows],
        )

    def measure(self, model: TableModel) -> list[RuleResult]:
        """Return what the model finds on these rows, row by row and as a list, and other rules."""
        capacity = model.flag_capacity
        places = np.argsort(model.rank(self.X, self.ids, self.scores))
        return [
            measure_rule("this model, row by row", self.is_rare, self.flagged, capacity),
            self._as_list(-places, capacity),
            measure_rule(default_name(model), self.is_rare, self.by_default, capacity),
            measure_random(self.is_rare, capacity),
        ]

    def _as_list(self, scores: Rows, capacity: Capacity) -> RuleResult:
        """Return what lists find that rank the rows of each fold by the model of the fold."""
        found = out_of_fold_detection(
            self.is_rare, scores, self.folds, capacity, groups=self.groups
        )
        n_listed = capacity.max_flags(found.n_items, rare_share(self.is_rare))
        n_found = found.detection * found.n_rare
        return RuleResult(
            "this model, as a list",
            n_listed,
            n_found,
            found.detection,
            Interval(found.low, found.high),
            n_found / n_listed if n_listed else float("nan"),
            proportion_interval(round(n_found), n_listed),
        )

    def members(self, capacity: Capacity) -> list[Candidate]:
        """Return what each member of an ensemble detects alone."""
        return [
            Candidate(
                name,
                out_of_fold_detection(self.is_rare, scores, self.folds, capacity).detection,
                self.weights[name],
            )
            for name, scores in self.by_member.items()
        ]


def _by_member(models: list[Any], frames: list[Any]) -> dict[str, Doubles]:
    if not isinstance(models[0], CapacityEnsembleClassifier):
        return {}
    several = [model.member_scores(X) for model, X in zip(models, frames, strict=True)]
    # With a time budget, some folds may have fewer members than others.
    names = [name for name in several[0] if all(name in scores for scores in several)]
    return {name: np.concatenate([scores[name] for scores in several]) for name in names}


def _weights(models: list[Any]) -> dict[str, float]:
    if not isinstance(models[0], CapacityEnsembleClassifier):
        return {}
    names = {name for model in models for name in model.weights_}
    return {
        name: float(np.mean([sum(model.weights_.get(name, {}).values()) for model in models]))
        for name in names
    }


def measure_test_rows(
    model: TableModel, test: TableRows, *, with_default: bool = True
) -> list[RuleResult]:
    """Return what a finished model finds on rows that were kept aside, and other rules."""
    is_rare, capacity = labels_of(test), model.flag_capacity
    flagged = model.decide(test).flagged
    order = model.rank(test.X, test.ids, model.list_scores(test))
    measured = [
        measure_rule("this model, row by row", is_rare, flagged, capacity),
        measure_list("this model, as a list", is_rare, order, capacity),
    ]
    if with_default:
        measured.append(measure_default(model, test.X, is_rare))
    return [*measured, measure_random(is_rare, capacity)]
