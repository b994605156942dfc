"""One row at a time, in microseconds: a fitted classifier as a few compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from ..classifier import CapacityClassifier
from ._compiled import Compiled, Refused
from .blueprint import Asked, is_exact, leaves_of, mean_of, scores_of

# A quarter of the margin that an exported graph keeps.
_TOLERANCE = 2.0**-32


class RowScorer:
    """Scores rows of plain values as a fitted classifier does, without data frames.

    Made by :func:`compile_scorer`.

    Attributes
    ----------
    kind : str
        How a row is scored:

        - "exact": by compiled functions; the scores have the bits of the model's.
        - "bounded": by compiled functions. Sums of products differ in their last digits with the
          order of their terms, and a bound of this difference is subtracted: no score is above that
          of the model, whatever rows it is asked for together. What is flagged here is flagged by
          the model.
        - "columns": the columns are prepared by compiled functions, and the learner itself scores.
        - "model": the model does everything.
    note : str
        Empty, or a sentence that says why the scorer is slower than others.
    """

    def __init__(
        self,
        kind: str,
        note: str,
        score: Callable[[Sequence[Sequence[Any]]], Doubles] | None,
        by_model: Callable[[Sequence[Sequence[Any]]], Doubles],
    ) -> None:
        self.kind, self.note = kind, note
        self._score, self._by_model = score or by_model, by_model

    def score_row(self, values: Sequence[Any]) -> float:
        """Score one row.

        Parameters
        ----------
        values : sequence
            The values of the columns in the order of `fit`: numbers, with NaN for missing ones, and
            texts.

        Returns
        -------
        float
        """
        return float(self.score_rows([values])[0])

    def score_rows(self, rows: Sequence[Sequence[Any]]) -> Doubles:
        """Score several rows; each gets the score that it gets alone.

        Parameters
        ----------
        rows : sequence of sequences
            As for :meth:`score_row`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if len(rows) == 0:
            return np.empty(0)
        try:
            return self._score(rows)
        except Refused:
            return self._by_model(rows)


def compile_scorer(
    classifier: CapacityClassifier, X: Any, *, columns: Sequence[str] | None = None
) -> RowScorer:
    """Turn a fitted classifier into functions that score a row of plain values in microseconds.

    Compiled are columns that are imputed, scaled and encoded by scikit-learn's transformers; trees,
    forests, bagging and boosting of scikit-learn and LightGBM; linear models and networks;
    ensembles of this package; and the aware forests, boosting and linear models. Other learners
    score for themselves. If the result differs from the classifier on the rows `X`, or cannot be
    made, the scorer asks the classifier.

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

    def by_model(rows: Sequence[Sequence[Any]]) -> Doubles:
        return np.asarray(classifier.score_samples(frame.of(rows)), dtype=np.float64)

    try:
        node = mean_of(scores_of(classifier, classifier.list_estimators_, X.shape[1]))
        scorer = RowScorer(*_kind(node), Compiled(node), by_model)
        problem = _difference(scorer, classifier.score_samples(X), frame.values(X))
    except Exception as error:  # whatever it is: the model itself can answer
        problem = f"{type(error).__name__}: {error}"
    if not problem:
        return scorer
    note = f"Rows are scored by the model itself, which is slower: {problem}."
    return RowScorer("model", note, None, by_model)


class _Frame:
    """Turns rows of plain values into what a classifier takes, and back."""

    def __init__(self, X: Any, columns: Sequence[str] | None) -> None:
        self._make: Any = None
        if hasattr(X, "columns"):
            self._names = list(X.columns if columns is None else columns)
            self._make = type(X)

    def values(self, X: Any) -> list[list[Any]]:
        """Return rows of plain values."""
        if self._make is None:
            return np.asarray(X).tolist()
        columns = [X[name].to_list() for name in self._names]
        return [list(row) for row in zip(*columns, strict=True)]

    def of(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return what the classifier takes."""
        if self._make is None:
            return np.array(rows, dtype=np.float64)
        columns = map(list, zip(*rows, strict=True))
        return self._make(dict(zip(self._names, columns, strict=True)))


def _kind(node: Any) -> tuple[str, str]:
    """Return the kind of a compiled scorer, and a note."""
    own = sorted({leaf.name for leaf in leaves_of(node) if isinstance(leaf, Asked)})
    if own:
        return "columns", f"{' and '.join(own)} is not compiled, and scores prepared rows itself."
    return "exact" if is_exact(node) else "bounded", ""


def _difference(scorer: RowScorer, theirs: Any, rows: list[list[Any]]) -> str:
    """Return what is wrong with the scores of a scorer, or nothing."""
    if theirs.dtype != np.float64:
        return f"its scores have the type {theirs.dtype}"
    ours, one = scorer.score_rows(rows), scorer.score_rows(rows[:1])
    if _agree(scorer.kind, ours, theirs) and _agree(scorer.kind, one, theirs[:1]):
        return ""
    return f"compiled scores differ from its own by up to {np.abs(ours - theirs).max():.1e}"


def _agree(kind: str, ours: Doubles, theirs: Doubles) -> bool:
    if kind == "exact":
        return np.array_equal(ours, theirs)
    if kind == "bounded" and not (ours <= theirs).all():
        return False
    return bool((np.abs(ours - theirs) <= _TOLERANCE * np.abs(theirs).max(initial=0)).all())
