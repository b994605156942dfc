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
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from .._core.trees import Unsupported

#: Stands for NaN, which is not equal to itself, among the values of a column.
NAN = "\0NaN"


@dataclass(frozen=True, eq=False)
class Feature:
    """A number made of one column.

    Of a column of texts, `known` has what each text has become, at its place in `places`, and last
    what all others have. Of a column of numbers, without `places`, it has what a missing one has
    become. From other numbers a mean is subtracted, and they are divided by a scale, in several
    stages. In a mark of missing values, every number becomes 0: it is divided by infinity.
    """

    column: int
    known: list[Any]
    places: dict[Any, int] | None = None
    stages: tuple[tuple[float, float], ...] = ()

    @classmethod
    def raw(cls, column: int) -> Feature:
        """Return a column as it comes; before an encoder, it may have texts."""
        return cls(column, [math.nan])

    def filled(self, fill: Any) -> Feature:
        """Put a value in the place of missing ones."""
        return self._changed(lambda number: fill if number != number else number)

    def scaled(self, mean: float, scale: float) -> Feature:
        """Subtract a mean and divide by a scale."""
        scaled = self._changed(lambda number: (number - mean) / scale)
        return replace(scaled, stages=(*self.stages, (mean, scale)))

    def marked(self) -> Feature:
        """Mark where it is missing."""
        marks = self._changed(lambda number: float(number != number))
        return replace(marks, stages=((0.0, math.inf),))

    def _changed(self, change: Callable[[Any], Any]) -> Feature:
        """Change what is known beforehand: texts, and missing numbers."""
        return replace(self, known=[change(number) for number in self.known])


class FeatureArrays(NamedTuple):
    """Features as arrays.

    Each has the place of its column among the inputs. That of a text with code c is in `table`, at
    `start` + c; `start` is -1 for numbers. Two rows of `stages` are the means and scales of one.
    """

    source: NDArray[np.int32]
    start: NDArray[np.int32]
    missing: Doubles
    stages: Doubles
    table: Doubles


class Vocabulary:
    """The inputs of a model: columns that it uses as numbers, then codes of the texts of others.

    Code 0 stands for texts that no encoder knows.
    """

    def __init__(self, features: list[Feature]) -> None:
        texts: dict[int, dict[Any, int]] = {}
        for feature in features:
            if feature.places is not None:
                texts.setdefault(feature.column, {}).update(feature.places)
        self.numbers = sorted({each.column for each in features if each.places is None})
        self.codes = {
            column: {value: code for code, value in enumerate(texts[column], start=1)}
            for column in sorted(texts)
        }

    def arrays(self, features: list[Feature]) -> FeatureArrays:
        """Return features as arrays."""
        n_stages = max((len(feature.stages) for feature in features), default=0)
        source, start = np.zeros((2, len(features)), dtype=np.int32)
        missing = np.full(len(features), math.nan)
        stages = np.tile([[0.0], [1.0]], (n_stages, len(features)))  # less 0, divided by 1
        table: list[float] = []
        for k, feature in enumerate(features):
            if feature.places is not None:
                place = list(self.codes).index(feature.column)
                source[k], start[k] = len(self.numbers) + place, len(table)
                rows = (feature.places.get(text, -1) for text in self.codes[feature.column])
                table += [feature.known[row] for row in (-1, *rows)]
                continue
            source[k], start[k] = self.numbers.index(feature.column), -1
            missing[k] = feature.known[0]
            for stage, change in enumerate(feature.stages):
                stages[2 * stage : 2 * stage + 2, k] = change
        return FeatureArrays(source, start, missing, stages, np.array(table, float))


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
    has_gaps = any(each.places is None and each.known[0] != each.known[0] for each in prepared)
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
        feature.filled(fill)
        for feature, fill in zip(features, statistics, strict=True)
        if imputer.keep_empty_features or fill == fill
    ]
    if imputer.add_indicator:
        kept += [features[k].marked() for k in imputer.indicator_.features_.tolist()]
    return kept


def _standard_scaler(scaler: Any, features: list[Feature]) -> list[Feature]:
    n_features = len(features)
    means = scaler.mean_.tolist() if scaler.with_mean else [0.0] * n_features
    scales = scaler.scale_.tolist() if scaler.with_std else [1.0] * n_features
    changes = zip(features, means, scales, strict=True)
    return [feature.scaled(mean, scale) for feature, mean, scale in changes]


def _encoder(encoder: Any, features: list[Feature]) -> list[Feature]:
    """Ask an encoder for the numbers of each text that it knows, and of a text that it does not."""
    encoded: list[Feature] = []
    widths = getattr(encoder, "_n_features_outs", [1] * len(features))  # of a one-hot encoder
    for place, feature in enumerate(features):
        if feature.places is not None or feature.stages:
            raise Unsupported(f"{type(encoder).__name__} after another step")
        known = [value for value in encoder.categories_[place].tolist() if value == value]
        if not all(isinstance(value, str) for value in known if value is not None):
            raise Unsupported("an encoder of numbers")
        texts = [value for value in known if value is not None]
        asked = [*texts, None, feature.known[0], "".join(texts) + "?"]  # missing, or filled in
        block = slice(len(encoded), len(encoded) + widths[place])
        table = _encoded(encoder, place, asked)[:, block]
        places = {value: row for row, value in enumerate([*texts, None, NAN])}
        encoded += [Feature(feature.column, column.tolist(), places) for column in table.T]
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
