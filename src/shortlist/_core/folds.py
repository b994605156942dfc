"""Splits, folds and metadata routing: what every classifier does before it calibrates."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .arrays import Rows
from .scoring import (
    out_of_bag_scores,
    routing_enabled,
    slice_fit_params,
    take_rows,
    with_out_of_bag,
)

# Whole numbers and texts cannot be anything but labels.
_PLAIN_LABELS = "biuUS"


def forget(classifier: Any) -> None:
    """Drop what an earlier fit has learned: a failed fit must not leave a mixture."""
    for name in list(vars(classifier)):
        if name.endswith("_") and not name.startswith("_"):
            delattr(classifier, name)


@contextlib.contextmanager
def restored_on_error(classifier: Any) -> Iterator[None]:
    """Put a classifier back as it was if the block fails or is interrupted."""
    before = vars(classifier).copy()
    try:
        yield
    except BaseException:
        vars(classifier).clear()
        vars(classifier).update(before)
        raise


def remember_features(classifier: Any, model: Any) -> None:
    """Take over the number and names of the features, where the model has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(classifier, name, getattr(model, name))


def check_cv_option(cv: Any, *, words: tuple[str, ...] = ("prefit",)) -> None:
    """Raise an error for a `cv` that is neither a share, nor folds, nor one of the `words`."""
    if isinstance(cv, str) and cv not in words:
        named = " or ".join(repr(word) for word in words)
        raise ValueError(f"cv must be a float, an int, a splitter or {named}; got {cv!r}.")
    if holds_out(cv) and not 0 < cv < 1:
        raise ValueError(
            f"cv={cv!r} as a float is the share of the data held out for calibration, and "
            "must lie strictly between 0 and 1. For a number of folds, pass an int."
        )


def is_prefit(estimator: Any, cv: Any) -> bool:
    """Whether the model is already trained and is not fitted again."""
    return isinstance(estimator, FrozenEstimator) or (isinstance(cv, str) and cv == "prefit")


def holds_out(cv: Any) -> bool:
    """Whether a share of the data is held out."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def check_trained(estimator: Any) -> None:
    """Raise an error for a model that should be trained and is not."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            f"A trained model is needed, and this {type(estimator).__name__} is not. Fit "
            "it first, or drop cv='prefit'. In a search or cross-validation, which copies "
            "models without what they have learned, wrap it in a FrozenEstimator."
        ) from error


def check_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array without gaps."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in _PLAIN_LABELS:
        return y
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity. Leave out the items without a label.")
    if y.dtype.kind not in _PLAIN_LABELS:
        check_classification_targets(y)
    return y


def check_classes(classifier: Any, classes: NDArray[Any]) -> None:
    """Raise an error if there are fewer than two classes."""
    if classes.size < 2:
        raise ValueError(
            f"{type(classifier).__name__} needs items of two classes or more, with a positive "
            f"sample_weight if there is one; got only one class, {classes.tolist()}."
        )


def check_enough_rare(is_rare: NDArray[np.bool_], rare_label: Any) -> None:
    """Raise an error when one of two parts of the data would be without a class."""
    n_rare = int(np.count_nonzero(is_rare))
    if min(n_rare, is_rare.size - n_rare) < 2:
        raise ValueError(
            f"The class {rare_label!r} has {n_rare} of {is_rare.size} items. Learning from one "
            "part of the data and calibrating on the other takes at least two items of this class "
            "and two others. Use cv='prefit', or find more items."
        )


def hold_out(
    strata: NDArray[Any], share: float, rng: np.random.Generator, groups: Rows | None = None
) -> tuple[Rows, Rows]:
    """Split each stratum at random in the same proportion; both parts get some of each.

    With groups, whole groups are split, each by the rarest stratum that it has an item of.

    Each item is held out by a coin, which gives about the right numbers; in each stratum, a random
    few then change sides to make them exact. That is many times as fast as shuffling, and no
    subset is preferred, since nothing here tells one item of a stratum from another.
    """
    if groups is not None:
        return _hold_out_groups(strata, share, rng, groups)
    # A child, since the items themselves may have been drawn from a generator of the same seed.
    (rng,) = rng.spawn(1)
    held_out = rng.random(strata.size, dtype=np.float32) < share
    for code in range(int(strata.max()), -1, -1):
        own = strata == strata.dtype.type(code)  # in the type of the strata, which may be bool
        size, mine = int(np.count_nonzero(own)), own & held_out
        wanted = min(max(round(share * size), 1), max(size - 1, 0))
        excess = int(np.count_nonzero(mine)) - wanted
        if excess:
            side = np.flatnonzero(mine if excess > 0 else own & ~held_out)
            movers = rng.choice(side.size, abs(excess), replace=False, shuffle=False)
            held_out[side[movers]] = excess < 0
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _hold_out_groups(
    strata: NDArray[Any], share: float, rng: np.random.Generator, groups: Rows
) -> tuple[Rows, Rows]:
    rarest = _rarest_strata(strata, groups)
    learned_on, held_out = (
        np.flatnonzero(np.isin(groups, part)) for part in hold_out(rarest, share, rng)
    )
    _check_learned(strata, learned_on, held_out, groups)
    return learned_on, held_out


