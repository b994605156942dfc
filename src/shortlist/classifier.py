"""`CapacityClassifier`: wraps any scoring model, splits, fits, calibrates, flags."""

from __future__ import annotations

from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._decisions import CalibrationSample, CapacityDecisionMixin, Decisions, Floats, Mask
from ._labels import find_rare
from ._sklearn import (
    RESPONSE_METHODS,
    class_column,
    class_index,
    n_rows,
    response,
    response_method_of,
    routing_enabled,
    slice_fit_params,
    take_rows,
)
from ._validation import check_confidence, check_option, check_seed
from .capacity import Capacity, check_capacity
from .thresholds import GUARANTEES, TIES

__all__ = ["CapacityClassifier"]


def _model_has(method: str) -> Any:
    def check(self: CapacityClassifier) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        getattr(model, method)  # raises the AttributeError that explains what is missing
        return True

    return check


class CapacityClassifier(CapacityDecisionMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Flag as many rare items as a follow-up capacity allows, with any classifier inside.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with `predict_proba` or `decision_function`. It gets `X` as it
        is: arrays, data frames with strings, sparse matrices.
    capacity : Capacity
        How much can be followed up: ``Capacity.multiple(b)`` in units of the prevalence,
        ``Capacity.fraction(c)``, or ``Capacity.count(k, per=n)``.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y`.
    cv : float, int, splitter or "prefit", default=0.5
        Where the scores for the threshold come from:

        - a float is the share of the data held out for calibration, stratified; the model is
          fitted on the rest, as in the paper. Every guarantee holds.
        - an int or splitter cross-fits: the model is refitted on everything, and the threshold
          comes from pooled out-of-fold scores. This wastes no data, but the scores are those of
          other models than the one that is used, so guarantees are *approximate*; boosted trees
          may exceed them clearly. ``ensemble=True`` keeps the guarantee in expectation.
        - ``"prefit"``, or a :class:`~sklearn.frozen.FrozenEstimator`, takes the model as it is and
          calibrates on all the data given to `fit`, which the model must not have seen. Labels
          may then be left out, if `rare_label` is given and the capacity is not a multiple.
    guarantee : {"plug-in", "expected", "confident", "next-batch"}, default="plug-in"
        What is promised about future flags; see :func:`~shortlist.calibrate_threshold`. With
        "confident", a multiple as capacity and labelled calibration items, the promise covers the
        unknown prevalence as well.
    confidence : float, default=0.95
        How surely, for the last two guarantees.
    ties : {"exclude", "hash"}, default="exclude"
        Items tied with the threshold are left out as a block, or flagged in part by a hash of
        their ids (or of their own values), so that coarse scores use their capacity.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Which output of the model is the score; "auto" takes the first that it has.
    ensemble : bool, default=False
        With an int or splitter as `cv`: keep the model of each fold with a threshold from the items
        it has not seen, and let a hash of the row pick the model that decides about it. The
        guarantee "expected" then holds exactly.
    random_state : int, RandomState instance or None, default=None
        Controls the split, and is the key of the hash.
    n_jobs : int, default=None
        Number of folds fitted in parallel.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model. Not there with ``ensemble=True``.
    estimators_ : list of classifiers
        The fitted models that decide: just `estimator_`, or one for each fold.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_label_ : label
        The label that is looked for.
    prevalence_ : float
        Share of rare items in `fit`.
    capacity_fraction_ : float
        The capacity as a fraction of all items.
    threshold_ : float
        Items with a score strictly above are flagged. An array with ``ensemble=True``.
    calibration_ : CalibratedThreshold
        The threshold with its interval and sample size; a list with ``ensemble=True``.
    likelihood_ratio_threshold_ : float
        For probability scores, the level :math:`\gamma^*` of the likelihood ratio that the
        threshold stands for.
    modified_prior_ : float
        The prior :math:`\pi_0' = 1 / (1 + \gamma^*)` under which the rule of Bayes is this rule.
    class_weight_ : dict
        Class weights under which the rule of Bayes is this rule; the common classes weigh 1.
    n_features_in_, feature_names_in_
        Those of the model, where it has them.

    See Also
    --------
    calibrate_threshold : The threshold alone, from scores.
    select : The batch mode alone, from scores.

    Notes
    -----
    In binary problems `decision_function` is positive where an item is flagged, also when the rare
    label sorts first. scikit-learn's rank metrics take it to speak for ``classes_[1]``: with the
    rare label first, use :func:`~shortlist.capacity_scorer`, or metrics of probabilities.

    Extra arguments of `fit`, such as `sample_weight`, go to the model's `fit`; they do not weight
    the capacity.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=10_000, random_state=0)
    >>> model = CapacityClassifier(
    ...     LogisticRegression(max_iter=1000), capacity=Capacity.multiple(2), random_state=0
    ... ).fit(X, y)
    >>> bool(model.predict(X).mean() < 0.03)
    True
    >>> int(model.select(X, Capacity.count(50)).sum())
    50
    """

    def __init__(
        self,
        estimator: Any,
        *,
        capacity: Capacity,
        rare_label: Any = None,
        cv: Any = 0.5,
        guarantee: str = "plug-in",
        confidence: float = 0.95,
        ties: str = "exclude",
        response_method: str = "auto",
        ensemble: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.capacity = capacity
        self.rare_label = rare_label
        self.cv = cv
        self.guarantee = guarantee
        self.confidence = confidence
        self.ties = ties
        self.response_method = response_method
        self.ensemble = ensemble
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, ids: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Fit the model and calibrate its threshold.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items, in any form the model takes.
        y : array-like of shape (n_items,)
            Labels of any type.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.
        **params : dict
            Handed to the `fit` of the model, and sliced with the rows where they have their
            length. With metadata routing enabled, they go where they were requested.

        Returns
        -------
        self
        """
        self._check_params()
        X, y, ids = indexable(X, y, None if ids is None else np.asarray(ids))
        self._seed = check_seed(self.random_state)
        y, is_rare = self._learn_labels(y)
        self._prevalence = None if is_rare is None else _share(is_rare)
        self.capacity.as_ratio(self._prevalence)  # an impossible capacity fails before any model
        if self._is_prefit:
            self._take_as_it_is(X, is_rare, ids)
        else:
            self._fit_models(X, y, is_rare, ids, self._route(params))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the model's probabilities; the capacity does not change them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            In the order of `classes_`; the mean over the folds with ``ensemble=True``.
        """
        check_is_fitted(self)
        return self._mean_response(X, "predict_proba")

    def recalibrate(self, X: Any, *, ids: ArrayLike | None = None) -> Self:
        """Find a new threshold from unlabelled items, without refitting the model.

        The guarantee then rests on these items alone: they should be recent, like the ones to
        come, and not among those the model was trained on. The prevalence stays that of `fit`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Unlabelled items.
        ids : array-like of shape (n_items,), default=None
            Identifiers for hashed ties; the row's own values are hashed when absent.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        scores = (self._rare_column(self._response(model, X)) for model in self.estimators_)
        keys = self._tie_keys(X, ids)
        self._calibrate_on([self._sample_of(column, keys) for column in scores])
        return self

    @property
    def likelihood_ratio_threshold_(self) -> float:
        r"""The level :math:`\gamma^*` of f0 / f1 that a threshold on probabilities stands for."""
        odds = self._threshold_odds("likelihood_ratio_threshold_")
        return odds * (1 - self.prevalence_) / self.prevalence_

    @property
    def modified_prior_(self) -> float:
        r"""The prior :math:`\pi_0'` under which the rule of Bayes is this rule."""
        return 1 / (1 + self.likelihood_ratio_threshold_)

    @property
    def class_weight_(self) -> dict[Any, float]:
        """Class weights under which the rule of Bayes is this rule."""
        odds = self._threshold_odds("class_weight_")
        rare_weight = 1 / odds if odds > 0 else np.inf
        return {
            label: float(rare_weight) if label == self.rare_label_ else 1.0
            for label in self.classes_.tolist()
        }

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata: to the model's `fit` and the splitter's `split`.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        # Under a capacity, accuracy is not what is asked for.
        tags.classifier_tags.poor_score = True
        return tags

    # --- fitting --------------------------------------------------------------------------------

    def _check_params(self) -> None:
        check_capacity(self.capacity)
        check_option("guarantee", self.guarantee, GUARANTEES)
        check_option("ties", self.ties, TIES)
        check_option("response_method", self.response_method, ("auto", *RESPONSE_METHODS))
        check_confidence(self.confidence)
        if self._holds_out and not 0 < self.cv < 1:
            raise ValueError(
                f"cv={self.cv!r} as a float is the share of the data held out for calibration, and "
                "must lie strictly between 0 and 1. For a number of folds, pass an int."
            )

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator) or (
            isinstance(self.cv, str) and self.cv == "prefit"
        )

    @property
    def _holds_out(self) -> bool:
        return isinstance(self.cv, Real) and not isinstance(self.cv, Integral)

    def _learn_labels(self, y: Any) -> tuple[NDArray[Any] | None, Mask | None]:
        """Set `classes_` and `rare_label_`; return the labels and where the rare ones are."""
        if y is None:
            return self._learn_no_labels()
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_ = np.asarray(self.estimator.classes_) if self._is_prefit else np.unique(y)
        self._check_classes(self.classes_)
        is_rare, self.rare_label_ = find_rare(y, self.rare_label)
        return y, is_rare

    def _check_classes(self, classes: NDArray[Any]) -> None:
        if classes.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs items of two classes or more, with a positive "
                f"sample_weight if there is one; got only one class, {classes.tolist()}."
            )

    def _learn_no_labels(self) -> tuple[None, None]:
        if not self._is_prefit:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if self.rare_label is None:
            raise ValueError("Without labels y, say which label is rare: rare_label=...")
        self.classes_, self.rare_label_ = np.asarray(self.estimator.classes_), self.rare_label
        return None, None

    def _route(self, params: dict[str, Any]) -> Bunch:
        if routing_enabled():
            return process_routing(self, "fit", **params)
        return Bunch(estimator=Bunch(fit=params), splitter=Bunch(split={}))

    def _take_as_it_is(self, X: Any, is_rare: Mask | None, ids: Any) -> None:
        self.estimator_ = self.estimator
        self.estimators_ = [self.estimator]
        self._method = response_method_of(self.estimator, self.response_method)
        scores = self._unseen_scores(self.estimator, X)
        self._calibrate_on([self._sample_of(scores, self._tie_keys(X, ids), is_rare)])

    def _fit_models(self, X: Any, y: Any, is_rare: Any, ids: Any, routed: Bunch) -> None:
        """Fit on each training part, score what it left out, and keep what will decide."""
        self._method = response_method_of(self.estimator, self.response_method)
        weights = routed.estimator.fit.get("sample_weight")
        if weights is not None:
            self._check_classes(np.unique(y[np.asarray(weights) != 0]))
        folds = list(self._folds(X, y, is_rare, routed.splitter.split))
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_and_score)(X, y, train, unseen, routed.estimator.fit)
            for train, unseen in folds
        )
        keys = self._tie_keys(X, ids)
        samples = [
            self._sample_of(scores, _keys_within(keys, unseen), is_rare[unseen])
            for (_, scores), (_, unseen) in zip(fitted, folds, strict=True)
        ]
        if self._holds_out or self.ensemble:
            self.estimators_ = [model for model, _ in fitted]
        else:
            self.estimators_ = [clone(self.estimator).fit(X, y, **routed.estimator.fit)]
            samples = [_pooled(samples)]
        self._remember_single_model()
        self._calibrate_on(samples)

    def _folds(self, X: Any, y: Any, is_rare: Mask, split_params: dict[str, Any]) -> Any:
        if not self._holds_out:
            return check_cv(self.cv, y, classifier=True).split(X, y, **split_params)
        n_rare = int(np.count_nonzero(is_rare))
        if n_rare < 2:
            raise ValueError(
                f"The class {self.rare_label_!r} has only {n_rare} item, too few to fit on one "
                "part of the data and calibrate on the other. Use cv='prefit', or find more items "
                "of this class."
            )
        return [_hold_out(is_rare, self.cv, check_random_state(self.random_state))]

    def _fit_and_score(self, X: Any, y: Any, train: Any, unseen: Any, fit_params: Any) -> Any:
        params = slice_fit_params(X, fit_params, indices=train)
        model = clone(self.estimator).fit(take_rows(X, train), y[train], **params)
        return model, self._unseen_scores(model, take_rows(X, unseen))

    def _unseen_scores(self, model: Any, X: Any) -> Floats:
        return class_column(response(model, X, self._method), class_index(model, self.rare_label_))

    def _remember_single_model(self) -> None:
        if len(self.estimators_) == 1:
            self.estimator_ = self.estimators_[0]
        elif hasattr(self, "estimator_"):
            del self.estimator_

    # --- deciding -------------------------------------------------------------------------------

    def _response(self, model: Any, X: Any, method: str | None = None) -> Floats:
        return response(model, X, method or self._method, self.classes_)

    def _mean_response(self, X: Any, method: str) -> Floats:
        if len(self.estimators_) == 1:
            return self._response(self.estimators_[0], X, method)
        return np.mean([self._response(model, X, method) for model in self.estimators_], axis=0)

    def _output(self, X: Any) -> Floats:
        return self._mean_response(X, self._method)

    def _decide(self, X: Any, ids: ArrayLike | None) -> Decisions:
        """Decide by the one model, or let each row be judged by the fold that its hash picks."""
        if len(self.estimators_) == 1:
            return super()._decide(X, ids)
        (X,) = indexable(X)
        keys = self._tie_keys(X, ids)
        picks = self._tie_keys(X, ids, seed=self._seed + 1)(np.arange(n_rows(X)))
        fold_of = (picks * len(self.estimators_)).astype(int)
        parts, rows_of_parts = [], []
        for fold in np.unique(fold_of):
            rows = np.flatnonzero(fold_of == fold)
            output = self._response(self.estimators_[fold], take_rows(X, rows))
            parts.append(
                self._decide_by(self._calibrations[fold], output, _keys_within(keys, rows))
            )
            rows_of_parts.append(rows)
        back = np.argsort(np.concatenate(rows_of_parts))
        return Decisions(
            flagged=np.concatenate([part.flagged for part in parts])[back],
            threshold=np.array([calibration.value for calibration in self._calibrations])[fold_of],
            output=np.concatenate([part.output for part in parts])[back],
        )

    def _threshold_odds(self, name: str) -> float:
        """Return t / (1 - t) for a threshold t on probabilities."""
        check_is_fitted(self)
        if self._method != "predict_proba" or len(self.estimators_) > 1:
            raise AttributeError(f"{name} is defined for a single threshold on probabilities.")
        threshold = float(np.clip(self.threshold_, 0, 1))
        return threshold / (1 - threshold) if threshold < 1 else np.inf


def _share(is_rare: Mask) -> Fraction:
    return Fraction(int(np.count_nonzero(is_rare)), is_rare.size)


def _hold_out(is_rare: Mask, share: float, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Split rare and common items at random in the same proportion; both parts get some of each."""
    held_out = np.zeros(is_rare.size, dtype=bool)
    for stratum in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        n_held_out = min(max(round(share * stratum.size), 1), stratum.size - 1)
        held_out[rng.permutation(stratum)[:n_held_out]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _keys_within(keys: Any, rows: NDArray[np.intp]) -> Any:
    return lambda tied: keys(rows[tied])


def _pooled(samples: list[CalibrationSample]) -> CalibrationSample:
    def joined(name: str) -> Any:
        parts = [getattr(sample, name) for sample in samples]
        return None if parts[0] is None else np.concatenate(parts)

    return CalibrationSample(joined("scores"), joined("tie_keys"), joined("is_rare"))
