"""Columns in the form that suits a learner: codes for trees, scales for the rest.

Everything is learned from the training rows and made of scikit-learn's transformers. A frame may
have texts and gaps; an array or sparse matrix has numbers, and may have gaps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils.validation import validate_data

#: The forms of the columns: "codes" for trees, "scaled" for models that add up columns.
VIEWS = ("codes", "scaled")

MOST_CATEGORIES = 32
FEWEST_ROWS_OF_A_CATEGORY = 5


def check_items(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check items: frames keep their columns, everything else becomes numbers."""
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
    )


def is_frame(X: Any) -> bool:
    """Return whether items come with named columns of their own types."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def split_columns(X: Any) -> tuple[list[Any], list[Any]]:
    """Return the columns that hold numbers, and those that hold categories."""
    if not is_frame(X):
        return list(range(X.shape[1])), []
    names = list(X.columns)
    numbers = [name for name in names if _is_numeric(X, name)]
    return numbers, [name for name in names if name not in numbers]


def _is_numeric(X: Any, name: Any) -> bool:
    dtype = X[name].dtype
    kind = getattr(dtype, "kind", None)
    if kind in ("M", "m"):
        raise ValueError(
            f"Column {name!r} has dates or durations. Turn it into numbers first, such as days "
            "since a date."
        )
    if kind is None:  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return kind in "biuf"


def make_view(view: str, X: Any, numbers: list[Any], categories: list[Any]) -> Any:
    """Return unfitted transformers that bring the columns of `X` into a form."""
    if is_frame(X):
        return frame_view(view, numbers, categories)
    return _of_numbers(view, with_mean=not sparse.issparse(X))


def as_view(formed: Any) -> Any:
    """Return items in a form as all learners take them."""
    # LightGBM knows the older one of SciPy's two kinds of sparse matrices.
    return sparse.csr_matrix(formed) if sparse.issparse(formed) else formed


def frame_view(view: str, numbers: list[Any], categories: list[Any]) -> ColumnTransformer:
    """Return what brings a frame into a form: imputed by medians, marked where, and encoded.

    An unknown category raises no error. In codes it is -1, like a missing one; otherwise rare
    categories share one column, and unknown ones use it as well.
    """
    parts = [("numbers", _of_numbers(view), numbers), ("categories", _encoder(view), categories)]
    return ColumnTransformer(
        [part for part in parts if part[2]], verbose_feature_names_out=False, sparse_threshold=0
    )


def _of_numbers(view: str, *, with_mean: bool = True) -> Pipeline:
    steps = [SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)]
    if view == "scaled":
        steps.append(StandardScaler(with_mean=with_mean))
    return make_pipeline(*steps)


def _encoder(view: str) -> Any:
    if view == "codes":
        return OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
        )
    return OneHotEncoder(
        min_frequency=FEWEST_ROWS_OF_A_CATEGORY,
        max_categories=MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