def _rarest_strata(strata: NDArray[Any], groups: Rows) -> Rows:
    """Return for each group the rarest of the strata of its items; the rarer, the higher."""
    codes = strata.astype(np.intp)
    commonest_first = np.argsort(-np.bincount(codes), kind="stable")
    rarity = np.empty_like(commonest_first)
    rarity[commonest_first] = np.arange(rarity.size)
    rarest = np.zeros(int(groups.max()) + 1, dtype=np.intp)
    np.maximum.at(rarest, groups, rarity[codes])
    return rarest


def _check_learned(strata: Any, learned_on: Rows, held_out: Rows, groups: Rows) -> None:
    """Raise an error if a stratum is not learned from because of its groups."""
    if np.setdiff1d(strata, strata[learned_on]).size or not held_out.size:
        raise ValueError(
            f"Whole groups are held out, and the {int(groups.max()) + 1} groups cannot be divided "
            "so that each class is learned from: all items of a class are in one group, or in too "
            "few. Find more groups, use another random_state, or cv='prefit'."
        )


def stratified_folds(
    strata: NDArray[Any], n_folds: int, rng: np.random.Generator, groups: Rows | None = None
) -> Rows:
    """Return the fold of each item, at random, with each stratum spread evenly.

    Groups, if there are any, stay whole, and are spread by the rarest stratum they have an item of.
    """
    if groups is not None:
        return stratified_folds(_rarest_strata(strata, groups), n_folds, rng)[groups]
    codes = range(int(strata.max()), -1, -1)
    order = np.concatenate([rng.permutation(np.flatnonzero(strata == code)) for code in codes])
    folds = np.empty(strata.size, dtype=np.intp)
    folds[order] = np.arange(strata.size) % min(n_folds, strata.size)
    return folds


def random_folds(
    y: NDArray[Any],
    is_rare: NDArray[np.bool_],
    n_folds: int,
    rng: np.random.Generator,
    groups: Rows | None = None,
) -> list[tuple[Rows, Rows]]:
    """Leave each item out once, in at most `n_folds` folds, each with some rare and some others.

    Fewer rare (or other) items than that make fewer folds.
    """
    of = np.arange(is_rare.size) if groups is None else groups
    # A group can have both kinds.
    n_folds = min(n_folds, *(np.unique(of[kind]).size for kind in (is_rare, ~is_rare)))
    strata = np.unique(y, return_inverse=True)[1]
    (rng,) = rng.spawn(1)
    folds = stratified_folds(strata, max(n_folds, 2), rng, groups)
    parts = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    if groups is not None:
        for learned_on, unseen in parts:
            _check_learned(is_rare, learned_on, unseen, groups)
    return parts


def splits_of(
    cv: Any, X: Any, y: Any, split_params: dict[str, Any], *, groups: Rows | None = None
) -> list[tuple[Any, Any]]:
    """Return the folds of a splitter, or of a number of folds, which keeps groups whole.

    No group is both learned from and scored.
    """
    if isinstance(cv, Integral):
        split_params = {} if groups is None else {"groups": groups}
        cv = cv if groups is None else StratifiedGroupKFold(int(cv))
    with warnings.catch_warnings():  # it is checked here whether they are respected
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        folds = list(check_cv(cv, y, classifier=True).split(X, y, **split_params))
    if groups is not None:
        _check_whole_groups(cv, folds, groups)
    return folds


def _check_whole_groups(cv: Any, folds: list[tuple[Any, Any]], groups: Rows) -> None:
    """Raise an error if items are scored by a model that has seen others of their group."""
    for train, unseen in folds:
        if np.intersect1d(groups[train], groups[unseen]).size:
            raise ValueError(
                f"{cv!r} divides groups: it scores items by a model that has seen other items of "
                "their group, and no promise would hold. Use a number of folds, GroupKFold or "
                "StratifiedGroupKFold."
            )


def _fit_and_score(
    model: Any,
    X: Any,
    y: Any,
    train: Any,
    unseen: Any,
    *,
    fit_params: dict[str, Any],
    score: Callable[[Any, Any], NDArray[np.floating]],
) -> tuple[Any, NDArray[np.floating]]:
    """Fit on the training rows, and score the others."""
    params = slice_fit_params(X, fit_params, indices=train)
    model.fit(take_rows(X, train), y[train], **params)
    return model, score(model, take_rows(X, unseen))


class Unseen(NamedTuple):
    """Scores of items that the model has not seen, and which rows they are."""

    rows: Rows
    scores: NDArray[np.floating]


