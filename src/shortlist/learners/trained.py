"""A trained classifier with labels of its own, in the form that table models have."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from .._core.arrays import Mask


def _has(method: str) -> Any:
    return lambda model: hasattr(model.estimator, method)


@dataclass(eq=False, repr=False)
class TrainedModel(ClassifierMixin, BaseEstimator):
    """A trained classifier whose rare label becomes True, and all others False.

    Parameters
    ----------
    estimator : classifier
        Trained, with `classes_`.
    rare_label : label
        One of its classes.
    columns : list of str, default=None
        The columns that it was trained on, in their order; `None` passes all columns on.
    missing : str, default=None
        The text that stands for a missing category, which the model gets as a missing value.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist.learners.trained import TrainedModel
    >>> own = LogisticRegression().fit([[0], [1], [2], [3]], ["no", "no", "no", "yes"])
    >>> TrainedModel(own, "yes").predict([[0], [9]]).tolist()
    [False, True]
    """

    estimator: Any
    rare_label: Any
    _: KW_ONLY
    columns: list[str] | None = None
    missing: str | None = None

    @property
    def classes_(self) -> NDArray[np.bool_]:
        """False and True."""
        return np.array([False, True])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the model as it is: it was trained before.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        return self

    def predict(self, X: Any) -> Mask:
        """Return where the model predicts the rare label.

        Parameters
        ----------
        X : data frame or array
            Items.

        Returns
        -------
        ndarray of bool
        """
        return np.asarray(self.estimator.predict(self._given(X))) == self.rare_label

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the probabilities of the other labels together, and of the rare label.

        Parameters
        ----------
        X : data frame or array
            Items.

        Returns
        -------
        ndarray of shape (n_items, 2)
        """
        rare = np.asarray(self.estimator.predict_proba(self._given(X)))[:, self._place]
        return np.column_stack([1 - rare, rare])

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return scores that rise with the rare label.

        Parameters
        ----------
        X : data frame or array
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
        """
        scores = np.asarray(self.estimator.decision_function(self._given(X)))
        if scores.ndim == 2:
            return scores[:, self._place]
        return scores if self._place == 1 else -scores

    @property
    def _place(self) -> int:
        return int(np.flatnonzero(np.asarray(self.estimator.classes_) == self.rare_label)[0])

    def _given(self, X: Any) -> Any:
        """Return items in the form that the model was trained on."""
        X = X if self.columns is None else X[self.columns]
        if self.missing is not None:
            texts = [name for name in X.columns if X[name].dtype.kind not in "fiub"]
            X = X.assign(**{name: X[name].where(X[name] != self.missing, None) for name in texts})
        return X
