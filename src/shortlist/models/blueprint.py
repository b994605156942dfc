"""The blueprint of a fitted model: how it turns the features of a row into a score.

A blueprint is a tree. Its leaves take features (`_columns`) and are trees, layers of sums, or a
classifier that is asked itself. Its other nodes combine scores. All scores rise with
the label that was asked for. There are two back ends: `_compiled` makes functions of single rows of
it, and `_onnx` a graph. To add a model, add a function to `_BY_TYPE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from .._core.arrays import Doubles
from .._core.trees import GrownTree, Unsupported, histogram_tree, lightgbm_trees, sklearn_tree
from ..learners.packed_forest import n_averaged
from ._columns import Feature, transformed, without_names

#: The activations of networks.
ACTIVATIONS = ("identity", "logistic", "relu", "tanh")


@dataclass(frozen=True)
class Ask:
    """What a classifier is asked for: one of its outputs, for one of the labels."""

    method: str
    label: Any

    def place(self, learner: Any) -> int:
        """Return the column of the label."""
        known = np.asarray(learner.classes_).tolist()
        if self.label not in known:
            raise Unsupported(f"{type(learner).__name__} without the label {self.label!r}")
        return known.index(self.label)


@dataclass(frozen=True, eq=False)
class Leaf:
    """Scores of features."""

    features: list[Feature]


@dataclass(frozen=True, eq=False)
class Trees(Leaf):
    """The sum of the leaves that a row reaches, added to `start` and divided by a number.

    Numbers are rounded to single precision (`rounding="single"`), or tiny ones to zero ("tiny").
    Trees `in_order` are added up in their order. Missing numbers may be refused.
    """

    trees: list[GrownTree]
    start: float = 0.0
    rounding: str = "none"
    divisor: int = 1
    in_order: bool = True
    takes_gaps: bool = True

    def negated(self) -> Trees:
        """Return trees with the negated sum."""
        return replace(self, trees=[tree.negated() for tree in self.trees], start=-self.start)


@dataclass(frozen=True, eq=False)
class Layers(Leaf):
    """The last sum of a network: one layer is a linear form."""

    weights: Sequence[Doubles]
    shifts: Sequence[Doubles]
    activation: str = "identity"

    def negated(self) -> Layers:
        """Return layers with the negated sum."""
        weights, shifts = ([*each[:-1], -each[-1]] for each in (self.weights, self.shifts))
        return replace(self, weights=weights, shifts=shifts)


@dataclass(frozen=True, eq=False)
class Asked(Leaf):
    """What a classifier itself says; `name` is what there is no blueprint for."""

    learner: Any
    ask: Ask
    name: str


@dataclass(frozen=True, eq=False)
class Combined:
    """Scores made of other scores, which rise with each of them."""

    parts: list[Node]


Node = Leaf | Combined


@dataclass(frozen=True, eq=False)
class Logistic(Combined):
    """The probability that belongs to a score.

    With `complement`, it is 1 less the probability that belongs to the negated score. LightGBM has
    an exponential function of its own.
    """

    complement: bool = False
    of_lightgbm: bool = False


@dataclass(frozen=True, eq=False)
class Sum(Combined):
    """Scores, added up in their order and divided by a number."""

    divisor: int = 1


@dataclass(frozen=True, eq=False)
class Weighted(Combined):
    """A weighted sum of scores, in any order."""

    weights: Doubles


@dataclass(frozen=True, eq=False)
class LogOdds(Combined):
    """Log-odds of a probability that is pulled away from 0 and 1, by half of one in `pull`.

    The probability of the other label is 1 less this one, but for the rounding of `n_terms`.
    """

    pull: float
    n_terms: int


def leaves_of(node: Node) -> list[Leaf]:
    """Return all leaves of a blueprint."""
    if isinstance(node, Leaf):
        return [node]
    return [leaf for part in node.parts for leaf in leaves_of(part)]


def is_exact(node: Node) -> bool:
    """Return whether a back end can repeat the bits of the model: the order of sums is known."""
    if isinstance(node, Combined):
        return isinstance(node, (Logistic, Sum)) and all(map(is_exact, node.parts))
    return isinstance(node, Trees) and node.in_order


def mean_of(parts: list[Node]) -> Node:
    """Return the mean of scores."""
    return parts[0] if len(parts) == 1 else Sum(parts, len(parts))


def scores_of(classifier: Any, models: list[Any], n_columns: int) -> list[Node]:
    """Return the blueprints of some models of a fitted classifier."""
    columns = [Feature.raw(column) for column in range(n_columns)]
    ask = Ask(classifier.response_method_, classifier.rare_label_)
    return [_score_of(model, columns, ask) for model in models]


def _score_of(model: Any, features: list[Feature], ask: Ask) -> Node:
    """Return how features are scored by a fitted classifier, pipeline or search."""
    if hasattr(model, "best_estimator_"):
        return _score_of(model.best_estimator_, features, ask)
    name = type(model).__name__
    try:
        if name in _BY_TYPE:
            return _BY_TYPE[name](model, features, ask)
    except Unsupported as error:
        name = str(error)
    return Asked(features, without_names(model), ask, name)


def _pipeline(model: Any, features: list[Feature], ask: Ask) -> Node:
    """Follow the steps as far as they are known, and ask the rest of the pipeline itself."""
    for place, (_, step) in enumerate(model.steps[:-1]):
        try:
            features = transformed(step, features)
        except Unsupported as error:
            rest = [(name, without_names(each)) for name, each in model.steps[place:]]
            return Asked(features, Pipeline(rest), ask, str(error))
    return _score_of(model.steps[-1][1], features, ask)


def _of_label(score: Trees | Layers, learner: Any, ask: Ask, *, of_lightgbm: bool = False) -> Node:
    """Return the score or the probability of a label, from that of the second of two classes."""
    second = ask.place(learner) == 1
    score = score if second else score.negated()
    if ask.method == "decision_function":
        return score
    return Logistic([score], not second, of_lightgbm)


# --- trees ---------------------------------------------------------------------------------------


def _forest(learner: Any, features: list[Feature], ask: Ask) -> Trees:
    place, grown = ask.place(learner), getattr(learner, "estimators_", [learner])
    takes_gaps = get_tags(learner).input_tags.allow_nan and learner.monotonic_cst is None
    return Trees(
        features,
        [sklearn_tree(each.tree_, place) for each in grown],
        rounding="single",
        divisor=len(grown),
        in_order=getattr(learner, "n_jobs", None) in (None, 1),
        takes_gaps=bool(takes_gaps),
    )


def _packed_forest(learner: Any, features: list[Feature], ask: Ask) -> Trees:
    if ask.place(learner) != 1:
        raise Unsupported("a forest of an ensemble for its common label")
    trees = learner.trees()
    return Trees(features, trees, rounding="single", divisor=len(trees))


def _histogram_boosting(learner: Any, features: list[Feature], ask: Ask) -> Node:
    if len(learner.classes_) != 2 or learner._preprocessor is not None:
        raise Unsupported("boosting with native categories, or with more than two classes")
    trees = [histogram_tree(predictor.nodes) for (predictor,) in learner._predictors]
    start = float(np.ravel(learner._baseline_prediction)[0])
    return _of_label(Trees(features, trees, start), learner, ask)


def _lightgbm(learner: Any, features: list[Feature], ask: Ask) -> Node:
    objective = str(learner.booster_.dump_model(num_iteration=1)["objective"])
    if objective != "binary sigmoid:1" or len(learner.classes_) != 2:
        raise Unsupported(f"LightGBM with the objective {objective!r}")
    score = Trees(features, lightgbm_trees(learner.booster_), rounding="tiny")
    return _of_label(score, learner, ask, of_lightgbm=True)


def _bagging(model: Any, features: list[Feature], ask: Ask) -> Node:
    if ask.method != "predict_proba" or model.n_jobs not in (None, 1):
        raise Unsupported("bagging with n_jobs, or without probabilities")
    place, parts = ask.place(model), []
    for each, chosen in zip(model.estimators_, model.estimators_features_, strict=True):
        if len(each.classes_) != len(model.classes_):
            raise Unsupported("bagging with samples of one class")
        inner = Ask(ask.method, np.asarray(each.classes_).tolist()[place])
        is_all = np.array_equal(chosen, np.arange(len(features)))
        some = features if is_all else [features[column] for column in chosen]
        parts.append(_score_of(each, some, inner))
    return mean_of(parts)


# --- sums of products ----------------------------------------------------------------------------


def _linear(learner: Any, features: list[Feature], ask: Ask) -> Node:
    if len(learner.classes_) != 2:
        raise Unsupported(f"{type(learner).__name__} with more than two classes")
    weights = np.reshape(learner.coef_, (-1, 1))
    form = Layers(features, [weights], [np.broadcast_to(learner.intercept_, 1)])
    return _of_label(form, learner, ask)


def _network(learner: Any, features: list[Feature], ask: Ask) -> Node:
    if learner.out_activation_ != "logistic" or learner.n_outputs_ != 1:
        raise Unsupported("a network with more than two classes")
    if learner.activation not in ACTIVATIONS:
        raise Unsupported(f"a network with the activation {learner.activation!r}")
    form = Layers(features, learner.coefs_, learner.intercepts_, learner.activation)
    return _of_label(form, learner, ask)


# --- models of this library ----------------------------------------------------------------------


def _check_rare(model: Any, ask: Ask) -> None:
    if ask.method != "decision_function" or model.rare_label_ != ask.label:
        raise Unsupported(f"{type(model).__name__} for another label than its rare one")


def _aware_forest(model: Any, features: list[Feature], ask: Ask) -> Node:
    _check_rare(model, ask)
    inner = Ask("predict_proba", True)
    parts: list[Node] = [_forest(each, features, inner) for each in model.forests_]
    return Weighted(parts, np.asarray(model.weights_, dtype=np.float64))


def _aware_boosting(model: Any, features: list[Feature], ask: Ask) -> Node:
    _check_rare(model, ask)
    parts: list[Node] = [
        Trees(features, lightgbm_trees(booster), rounding="tiny") for booster in model.boosters_
    ]
    return mean_of(parts)


def _aware_linear(model: Any, features: list[Feature], ask: Ask) -> Node:
    _check_rare(model, ask)
    return Layers(features, [model.coef_[0][:, np.newaxis]], [np.zeros(1)])


def _ensemble(model: Any, features: list[Feature], ask: Ask) -> Node:
    """Return the mean log-odds of the members, or the probability made of it."""
    is_negative = any(min(of.values()) < 0 for of in model.weights_.values())
    if is_negative or ask.place(model) != model.rare_place_:
        raise Unsupported("an ensemble for its common label, or with negative weights")
    views = {name: transformed(view, features) for name, view in model.columns_.items()}
    inner, weights = Ask("predict_proba", 1), []
    parts: list[Node] = []
    for name, by_form in model.members_.items():
        view = views[model.views_[name]]
        for form, models in by_form.items():
            chances = mean_of([_score_of(each, view, inner) for each in models])
            n_trees = sum(map(n_averaged, models))
            parts.append(LogOdds([chances], float(n_trees or 10_000), n_trees + len(models)))
            weights.append(model.weights_[name][form])
    score = Weighted(parts, np.array(weights, dtype=np.float64))
    return score if ask.method == "decision_function" else Logistic([score])


# By name: LightGBM is optional, and nothing else of scikit-learn need be imported.
_BY_TYPE: dict[str, Callable[[Any, list[Feature], Ask], Node]] = {
    "BaggingClassifier": _bagging,
    "CapacityAwareBoostingClassifier": _aware_boosting,
    "CapacityAwareForestClassifier": _aware_forest,
    "CapacityAwareLinearClassifier": _aware_linear,
    "CapacityEnsembleClassifier": _ensemble,
    "DecisionTreeClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "FrozenEstimator": lambda model, features, ask: _score_of(model.estimator, features, ask),
    "HistGradientBoostingClassifier": _histogram_boosting,
    "LGBMClassifier": _lightgbm,
    "LinearDiscriminantAnalysis": _linear,
    "LinearSVC": _linear,
    "LogisticRegression": _linear,
    "LogisticRegressionCV": _linear,
    "MLPClassifier": _network,
    "PackedForest": _packed_forest,
    "Pipeline": _pipeline,
    "RandomForestClassifier": _forest,
    "RidgeClassifier": _linear,
}
