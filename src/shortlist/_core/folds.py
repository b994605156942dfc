"""Splits, folds and metadata routing: what every classifier does before it calibrates."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..exceptions import InsufficientCalibrationWarning
from . import scoring
from .arrays import Doubles, Rows
from .documented import DocumentedMixin
from .labels import without_gaps
from .validation import check_count, warn_user

#: Scores rows by a fitted model.
Score = Callable[[Any, Any], NDArray[np.floating]]
# Whole numbers and texts cannot be anything but labels.
_PLAIN_LABELS = "biuUS"
_MOST_DRAWS, _LEAST_OF_SHARE = 1_000, 0.25


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
    if isinstance(cv, Integral):
        check_count("cv as a number of folds", cv, at_least=2)


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
    y = column_or_1d(without_gaps(y), warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains infinity. Leave out the items without a label.")
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


def two_classes(classifier: Any, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return both classes of labels and their sizes; more or fewer classes are an error."""
    if type_of_target(y) == "multiclass":
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass. "
            "Pass y == rare_label to tell one class from all others."
        )
    classes, counts = np.unique(y, return_counts=True)
    check_classes(classifier, classes)
    return classes, counts


def check_enough_rare(is_rare: NDArray[np.bool_], rare_label: Any) -> None:
    """Raise an error when one of two parts of the data would be without a class."""
    n_rare = int(np.count_nonzero(is_rare))
    if min(n_rare, is_rare.size - n_rare) < 2:
        raise ValueError(
            f"The class {rare_label!r} has {n_rare} of {is_rare.size} items. Learning from one "
            "part of the data and calibrating on the other takes at least two items of this class "
            "and two others. Use cv='prefit', or find more items."
        )


def random_parts(
    strata: NDArray[Any],
    cv: Any,
    rng: np.random.Generator,
    groups: Rows | None = None,
    hashed: Doubles | None = None,
) -> list[tuple[Rows, Rows]]:
    """Leave items out at random: a share of them, or each one once in a number of folds.

    Return the rows to learn from, and those left out. Groups stay whole.

    Nothing is spread evenly, and no label has a say in the number of folds: items that are left out
    in proportion are not like new ones. The whole partition is drawn anew until each stratum can be
    learned from everywhere. Items that are left out are then a little too common, and a warning
    says so: promises are exact over all samples with a first draw that will do.

    Groups of equal rows have a `hashed` number each, which picks the model that decides about such
    a row later on. They come in the fold that this model has not seen, if that will do: new rows
    that are equal to old ones are then like these, too.
    """
    (rng,) = rng.spawn(1)  # the items may have been drawn from a generator of the same seed
    codes = strata.astype(np.intp)
    units = np.arange(codes.size)
    if groups is not None:  # a group has one unit of each stratum that it has an item of
        units, codes = np.unique(np.stack([groups, codes]), axis=1)
    dealt = _deal(int(units.max()) + 1, codes, cv)
    left_out = range(1 if holds_out(cv) else int(dealt.max()) + 1)
    by_hash = [] if hashed is None else [(hashed * len(left_out)).astype(np.intp)]
    at_random = (rng.permutation(dealt) for _ in range(_MOST_DRAWS))
    for n_before, drawn in enumerate(chain(by_hash, at_random)):
        is_whole = np.unique(drawn).size >= len(left_out)
        if is_whole and all(_can_learn(codes, drawn[units] != fold) for fold in left_out):
            if n_before > len(by_hash):
                warn_user(
                    f"The data were divided {n_before + 1} times until enough of each class could "
                    "be learned from: too few for an exact promise. Find more, or use cv=10.",
                    InsufficientCalibrationWarning,
                )
            folds = drawn if groups is None else drawn[groups]
            return [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in left_out]
    raise ValueError(
        f"The {dealt.size} {'items' if groups is None else 'groups, which stay whole,'} cannot be "
        "divided so that each class is learned from: all items of a class are in one, or in too "
        "few. Find more, use another random_state, or cv='prefit'."
    )


