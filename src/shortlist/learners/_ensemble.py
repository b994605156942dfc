"""`CapacityEnsembleClassifier`: a few different models that rank rows together."""

from __future__ import annotations

import zlib
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    check_memory,
)

from .._core.arrays import Doubles, Mask, Rows
from .._core.documented import DocumentedMixin
from .._core.folds import check_labels, two_classes
from .._core.labels import find_rare, rare_share
from .._core.validation import check_option, check_sample_weight, check_seed
from ..capacity import Capacity, check_capacity
from ._fitting import (
    FEWEST_JUDGED,
    FEWEST_RARE,
    Fitted,
    Training,
    combined_scores,
    fit_member,
    greedy_weights,
    held_out_rows,
    one_thread_for_products,
    weighted_sum,
)
from .columns import VIEWS, as_view, check_items, make_view, split_columns
from .members import FORMS, LONG, MEMBERS, SIZES, Size, announce_member

#: Something for each form of each kind of member.
T = TypeVar("T")
ByForm = dict[str, dict[str, T]]


@dataclass(eq=False, repr=False)
class CapacityEnsembleClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    r"""Rank rows by the mean log-odds of a few different models, none of them tuned.

    Boosted trees, extremely randomised trees, a random forest, a small neural network and a
    logistic regression make different mistakes, and their average finds more rare rows than each
    of them on most tables. Frames may have texts and gaps: each member gets the columns in a form
    that suits it.

    It is a plain classifier. Wrap it in a :class:`~shortlist.CapacityClassifier` to flag rows
    within a capacity.

    Parameters
    ----------
    capacity : Capacity, default=None
        How many items can be followed up. With at least 30 rare rows, members that detect more at
        this capacity, on rows that they have not seen, get more weight.
    rare_label : label, default=None
        The label to find; `None` takes the rarest in `y`. It matters for forms and weights.
    members : tuple of str, default=("boosting", "extra-trees", "forest", "logistic", "network")
        The kinds of models. Without LightGBM (the extra `boosting`), "boosting" uses scikit-learn's
        :class:`~sklearn.ensemble.HistGradientBoostingClassifier`.
    size : {"quick", "default", "thorough"}, default="default"
        How many trees are grown and how often members are fitted anew with other random numbers.
    memory : str or joblib.Memory, default=None
        A folder for finished members. A fit that was interrupted resumes there when it is called
        again with the same rows and parameters.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    n_jobs : int, default=None
        Number of threads that grow trees.

    Attributes
    ----------
    members_ : dict from str to dict from str to list of classifiers
        The fitted models of each kind and form, one for each round: scikit-learn's
        `LogisticRegression`, `MLPClassifier` and `HistGradientBoostingClassifier`, or LightGBM's
        `LGBMClassifier`; forests as a few arrays. The forms are
        "flexible" and "smooth" (large leaves, few splits, strong penalties), which noisy tables
        need. A kind has one of them, or both in doubt.
    weights_ : dict from str to dict from str to float
        Weight of each kind and form; they add up to 1.
    columns_ : dict from str to transformer
        The fitted forms of the columns. "codes", for trees: numbers with gaps filled by the median
        and marked (`SimpleImputer`), categories as numbers (`OrdinalEncoder`). "scaled", for
        "logistic" and "network": the same numbers after a `StandardScaler`, categories by a
        `OneHotEncoder`. Of a frame, it is a `ColumnTransformer` with the parts "numbers" (a
        pipeline) and "categories", where there are such columns; otherwise the pipeline alone.
    views_ : dict from str to str
        The form of the columns that each kind of member takes.
    classes_ : ndarray
        Labels seen in `fit`.
    rare_place_ : int
        The place of the label to find in `classes_`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    shortlist.CapacityClassifier : Flags rows by this ranking, within a capacity.
    make_learner : Single models.

    Notes
    -----
    The score of a row is :math:`\sum_m w_m \log \frac{p_m}{1 - p_m}`, where
    :math:`p_m` is the mean probability of the models of kind and form m, pulled away from 0 and 1
    by half a tree: :math:`p_m = (p T + 1/2) / (T + 1)` with T trees, and T = 10,000 for other
    models.

    Forms and weights come from scores of the rows by models that have not seen them: out of bag,
    or from three folds within the rows given. The two forms of a kind take part by their log-loss:
    if the smooth one is lower by z standard errors, its odds are :math:`e^{z - 1/2}`, and a share
    below 0.1 is left out. Weights rise with the slope of the line from log-odds to those of the
    labels (Platt, 1999): an overconfident model would dominate the others.
    Then greedy selection after Caruana and others (2004), shrunk to equal weights, prefers kinds
    that detect more at the capacity. ``size="quick"`` scores a logistic model out of sample only:
    its better form is taken for all kinds, and all weigh the same. With fewer than 10 rare rows,
    and above 50,000 rows, all kinds are flexible.

    Long tables: each tree of a forest is grown on a random sample of the rows, and the network is
    fitted to a sample with as many rare rows as possible, weighted to the shares in all rows.

    Examples
    --------
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.datasets import make_fraud
    >>> from shortlist.learners import CapacityEnsembleClassifier
    >>> X, y = make_fraud(n_samples=2_000, prevalence=0.03, random_state=0)
    >>> ranking = CapacityEnsembleClassifier(size="quick", random_state=0).fit(X[:1_000], y[:1_000])
    >>> list(ranking.members_)
    ['boosting', 'extra-trees', 'forest', 'logistic', 'network']
    >>> model = CapacityClassifier(ranking, capacity=Capacity.multiple(2), cv="prefit")
    >>> bool(y[1_000:][model.fit(X[1_000:], y[1_000:]).select(X[1_000:])].mean() > 5 * y.mean())
    True
    """

    capacity: Capacity | None = None
    _: KW_ONLY
    rare_label: Any = None
    members: tuple[str, ...] = tuple(MEMBERS)
    size: str = "default"
    memory: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit all members.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_items, n_features)
            Items. Frames may have texts; gaps are allowed.
        y : array-like of shape (n_items,)
            Labels, two different ones. For more, use
            :class:`~sklearn.multiclass.OneVsRestClassifier`.
        sample_weight : array-like of shape (n_items,), default=None
            Weights of the items.

        Returns
        -------
        self
        """
        size = self._check_params()
        X = check_items(self, X, reset=True)
        y = check_labels(y)
        check_consistent_length(X, y)
        codes = self._learn_labels(y)
        weights = None if sample_weight is None else check_sample_weight(sample_weight)
        check_consistent_length(X, codes, weights)
        with one_thread_for_products():
            views = self._learn_columns(X)
            self.weights_ = self._fit_members(views, codes, weights, size)
        return self

    def _check_params(self) -> Size:
        if isinstance(self.members, str) or not len(self.members):
            raise ValueError(
                f"members must be a tuple with some of {tuple(MEMBERS)}; got {self.members!r}."
            )
        for name in self.members:
            check_option("members", name, MEMBERS)
        if self.capacity is not None:
            check_capacity(self.capacity)
        return SIZES[check_option("size", self.size, SIZES)]

    def _learn_labels(self, y: NDArray[Any]) -> Rows:
        """Return 1 for the rare label, and 0 for the other."""
        self.classes_, counts = two_classes(self, y)
        self.rare_place_ = int(counts.argmin())
        if self.rare_label is not None:
            self.rare_place_ = int(find_rare(self.classes_, self.rare_label)[0].argmax())
        return (y == self.classes_[self.rare_place_]).astype(np.intp)

    # --- columns -------------------------------------------------------------------------------

    def _learn_columns(self, X: Any) -> dict[str, Any]:
        """Learn the forms of the columns, and return the rows in each."""
        self.views_ = {name: MEMBERS[name].view for name in MEMBERS if name in self.members}
        numbers, categories = split_columns(X)
        self.columns_ = {
            view: make_view(view, X, numbers, categories)
            for view in VIEWS
            if view in self.views_.values()
        }
        return {view: as_view(each.fit_transform(X)) for view, each in self.columns_.items()}

    # --- members -------------------------------------------------------------------------------

    def _fit_members(
        self, views: dict[str, Any], codes: Rows, weights: Doubles | None, size: Size
    ) -> ByForm[float]:
        """Fit the models round by round, and return the weight of each kind and form.

        Later rounds fit the forms that the first one kept.
        """
        entropy = None
        if self.random_state is not None:  # as different from fold to fold as the rows are
            entropy = [check_seed(self.random_state), zlib.crc32(codes.tobytes())]
        rng = np.random.default_rng(entropy)
        n_rows, fewest, is_long = codes.size, min(np.bincount(codes)), codes.size > LONG
        judges = fewest >= FEWEST_JUDGED and (size.weighs or is_long)
        held_out = held_out_rows(codes, rng) if judges and is_long else None
        finished = check_memory(self.memory).cache(fit_member)

        def fit(name: str, seed: int, forms: tuple[str, ...], judges: bool) -> Fitted:
            rows = views[MEMBERS[name].view], codes, weights, held_out, self.n_jobs
            return finished(Training(name, seed, self.size, *rows), forms, judges)

        seeds = self._seeds(size, rng)
        forms: tuple[str, ...] = FORMS if judges and not is_long else FORMS[:1]
        if not judges and fewest >= FEWEST_JUDGED and "scaled" in views:  # as a logistic model says
            forms = tuple(fit("logistic", seeds[0][1], FORMS, True).models)[:1]
        self.members_: ByForm[list[Any]] = {}
        first: dict[str, Fitted] = {}
        for name, seed in seeds:
            known = tuple(self.members_.get(name, ()))
            announce_member(name, MEMBERS[name].expected_work(size, n_rows, is_first=not known))
            fitted = fit(name, seed, known or forms, judges and not known)
            for form, model in fitted.models.items():
                self.members_.setdefault(name, {}).setdefault(form, []).append(model)
            first.setdefault(name, fitted)
        is_rare = codes == 1 if held_out is None else codes[held_out] == 1
        return self._weigh(first, is_rare if judges else None)

    def _weigh(self, judged: dict[str, Fitted], is_rare: Mask | None) -> ByForm[float]:
        """Return weights by how far members can be trusted, and by what they detect."""
        weights = dict.fromkeys(judged, 1.0)
        if is_rare is not None and self.capacity and np.count_nonzero(is_rare) >= FEWEST_RARE:
            max_flags = self.capacity.max_flags(is_rare.size, rare_share(is_rare))
            trusted = {name: weighted_sum(of.unseen, of.trust) for name, of in judged.items()}
            weights = greedy_weights(trusted, is_rare, max_flags)
        total = sum(weights[name] * sum(of.trust.values()) for name, of in judged.items())
        return {
            name: {form: weights[name] * part / total for form, part in of.trust.items()}
            for name, of in judged.items()
        }

    def _seeds(self, size: Size, rng: np.random.Generator) -> list[tuple[str, int]]:
        """List members and seeds by rounds: the models that come first are all different."""
        seeds = rng.integers(2**31, size=(size.rounds, len(MEMBERS)))
        return [
            (name, int(seed))
            for round_, seeds_of_round in enumerate(seeds)
            for (name, member), seed in zip(MEMBERS.items(), seeds_of_round, strict=True)
            if name in self.members and (round_ == 0 or member.is_random)
        ]

    # --- scores --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Doubles:
        """Return the weighted mean of the members' scores.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
            Log-odds of the second class.
        """
        check_is_fitted(self)
        X = check_items(self, X, reset=False)
        views = {view: as_view(columns.transform(X)) for view, columns in self.columns_.items()}
        parts = []
        for name, by_form in self.members_.items():
            view = views[self.views_[name]]
            scores = {form: combined_scores(models, view) for form, models in by_form.items()}
            parts.append(weighted_sum(scores, self.weights_[name]))
        odds = np.sum(parts, axis=0)
        return odds if self.rare_place_ == 1 else -odds

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probabilities that belong to the scores.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, 2)
            In the order of `classes_`.
        """
        scores = self.decision_function(X)
        return expit(np.column_stack([-scores, scores]))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier label.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
