"""How columns were prepared, as a list of features. To add a transformer, see `_BY_TYPE`.

Each feature comes from one column: a scaled number, a mark of a missing value, or what an encoder
gives for a text. Imputing and scaling change features one by one, with the same operations in
double precision as scikit-learn's, and so give the same bits. What is done to a text or to a mark
is computed here: only numbers are computed when a row arrives.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.trees import Unsupported

#: Stands for NaN, which is not equal to itself, among the values of a column.
NAN = "\0NaN"


@dataclass(frozen=True)
class Number:
    """A column of numbers: less a mean and divided by a scale, perhaps several times.

    Before an encoder it is a column of any values, and `missing` perhaps a text. In a mark of
    missing values, every number becomes 0 first: it is divided by infinity.
    """

    column: int
    missing: Any = math.nan  # what a missing value has become
    stages: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Category:
    """What an encoder gives for the texts of a column, perhaps filled and scaled.

    `places` are the places of texts, None and NAN in `numbers`, whose last one is for all others.
    """

    column: int
    places: dict[Any, int]
    numbers: list[float]

    def number(self, value: Any) -> float:
        """Return the feature for a value."""
        return self.numbers[self.places.get(value, -1)]


Feature = Number | Category


def _filled(feature: Feature, fill: float) -> Feature:
    """Put a number in the place of missing ones."""
    return _changed(feature, lambda number: fill if number != number else number)


def _scaled(feature: Feature, mean: float, scale: float) -> Feature:
    """Subtract a mean and divide by a scale."""
    if isinstance(feature, Number):
        feature = replace(feature, stages=(*feature.stages, (mean, scale)))
    return _changed(feature, lambda number: (number - mean) / scale)


def _marked(feature: Feature) -> Feature:
    """Mark where a feature is missing."""
    if isinstance(feature, Number):
        is_missing = float(feature.missing != feature.missing)
        return Number(feature.column, is_missing, ((0.0, math.inf),))
    return _changed(feature, lambda number: float(number != number))


def _changed(feature: Feature, change: Callable[[float], float]) -> Feature:
    """Change what is known beforehand: texts, and missing numbers."""
    if isinstance(feature, Category):
        return replace(feature, numbers=[change(number) for number in feature.numbers])
    return replace(feature, missing=change(feature.missing))


class Vocabulary:
    """The columns that a model uses as numbers, and the codes of the texts of the others.

    Code 0 stands for texts that no encoder knows.
    """

    def __init__(self, features: Iterable[Feature]) -> None:
        numbers: set[int] = set()
        texts: dict[int, dict[Any, None]] = {}
        for feature in features:
            if isinstance(feature, Category):
                texts.setdefault(feature.column, {}).update(dict.fromkeys(feature.places))
            else:
                numbers.add(feature.column)
        self.numbers = sorted(numbers)
        self.codes = {
            column: {value: code for code, value in enumerate(texts[column], start=1)}
            for column in sorted(texts)
        }

    def table(self, feature: Category) -> list[float]:
        """Return the feature for each code of its column."""
        return [feature.numbers[-1], *map(feature.number, self.codes[feature.column])]


# --- transformers --------------------------------------------------------------------------------


def transformed(transformer: Any, features: list[Feature]) -> list[Feature]:
    """Return the features after a fitted transformer, or "passthrough"."""
    name = "passthrough" if transformer is None else type(transformer).__name__
    if isinstance(transformer, str):
        name = transformer
    if name not in _BY_TYPE:
        raise Unsupported(name)
    return _BY_TYPE[name](transformer, features)


def without_names(estimator: Any) -> Any:
    """Return an estimator that takes arrays, and has no names of columns to compare."""
    nameless = copy.copy(estimator)
    vars(nameless).pop("feature_names_in_", None)
    return nameless


def _pipeline(pipeline: Any, features: list[Feature]) -> list[Feature]:
    for _, step in pipeline.steps:
        features = transformed(step, features)
    return features


def _column_transformer(transformer: Any, features: list[Feature]) -> list[Feature]:
    prepared: list[Feature] = []
    for name, fitted, _ in transformer.transformers_:
        places = transformer._transformer_to_input_indices[name]
        if places:
            prepared += transformed(fitted, [features[place] for place in places])
    has_gaps = any(isinstance(each, Number) and each.missing != each.missing for each in prepared)
    if has_gaps and transformer.sparse_output_:
        raise Unsupported("a sparse matrix with missing values")  # which forests refuse
    return prepared


def _function(transformer: Any, features: list[Feature]) -> list[Feature]:
    if transformer.func is not None:
        raise Unsupported("FunctionTransformer")
    return features


def _imputer(imputer: Any, features: list[Feature]) -> list[Feature]:
    if imputer.missing_values == imputer.missing_values:
        raise Unsupported(f"SimpleImputer(missing_values={imputer.missing_values!r})")
    statistics = np.asarray(imputer.statistics_).tolist()
    kept = [
        _filled(feature, fill)
        for feature, fill in zip(features, statistics, strict=True)
        if imputer.keep_empty_features or fill == fill
    ]
    if imputer.add_indicator:
        kept += [_marked(features[k]) for k in imputer.indicator_.features_.tolist()]
    return kept


def _standard_scaler(scaler: Any, features: list[Feature]) -> list[Feature]:
    n_features = len(features)
    means = scaler.mean_.tolist() if scaler.with_mean else [0.0] * n_features
    scales = scaler.scale_.tolist() if scaler.with_std else [1.0] * n_features
    return [_scaled(*change) for change in zip(features, means, scales, strict=True)]


def _encoder(encoder: Any, features: list[Feature]) -> list[Feature]:
    """Ask an encoder for the numbers of each text that it knows, and of a text that it does not."""
    encoded: list[Feature] = []
    widths = getattr(encoder, "_n_features_outs", [1] * len(features))  # of a one-hot encoder
    for place, feature in enumerate(features):
        if not isinstance(feature, Number) or feature.stages:
            raise Unsupported(f"{type(encoder).__name__} after another step")
        known = [value for value in encoder.categories_[place].tolist() if value == value]
        if not all(isinstance(value, str) for value in known if value is not None):
            raise Unsupported("an encoder of numbers")
        texts = [value for value in known if value is not None]
        asked = [*texts, None, feature.missing, "".join(texts) + "?"]  # missing, or filled in
        block = slice(len(encoded), len(encoded) + widths[place])
        table = _encoded(encoder, place, asked)[:, block]
        places = {value: row for row, value in enumerate([*texts, None, NAN])}
        encoded += [Category(feature.column, places, column.tolist()) for column in table.T]
    return encoded


def _encoded(encoder: Any, place: int, values: list[Any]) -> Doubles:
    """Encode rows with some values in one column, and any known ones in the others."""
    table = np.empty((len(values), len(encoder.categories_)), dtype=object)
    table[:] = [known.tolist()[0] for known in encoder.categories_]
    table[:, place] = values
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an array has no names of columns
            encoded = encoder.transform(table)
    except ValueError:
        raise Unsupported("an encoder that raises an error for unknown or missing texts") from None
    dense = encoded.toarray() if hasattr(encoded, "toarray") else encoded
    return np.asarray(dense, dtype=np.float64)


_BY_TYPE: dict[str, Callable[[Any, Any], list[Feature]]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": _function,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _pipeline,
    "SimpleImputer": _imputer,
    "StandardScaler": _standard_scaler,
    "drop": lambda transformer, features: [],
    "passthrough": lambda transformer, features: features,
}
