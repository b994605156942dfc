"""One row at a time, in microseconds: a fitted classifier as a few compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._core.arrays import Doubles
from .._core.scoring import score_classes
from ..classifier import CapacityClassifier
from ._columns import Unsupported
from ._compiled import averaged, compiled
from ._plan import Encoded, Plan, Refused, Vocabulary
from .blueprint import Asked, is_exact, leaves_of, scores_of

#: How a row is scored: by compiled functions with the bits of the model, by compiled functions that
#: are never above the model, by compiled functions for the columns and the learner itself, or by
#: the model.
SCORER_KINDS = ("exact", "bounded", "columns", "model")
_FEW = 50
# A quarter of the margin that an exported graph keeps.
_TOLERANCE = 2.0**-32


class RowScorer:
    """Scores rows of plain values as a fitted classifier does, without data frames.

    Made by :func:`compile_scorer`.

    Attributes
    ----------
    kind : str
        One of :data:`SCORER_KINDS`:

        - "exact": the scores have the bits of the model's.
        - "bounded": sums of products differ in their last digits with the order of their terms. A
          bound of this difference is subtracted: no score is above that of the model, whatever rows
          it is asked for together. What is flagged here is flagged by the model.
        - "columns": the columns are prepared by compiled functions, and the learner itself scores.
        - "model": the model does everything.
    note : str
        Empty, or a sentence that says why the scorer is slower than others.
    n_models : int
        Number of models whose mean is the score.
    """

    def __init__(
        self,
        kind: str,
        note: str,
        models: Sequence[Callable[[Encoded], Doubles]],
        encode: Callable[[Any], Encoded],
        by_model: Callable[[Any, int | None], Doubles],
    ) -> None:
        self.kind, self.note, self.n_models = kind, note, len(models)
        self._models, self._encode, self._by_model = models, encode, by_model

    def score_row(self, values: Sequence[Any], *, fold: int | None = None) -> float:
        """Score one row.

        Parameters
        ----------
        values : sequence
            The values of the columns in the order of `fit`: numbers, with NaN for missing ones, and
            texts.
        fold : int, default=None
            The number of one model, if the classifier has one for each fold; None takes the mean.

        Returns
        -------
        float
        """
        return float(self.score_rows([values], fold=fold)[0])

    def score_rows(self, rows: Sequence[Sequence[Any]], *, fold: int | None = None) -> Doubles:
        """Score several rows; each gets the score that it gets alone.

        Parameters
        ----------
        rows : sequence of sequences
            As for :meth:`score_row`.
        fold : int, default=None
            As for :meth:`score_row`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if len(rows) == 0:
            return np.empty(0)
        try:
            encoded = self._encode(rows)
            if fold is not None:
                return self._models[fold](encoded)
            return averaged([score(encoded) for score in self._models])
        except Refused:
            return np.asarray(self._by_model(rows, fold), dtype=np.float64)


def compile_scorer(
    classifier: CapacityClassifier, X: Any, *, columns: Sequence[str] | None = None
) -> RowScorer:
    """Turn a fitted classifier into functions that score a row of plain values in microseconds.

    Compiled are columns that are imputed, scaled and encoded by scikit-learn's transformers; trees,
    forests, bagging and boosting of scikit-learn and LightGBM; linear models; and the aware
    forests, boosting and linear models. Other learners score for themselves. If the result differs
    from the classifier on the rows `X`, or cannot be made, the scorer asks the classifier.

    Parameters
    ----------
    classifier : classifier
        A fitted :class:`~shortlist.CapacityClassifier`.
    X : array or data frame of shape (n_items, n_features)
        Rows on which to compare the scorer with the classifier: calibration rows, or rows like
        them. They need no labels.
    columns : sequence of str, default=None
        The names of the columns, if the classifier was fitted to a data frame. None takes those of
        `X`.

    Returns
    -------
    RowScorer

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.models import compile_scorer
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(n_samples=2_000, random_state=0)
    >>> model = CapacityClassifier(
    ...     RandomForestClassifier(50, random_state=0), capacity=Capacity.multiple(2)
    ... ).fit(X, y)
    >>> scorer = compile_scorer(model, X[:100])
    >>> scorer.kind
    'exact'
    >>> bool(scorer.score_row(X[0].tolist()) == model.score_samples(X[:1])[0])
    True
    """
    frame = _Frame(X, columns)
    by_model = _ByModel(classifier, frame)
    try:
        scorer = _compiled(classifier, by_model, frame.n_columns)
        problem = _difference(scorer, by_model, X, frame.values(X))
    except Unsupported as error:
        problem = f"{error} is not supported"
    except Exception as error:  # whatever it is: the model itself can answer
        problem = f"{type(error).__name__}: {error}"
    if not problem:
        return scorer
    note = f"Rows are scored by the model itself, which is slower: {problem}."
    return RowScorer("model", note, [_refuse] * by_model.n_models, _refuse, by_model)


