"""Features of all parts of a model as arrays, and the compiled function that fills them in.

The values of a row are first looked up once, for all parts of the model: numbers as they are, and a
code for each text. Values that no encoder tells apart share a code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._core.arrays import Doubles
from ._columns import (
    NAN,
    Called,
    Category,
    Feature,
    Listed,
    Lookup,
    Mark,
    Number,
    Prepared,
    features_in,
)

__all__ = ["Encoded", "Plan", "Refused", "Vocabulary", "plan_of"]

_NUMBER, _MARK, _CATEGORY = 0, 1, 2


class Refused(Exception):
    """A row for which the model itself has to answer, most likely by an error."""


class Encoded:
    """Rows as arrays: the numbers of their columns, and the codes of their texts."""

    def __init__(self, numbers: Doubles, codes: NDArray[np.int32]) -> None:
        self.numbers, self.codes = numbers, codes
        self._prepared: dict[int, Doubles] = {}

    def prepared_by(self, plan: Plan) -> Doubles:
        """Return the rows as a plan prepares them, which happens once for each plan."""
        if id(plan) not in self._prepared:
            self._prepared[id(plan)] = plan(self)
        return self._prepared[id(plan)]


class Vocabulary:
    """The columns that a model uses as numbers, and the codes of the values of the others.

    Code 0 stands for values that no encoder knows. For each column in `texts`, `codes` has the
    codes of its values, and `refused` those for which an encoder raises an error.
    """

    def __init__(self, prepared: Iterable[Prepared]) -> None:
        features = [feature for each in prepared for feature in features_in(each)]
        self.numbers = sorted({f.column for f in features if not isinstance(f, Category)})
        lookups: dict[int, dict[int, Lookup]] = {}
        for feature in features:
            if isinstance(feature, Category):
                same = lookups.setdefault(feature.lookup.column, {})
                same[id(feature.lookup)] = feature.lookup
        self.texts = sorted(lookups)
        coded = {column: _coded(list(same.values())) for column, same in lookups.items()}
        self.codes = [coded[column][0] for column in self.texts]
        self._examples = {column: coded[column][1] for column in self.texts}
        self.refused = [coded[column][2] for column in self.texts]

    def encode(self, rows: Sequence[Sequence[Any]]) -> Encoded:
        """Look the values of rows up."""
        places, codings = self.numbers, list(zip(self.texts, self.codes, strict=True))
        numbers = np.array([[row[k] for k in places] for row in rows], dtype=np.float64)
        codes = [
            [known.get(row[k] if row[k] == row[k] else NAN, 0) for k, known in codings]
            for row in rows
        ]
        for row in codes:
            for code, refused in zip(row, self.refused, strict=True):
                if code in refused:
                    raise Refused
        shape = len(rows), len(codings)
        return Encoded(
            numbers.reshape(len(rows), len(places)),
            np.array(codes, dtype=np.int32).reshape(shape),
        )

    def number_place(self, column: int) -> int:
        """Return where the numbers of a column are."""
        return self.numbers.index(column)

    def text_place(self, column: int) -> int:
        """Return where the codes of a column are."""
        return self.texts.index(column)

    def examples(self, column: int) -> list[Any]:
        """Return a value of a column for each code."""
        return self._examples[column]


def _coded(lookups: list[Lookup]) -> tuple[dict[Any, int], list[Any], set[int]]:
    """Return the codes of the values of a column, a value for each code, and codes to refuse."""
    unseen = object()  # equal to no value
    values = dict.fromkeys(value for lookup in lookups for value in lookup.rows)
    codes: dict[Any, int] = {}
    answers: dict[Any, int] = {}
    examples: list[Any] = []
    for value in (unseen, *values):
        answer = tuple(lookup.row(value) for lookup in lookups)
        if answer not in answers:
            answers[answer] = len(examples)
            examples.append(value)
        if value is not unseen:
            codes[value] = answers[answer]
    refused = {code for answer, code in answers.items() if None in answer}
    return codes, examples, refused


# --- features as arrays --------------------------------------------------------------------------


class _ListedPlan:
    """Computes a list of features."""

    def __init__(self, features: Sequence[Feature], vocabulary: Vocabulary) -> None:
        n_stages = max((len(f.stages) for f in features if isinstance(f, Number)), default=0)
        self._kinds = np.zeros(len(features), dtype=np.int8)
        self._sources = np.zeros(len(features), dtype=np.int32)
        self._starts = np.zeros(len(features), dtype=np.int32)  # of the tables of categories
        self._missing = np.full(len(features), math.nan)
        self._present = np.zeros(len(features))
        self._stages = np.zeros((2 * n_stages, len(features)))
        self._stages[1::2] = 1.0  # less 0, divided by 1: no change
        table: list[float] = []
        for k, feature in enumerate(features):
            self._add(k, feature, vocabulary, table)
        self._table = np.array(table, dtype=np.float64)

    def _add(self, k: int, feature: Feature, vocabulary: Vocabulary, table: list[float]) -> None:
        if isinstance(feature, Category):
            column = feature.lookup.column
            self._kinds[k], self._starts[k] = _CATEGORY, len(table)
            self._sources[k] = vocabulary.text_place(column)
            table += [feature.number(value) for value in vocabulary.examples(column)]
            return
        self._sources[k] = vocabulary.number_place(feature.column)
        self._missing[k] = feature.missing
        if isinstance(feature, Mark):
            self._kinds[k], self._present[k] = _MARK, feature.present
            return
        for stage, (mean, scale) in enumerate(feature.stages):
            self._stages[2 * stage : 2 * stage + 2, k] = mean, scale

    def __call__(self, rows: Encoded) -> Doubles:
        out = np.empty((len(rows.numbers), self._kinds.size))
        _fill_in(
            rows.numbers,
            rows.codes,
            self._kinds,
            self._sources,
            self._starts,
            self._missing,
            self._present,
            self._stages,
            self._table,
            out,
        )
        return out


@njit(cache=True)
def _fill_in(numbers, codes, kinds, sources, starts, missing, present, stages, table, out):
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            source = sources[k]
            if kinds[k] == 2:
                out[i, k] = table[starts[k] + codes[i, source]]
                continue
            number = numbers[i, source]
            if number != number:
                out[i, k] = missing[k]
            elif kinds[k] == 1:
                out[i, k] = present[k]
            else:
                for stage in range(0, stages.shape[0], 2):
                    number = (number - stages[stage, k]) / stages[stage + 1, k]
                out[i, k] = number


class _CalledPlan:
    """Computes what a transformer itself returns."""

    def __init__(self, transformer: Any, source: Plan) -> None:
        self._transform, self._source = transformer.transform, source

    def __call__(self, rows: Encoded) -> Doubles:
        result = self._transform(rows.prepared_by(self._source))
        dense = result.toarray() if hasattr(result, "toarray") else result
        return np.ascontiguousarray(dense, dtype=np.float64)


class _JoinedPlan:
    """Computes several preparations side by side."""

    def __init__(self, parts: list[Plan]) -> None:
        self._parts = parts

    def __call__(self, rows: Encoded) -> Doubles:
        return np.hstack([part(rows) for part in self._parts])


Plan = _ListedPlan | _CalledPlan | _JoinedPlan


def plan_of(prepared: Prepared, vocabulary: Vocabulary) -> Plan:
    """Return a function that prepares encoded rows."""
    if isinstance(prepared, Listed):
        return _ListedPlan(prepared.features, vocabulary)
    if isinstance(prepared, Called):
        return _CalledPlan(prepared.transformer, plan_of(prepared.source, vocabulary))
    return _JoinedPlan([plan_of(part, vocabulary) for part in prepared.parts])