def _deal(n: int, codes: Rows, cv: Any) -> Rows:
    """Return the numbers of the folds, one for each item or group; 0 is what a share leaves out."""
    if holds_out(cv):
        most = n - np.unique(codes).size
        return (np.arange(n) >= min(max(round(cv * n), 1), most)).astype(np.intp)
    return np.arange(n) % min(int(cv), n)


def _can_learn(codes: Rows, learned_on: NDArray[np.bool_]) -> bool:
    """Whether at least one unit of each stratum, and a quarter of its share, is learned from."""
    totals = np.bincount(codes)
    share = np.count_nonzero(learned_on) / learned_on.size
    needed = np.minimum(np.maximum(_LEAST_OF_SHARE * share * totals, 1), totals)
    return bool((np.bincount(codes[learned_on], minlength=totals.size) >= needed).all())


def stratified_folds(strata: NDArray[Any], n_folds: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each item, at random, with each stratum spread evenly.

    Learners tune themselves on such folds. No promise rests on them.
    """
    codes = range(int(strata.max()), -1, -1)
    order = np.concatenate([rng.permutation(np.flatnonzero(strata == code)) for code in codes])
    folds = np.empty(strata.size, dtype=np.intp)
    folds[order] = np.arange(strata.size) % min(n_folds, strata.size)
    return folds


def splits_of(
    cv: Any, X: Any, y: Any, split_params: dict[str, Any], *, groups: Rows | None = None
) -> list[tuple[Any, Any]]:
    """Return the folds of a splitter; no group may be both learned from and scored."""
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
    model: Any, X: Any, y: Any, parts: tuple[Rows, Rows], fit_params: dict[str, Any], score: Score
) -> tuple[Any, Unseen]:
    """Fit on the first part of the rows, and score the other one."""
    train, rows = parts
    params = scoring.slice_fit_params(X, fit_params, indices=train)
    model.fit(scoring.take_rows(X, train), y[train], **params)
    return model, Unseen(rows, score(model, scoring.take_rows(X, rows)))


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
    """Groups as they were given, for splitters, and their numbers; None if none belong together.

    Groups of equal rows have `hashed` numbers.
    """

    given: Any = None
    numbers: Rows | None = None
    hashed: Doubles | None = None


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
    score: Score,
    refit: bool,
    n_jobs: int | None,
) -> TrainedModels:
    """Fit on each training part, and score what it left out.

    With `refit`, one model that has seen everything decides, and the scores are pooled.
    """
    tasks = [(clone(estimator), X, y, parts, fit_params, score) for parts in folds]
    if len(tasks) == 1:  # fitted right here; workers would only take longer
        fitted = [_fit_and_score(*tasks[0])]
    else:
        fitted = Parallel(n_jobs=n_jobs)(delayed(_fit_and_score)(*task) for task in tasks)
    unseen = [part for _, part in fitted]
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
    model = scoring.with_out_of_bag(clone(estimator)).fit(X, y, **fit_params)
    scores = scoring.out_of_bag_scores(model, rare_label=rare_label)
    rows = np.flatnonzero(~np.isnan(scores))
    return TrainedModels([model], [Unseen(rows, scores[rows])])


def route(classifier: Any, y: Any, params: dict[str, Any], groups: Any = None) -> Bunch:
    """Send the extra arguments of `fit` to the model and the splitter, and groups to the latter."""
    grouped = {} if groups is None else {"groups": groups}
    models = {name: Bunch(fit=params) for name in ("estimator", "list_estimator")}
    routed = Bunch(**models, splitter=Bunch(split=grouped))
    if scoring.routing_enabled():
        routed = process_routing(classifier, "fit", **grouped, **params)
    weights = routed.estimator.fit.get("sample_weight")
    if weights is not None:
        check_classes(classifier, np.unique(y[np.asarray(weights) != 0]))
    return routed


def take_trained(model: Any, X: Any, params: dict[str, Any], score: Score) -> TrainedModels:
    """Score rows by a trained model, which is not fitted again."""
    if params:
        raise ValueError(f"A trained model is not fitted again; {sorted(params)} would go unused.")
    scores = score(model, X)
    return TrainedModels([model], [Unseen(np.arange(len(scores)), scores)])


class WrapperMixin(DocumentedMixin):
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