def _refuse(rows: Any) -> NoReturn:
    raise Refused


class _Frame:
    """Turns rows of plain values into what a classifier takes, and back."""

    def __init__(self, X: Any, columns: Sequence[str] | None) -> None:
        self._make: Any = None
        self.n_columns = X.shape[1]
        if hasattr(X, "columns"):
            self._names = list(X.columns if columns is None else columns)
            self._make = type(X)

    def values(self, X: Any) -> list[list[Any]]:
        """Return rows of plain values."""
        if self._make is None:
            return np.asarray(X).tolist()
        columns = [X[name].to_list() for name in self._names]
        return [list(row) for row in zip(*columns, strict=True)]

    def frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return what the classifier takes."""
        if self._make is None:
            return np.array(rows, dtype=np.float64)
        columns = map(list, zip(*rows, strict=True))
        return self._make(dict(zip(self._names, columns, strict=True)))


class _ByModel:
    """Asks the classifier itself, for the mean of its models or for one of them."""

    def __init__(self, classifier: Any, frame: _Frame) -> None:
        self._classifier, self._frame = classifier, frame
        self.n_models = len(classifier.estimators_)

    def __call__(self, rows: Any, fold: int | None) -> Doubles:
        return self.of_frame(self._frame.frame(rows), fold)

    def of_frame(self, X: Any, fold: int | None) -> Doubles:
        """Score what the classifier takes."""
        classifier = self._classifier
        if fold is None:
            return np.asarray(classifier.score_samples(X))
        options = {"method": classifier.response_method_, "rare_label": classifier.rare_label_}
        return np.asarray(score_classes(classifier.estimators_[fold], X, **options).rare)


def _compiled(classifier: Any, by_model: _ByModel, n_columns: int) -> RowScorer:
    scores = scores_of(classifier, n_columns)
    leaves = [leaf for score in scores for leaf in leaves_of(score)]
    vocabulary = Vocabulary(leaf.prepared for leaf in leaves)
    plans: dict[int, Plan] = {}
    models = [compiled(score, vocabulary, plans) for score in scores]
    kind, note = "exact" if all(map(is_exact, scores)) else "bounded", ""
    if own := sorted({type(leaf.learner).__name__ for leaf in leaves if isinstance(leaf, Asked)}):
        kind = "columns"
        note = f"{' and '.join(own)} is not compiled, and scores prepared rows itself."
    return RowScorer(kind, note, models, vocabulary.encode, by_model)


# --- comparison with the model -------------------------------------------------------------------


def _difference(scorer: RowScorer, by_model: _ByModel, X: Any, rows: list[list[Any]]) -> str:
    """Return what is wrong with the scores of a scorer, or nothing."""
    few = slice(None) if by_model.n_models == 1 else slice(_FEW)  # of the mean of all models
    folds = range(by_model.n_models) if by_model.n_models > 1 else []
    for fold, chosen in ((None, few), *((fold, slice(None)) for fold in folds)):
        theirs = by_model.of_frame(X[chosen], fold)
        ours = scorer.score_rows(rows[chosen], fold=fold)
        if theirs.dtype != np.float64:
            return f"its scores have the type {theirs.dtype}"
        one = scorer.score_rows(rows[:1], fold=fold)
        if not _agree(scorer.kind, ours, theirs) or not _agree(scorer.kind, one, theirs[:1]):
            largest = float(np.abs(ours - theirs).max())
            return f"compiled scores differ from its own by up to {largest:.1e}"
    return ""


def _agree(kind: str, ours: Doubles, theirs: Doubles) -> bool:
    if kind == "exact":
        return np.array_equal(ours, theirs)
    if kind == "bounded" and not (ours <= theirs).all():
        return False
    return bool((np.abs(ours - theirs) <= _TOLERANCE * np.abs(theirs).max(initial=0)).all())
