"""How columns were prepared, as a list of features. To add a transformer, see `_BY_TYPE`.

A prepared row is a list of *features*. Each comes from one column: a scaled number, a mark of a
missing value, or what an encoder gives for a text. Imputing and scaling change these features one
by one, with the same operations in double precision as scikit-learn's, and so give the same bits.
What is done to a text or to a mark is known beforehand: only numbers are computed when a row
arrives. A transformer that is not known here is called itself, with the features prepared so far in
an array.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .._core.arrays import Doubles


class Unsupported(Exception):
    """A model, or part of it, for which there is no blueprint; the message names it."""


#: Stands for NaN, which is not equal to itself, among the values of a column.
NAN = "\0NaN"


@dataclass(frozen=True)
class Number:
    """A column of numbers: less a mean and divided by a scale, perhaps several times.

    Before an encoder it is a column of any values, and `missing` perhaps a text. A mark of missing
    values is `present` wherever there is a number, whatever it is.
    """

    column: int
    missing: Any = math.nan  # what a missing value has become
    stages: tuple[tuple[float, float], ...] = ()
    present: float | None = None


@dataclass(frozen=True, eq=False)
class Lookup:
    """The numbers that an encoder gives for each value of a column; None where it raises an error.

    `rows` has the values that the encoder knows, None and NaN; `unknown` is for all others.
    """

    column: int
    rows: dict[Any, tuple[float, ...] | None]
    unknown: tuple[float, ...] | None

    def row(self, value: Any) -> tuple[float, ...] | None:
        """Return the numbers for a value."""
        return self.rows.get(value, self.unknown)


@dataclass(frozen=True)
class Category:
    """One of the numbers that an encoder gives for a value, and what is done to it afterwards."""

    lookup: Lookup
    place: int
    changes: tuple[Callable[[float], float], ...] = ()

    def number(self, value: Any) -> float:
        """Return the feature for a value; NaN for one that the encoder refuses."""
        row = self.lookup.row(value)
        number = math.nan if row is None else row[self.place]
        for change in self.changes:
            number = change(number)
        return number


Feature = Number | Category


def _filled(feature: Feature, fill: float) -> Feature:
    """Put a number in the place of missing ones."""
    return _changed(feature, lambda number: fill if number != number else number)


def _scaled(feature: Feature, mean: float, scale: float) -> Feature:
    """Subtract a mean and divide by a scale."""
    if isinstance(feature, Number) and feature.present is None:
        feature = replace(feature, stages=(*feature.stages, (mean, scale)))
    return _changed(feature, lambda number: (number - mean) / scale)


def _marked(feature: Feature) -> Feature:
    """Mark where a feature is missing."""
    if isinstance(feature, Number) and feature.present is None:
        return Number(feature.column, float(feature.missing != feature.missing), present=0.0)
    return _changed(feature, lambda number: float(number != number))


def _changed(feature: Feature, change: Callable[[float], float]) -> Feature:
    """Change what is known beforehand: texts, missing numbers, and marks."""
    if isinstance(feature, Category):
        return replace(feature, changes=(*feature.changes, change))
    present = None if feature.present is None else change(feature.present)
    return replace(feature, missing=change(feature.missing), present=present)


# --- prepared rows -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """Prepared rows as a list of features, each computed on its own; perhaps a sparse matrix."""

    features: list[Feature]
    is_sparse: bool = False


@dataclass(frozen=True)
class Called:
    """What a transformer itself returns for prepared rows."""

    transformer: Any
    source: Prepared


@dataclass(frozen=True)
class Joined:
    """The features of several preparations, side by side."""

    parts: list[Prepared]


Prepared = Listed | Called | Joined


def features_in(prepared: Prepared) -> list[Feature]:
    """Return all features that are computed on the way."""
    if isinstance(prepared, Listed):
        return prepared.features
    if isinstance(prepared, Called):
        return features_in(prepared.source)
    return [feature for part in prepared.parts for feature in features_in(part)]


def some_of(prepared: Prepared, places: list[int]) -> Prepared:
    """Return some of the features of prepared rows."""
    if not isinstance(prepared, Listed):
        return Called(_Columns(places), prepared)
    if places == list(range(len(prepared.features))):
        return prepared
    return Listed([prepared.features[place] for place in places], prepared.is_sparse)


class _Columns:
    """A transformer that takes some of the columns of an array."""

    def __init__(self, places: list[int]) -> None:
        self._places = places

    def transform(self, X: Doubles) -> Doubles:
        return np.ascontiguousarray(X[:, self._places])


def without_names(estimator: Any) -> Any:
    """Return an estimator that takes arrays, and has no names of columns to compare."""
    nameless = copy.copy(estimator)
    vars(nameless).pop("feature_names_in_", None)
    return nameless


# --- transformers --------------------------------------------------------------------------------


def transformed(transformer: Any, source: Prepared) -> Prepared:
    """Return how rows look after a fitted transformer, or "passthrough"."""
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return source
    change = _BY_TYPE.get(type(transformer).__name__)
    if change is not None and isinstance(source, Listed):
        return change(transformer, source)
    if change is _pipeline:
        return _pipeline(transformer, source)
    return Called(without_names(transformer), source)


def _pipeline(pipeline: Any, source: Prepared) -> Prepared:
    for _, step in pipeline.steps:
        source = transformed(step, source)
    return source


def _column_transformer(transformer: Any, source: Listed) -> Prepared:
    parts = []
    for _, fitted, columns in transformer.transformers_:
        if isinstance(fitted, str) and fitted == "drop":
            continue
        places = _places(columns, transformer)
        if places:
            chosen = Listed([source.features[place] for place in places])
            parts.append(transformed(fitted, chosen))
    if not all(isinstance(part, Listed) for part in parts):
        return Joined(parts)
    features = [feature for part in parts for feature in part.features]  # type: ignore[union-attr]
    return Listed(features, bool(transformer.sparse_output_))


def _places(columns: Any, transformer: Any) -> list[int]:
    """Return the numbers of the columns that a part of a column transformer takes."""
    n_columns = transformer.n_features_in_
    if isinstance(columns, slice) and all(
        end is None or isinstance(end, int) for end in (columns.start, columns.stop)
    ):
        return list(range(n_columns))[columns]
    if isinstance(columns, (str, int, slice)) or callable(columns):
        raise Unsupported("a column transformer with columns that are not in a list")
    chosen = np.asarray(columns)
    if chosen.dtype == bool:
        return np.flatnonzero(chosen).tolist()
    if chosen.dtype.kind in "iu":
        return [range(n_columns)[place] for place in chosen.tolist()]
    names = transformer.feature_names_in_.tolist()
    return [names.index(name) for name in chosen.tolist()]


def _imputer(imputer: Any, source: Listed) -> Listed:
    if not _is_nan(imputer.missing_values):
        raise Unsupported(f"SimpleImputer(missing_values={imputer.missing_values!r})")
    statistics = np.asarray(imputer.statistics_).tolist()
    kept = [
        _filled(feature, fill)
        for feature, fill in zip(source.features, statistics, strict=True)
        if imputer.keep_empty_features or fill == fill
    ]
    marks = []
    if imputer.add_indicator:
        marks = [_marked(source.features[k]) for k in imputer.indicator_.features_.tolist()]
    return Listed([*kept, *marks], source.is_sparse)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _standard_scaler(scaler: Any, source: Listed) -> Listed:
    return _rescaled(source, scaler.mean_ if scaler.with_mean else None, scaler.scale_)


def _robust_scaler(scaler: Any, source: Listed) -> Listed:
    centres = scaler.center_ if scaler.with_centering else None
    return _rescaled(source, centres, scaler.scale_ if scaler.with_scaling else None)


def _rescaled(source: Listed, means: Any, scales: Any) -> Listed:
    n_features = len(source.features)
    means = [0.0] * n_features if means is None else means.tolist()
    scales = [1.0] * n_features if scales is None else scales.tolist()
    changes = zip(source.features, means, scales, strict=True)
    return Listed([_scaled(*change) for change in changes], source.is_sparse)


def _function(transformer: Any, source: Listed) -> Prepared:
    function = transformer.func
    checks_only = isinstance(function, functools.partial) and function.func is check_array
    return source if function is None or checks_only else Called(without_names(transformer), source)


def _encoder(encoder: Any, source: Listed) -> Listed:
    """Ask an encoder for the numbers of each value that it knows."""
    lookups, end = [], 0
    widths = _widths(encoder)
    for place, (feature, width) in enumerate(zip(source.features, widths, strict=True)):
        if not isinstance(feature, Number) or feature.stages or feature.present is not None:
            raise Unsupported(f"{type(encoder).__name__} after another step")
        lookups.append(_lookup(encoder, place, feature, slice(end, end + width)))
        end += width
    return Listed(
        [
            Category(lookup, place)
            for lookup, width in zip(lookups, widths, strict=True)
            for place in range(width)
        ]
    )


def _widths(encoder: Any) -> list[int]:
    """Return the number of features that an encoder makes of each column."""
    if type(encoder).__name__ != "OneHotEncoder":
        return [1] * len(encoder.categories_)
    nothing = [None] * len(encoder.categories_)
    rare = getattr(encoder, "infrequent_categories_", nothing)  # missing if none are grouped
    dropped = nothing if encoder.drop_idx_ is None else encoder.drop_idx_
    return [
        len(known) - (0 if names is None else len(names) - 1) - (place is not None)
        for known, names, place in zip(encoder.categories_, rare, dropped, strict=True)
    ]


def _lookup(encoder: Any, place: int, feature: Number, block: slice) -> Lookup:
    known = encoder.categories_[place].tolist()
    asked = [value for value in known if value == value]
    rows = _encoded(encoder, place, asked)[:, block].tolist()
    found: dict[Any, Any] = {value: tuple(row) for value, row in zip(asked, rows, strict=True)}
    found.setdefault(None, _encoded_one(encoder, place, None, block))
    found[NAN] = _encoded_one(encoder, place, feature.missing, block)  # filled in, perhaps
    unknown = _encoded_one(encoder, place, _never_seen(asked), block)
    return Lookup(feature.column, found, unknown)


def _never_seen(known: list[Any]) -> Any:
    """Return a value that is not among those known."""
    if all(isinstance(value, str) for value in known):
        return "".join(known) + "?"
    return max(value for value in known if not isinstance(value, str)) + 1


def _encoded_one(encoder: Any, place: int, value: Any, block: slice) -> tuple[float, ...] | None:
    try:
        return tuple(_encoded(encoder, place, [value])[0, block].tolist())
    except (TypeError, ValueError):
        return None


def _encoded(encoder: Any, place: int, values: list[Any]) -> Doubles:
    """Encode rows with some values in one column, and any known ones in the others."""
    row = [known.tolist()[0] for known in encoder.categories_]
    table = np.empty((len(values), len(row)), dtype=object)
    table[:] = row
    table[:, place] = values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an array has no names of columns
        encoded = encoder.transform(table)
    dense = encoded.toarray() if hasattr(encoded, "toarray") else encoded
    return np.asarray(dense, dtype=np.float64)


_BY_TYPE: dict[str, Callable[[Any, Any], Prepared]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": _function,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _pipeline,
    "RobustScaler": _robust_scaler,
    "SimpleImputer": _imputer,
    "StandardScaler": _standard_scaler,
}
