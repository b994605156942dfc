"""Features of all parts of a model as arrays, and the compiled function that fills them in.

The values of a row are first looked up once, for all parts of the model: numbers as they are, and a
code for each text. Values that no encoder tells apart share a code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._core.arrays import Doubles
from ._columns import NAN, Called, Category, Feature, Listed, Lookup, Number, Prepared, features_in


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


class _Arrays(NamedTuple):
    """Where each feature comes from, and what it is made of.

    The feature of a text is in `table`, from `start` on; `start` is -1 for all others. That of a
    missing number is `missing`; another number goes through `stages`, or is `present` for a mark.
    """

    source: NDArray[np.int32]
    start: NDArray[np.int32]
    missing: Doubles
    present: Doubles
    stages: Doubles
    table: Doubles


class _ListedPlan:
    """Computes a list of features."""

    def __init__(self, features: Sequence[Feature], vocabulary: Vocabulary) -> None:
        n_stages = max((len(f.stages) for f in features if isinstance(f, Number)), default=0)
        source, start = np.zeros((2, len(features)), dtype=np.int32)
        missing, present = np.full((2, len(features)), math.nan)
        stages = np.tile([[0.0], [1.0]], (n_stages, len(features)))  # less 0, divided by 1
        table: list[float] = []
        for k, feature in enumerate(features):
            if isinstance(feature, Category):
                column = feature.lookup.column
                source[k], start[k] = vocabulary.texts.index(column), len(table)
                table += [feature.number(value) for value in vocabulary.examples(column)]
                continue
            source[k], start[k] = vocabulary.numbers.index(feature.column), -1
            missing[k] = feature.missing
            present[k] = math.nan if feature.present is None else feature.present
            for stage, change in enumerate(feature.stages):
                stages[2 * stage : 2 * stage + 2, k] = change
        self._arrays = _Arrays(source, start, missing, present, stages, np.array(table, float))

    def __call__(self, rows: Encoded) -> Doubles:
        out = np.empty((len(rows.numbers), self._arrays.source.size))
        _fill_in(rows.numbers, rows.codes, *self._arrays, out)
        return out


@njit(cache=True)
def _fill_in(numbers, codes, sources, starts, missing, present, stages, table, out):
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            source = sources[k]
            if starts[k] >= 0:
                out[i, k] = table[starts[k] + codes[i, source]]
                continue
            number = numbers[i, source]
            if number != number:
                out[i, k] = missing[k]
            elif present[k] == present[k]:
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