def aligned_with_rows(unseen: list[Unseen], n_items: int) -> tuple[NDArray[np.floating], Rows]:
    """Return for each row its score by a model that has not seen it, and the model's number.

    NaN and -1 where there is none; of several, the last.
    """
    scores, folds = np.full(n_items, np.nan), np.full(n_items, -1)
    for fold, part in enumerate(unseen):
        scores[part.rows], folds[part.rows] = part.scores, fold
    return scores, folds


class Groups(NamedTuple):
    """Groups as they were given, for splitters, and their numbers; None if none belong together."""

    given: Any = None
    numbers: Rows | None = None


class TrainedModels(NamedTuple):
    """Models that are to decide, each with what its threshold can come from."""

    models: list[Any]
    unseen: list[Unseen]


def fit_on_folds(
    estimator: Any,
    X: Any,
    y: Any,
    folds: list[tuple[Rows, Rows]],
    *,
    fit_params: dict[str, Any],
    score: Callable[[Any, Any], NDArray[np.floating]],
    refit: bool,
    n_jobs: int | None,
) -> TrainedModels:
    """Fit on each training part, and score what it left out.

    With `refit`, one model that has seen everything decides, and the scores are pooled.
    """
    options: dict[str, Any] = {"fit_params": fit_params, "score": score}
    tasks = [(clone(estimator), X, y, train, unseen) for train, unseen in folds]
    if len(tasks) == 1:  # fitted right here; workers would only take longer
        fitted = [_fit_and_score(*tasks[0], **options)]
    else:
        run = Parallel(n_jobs=n_jobs)
        fitted = run(delayed(_fit_and_score)(*task, **options) for task in tasks)
    unseen = [Unseen(rows, scores) for (_, scores), (_, rows) in zip(fitted, folds, strict=True)]
    if not refit:
        return TrainedModels([model for model, _ in fitted], unseen)
    tested = np.concatenate([part.rows for part in unseen])
    if np.unique(tested).size < tested.size:
        raise ValueError(
            "Pooling out-of-fold scores needs a splitter that tests each row at most once; this "
            "one repeats some, which would pass for more data than there are. Use another one."
        )
    pooled = Unseen(*(np.concatenate(parts) for parts in zip(*unseen, strict=True)))
    return TrainedModels([clone(estimator).fit(X, y, **fit_params)], [pooled])


def fit_out_of_bag(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    fit_params: dict[str, Any],
    rare_label: Any,
    groups: Rows | None,
) -> TrainedModels:
    """Fit once on everything, and score each item by the trees that have not seen it."""
    if groups is not None:
        raise ValueError(
            "groups are not possible with cv='oob': the trees that have not seen an item have seen "
            "other items of its group. Use cv=0.25 or cv=5, which leave whole groups out."
        )
    model = with_out_of_bag(clone(estimator)).fit(X, y, **fit_params)
    scores = out_of_bag_scores(model, rare_label=rare_label)
    rows = np.flatnonzero(~np.isnan(scores))
    return TrainedModels([model], [Unseen(rows, scores[rows])])


def route(classifier: Any, y: Any, params: dict[str, Any], groups: Any = None) -> Bunch:
    """Send the extra arguments of `fit` to the model and the splitter, and groups to the latter."""
    grouped = {} if groups is None else {"groups": groups}
    models = {name: Bunch(fit=params) for name in ("estimator", "list_estimator")}
    routed = Bunch(**models, splitter=Bunch(split=grouped))
    if routing_enabled():
        routed = process_routing(classifier, "fit", **grouped, **params)
    weights = routed.estimator.fit.get("sample_weight")
    if weights is not None:
        check_classes(classifier, np.unique(y[np.asarray(weights) != 0]))
    return routed


def take_trained(
    model: Any, X: Any, params: dict[str, Any], score: Callable[[Any, Any], Any]
) -> TrainedModels:
    """Score rows by a trained model, which is not fitted again."""
    if params:
        raise ValueError(f"A trained model is not fitted again; {sorted(params)} would go unused.")
    scores = score(model, X)
    return TrainedModels([model], [Unseen(np.arange(len(scores)), scores)])


class WrapperMixin:
    """What scikit-learn asks of a classifier with a classifier inside."""

    estimator: Any
    cv: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata: to the model's `fit` and the splitter's `split`.

        Returns
        -------
        MetadataRouter
        """
        fit_to = {step: MethodMapping().add(caller="fit", callee=step) for step in ("fit", "split")}
        router = MetadataRouter(owner=self).add_self_request(self)
        for name in ("estimator", "list_estimator"):
            if getattr(self, name, None) is not None:
                router.add(**{name: getattr(self, name)}, method_mapping=fit_to["fit"])
        return router.add(splitter=self.cv, method_mapping=fit_to["split"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags = get_tags(self.estimator).input_tags
        # Under a capacity, high accuracy is not the aim.
        tags.classifier_tags.poor_score = True
        return tags
