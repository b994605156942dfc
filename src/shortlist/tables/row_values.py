"""The values of single rows in the form that a model takes, without data frames."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from .._core.extras import load_extra
from .._core.validation import LARGEST
from .columns import MISSING_CATEGORY
from .schema import Feature, TableSchema

pa = load_extra("pyarrow", needed_for="Reading tables")

_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Whole seconds, in years whose seconds pandas can turn into days without rounding twice.
_MOMENT = re.compile(
    r"(18[3-9]|19\d|20\d)\d-\d\d-\d\d([T ]\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_MOST_REMEMBERED = 1 << 16


class RowValues:
    """Converts the values of single rows to what a model takes, as :class:`TableSchema` does.

    A value of a common form is converted here in about a microsecond. All others go through the
    conversion of whole columns, and are remembered. The two are compared when this object is made;
    a column on which they disagree always takes the second way.

    Parameters
    ----------
    schema : TableSchema
        The columns of the model.

    Examples
    --------
    >>> from shortlist.tables.schema import Feature, TableSchema
    >>> kinds = {"amount": "numeric", "opened": "date", "by": "categorical"}
    >>> features = tuple(Feature(name, kind) for name, kind in kinds.items())
    >>> values = RowValues(TableSchema(features, target="fraud", rare_label="yes"))
    >>> values((12.5, "2024-05-31", " web "))
    [12.5, 19874.0, 'web']
    """

    def __init__(self, schema: TableSchema) -> None:
        self._converters = [_converter(schema, feature) for feature in schema.features]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Convert a row.

        Parameters
        ----------
        values : sequence
            One value for each feature: None if it is missing, a float for a number, a bool for a
            truth, and a text for a date or a category.

        Returns
        -------
        list
            64-bit floats, and texts for categories.
        """
        pairs = zip(self._converters, values, strict=True)
        return [convert(value) for convert, value in pairs]


def _converter(schema: TableSchema, feature: Feature) -> Callable[[Any], Any]:
    column = _AsColumn(schema, feature)
    by_column = functools.lru_cache(_MOST_REMEMBERED)(lambda value: column([value])[0])
    quick, samples = _QUICK[feature.kind]
    # Words that mean "missing" in this column; they may be numbers.
    words = frozenset(feature.format.missing)
    numbers = frozenset(number for word in words for number in _numbers_in(word))

    def convert(value: Any) -> Any:
        converted = None if words and _may_be(value, words, numbers) else quick(value)
        return by_column(value) if converted is None else converted

    return convert if _agree(quick, column, samples) else by_column


def _agree(quick: Callable[[Any], Any], column: _AsColumn, samples: Sequence[Any]) -> bool:
    try:
        return all(map(_same, map(quick, samples), column(samples)))
    except ValueError:
        return False


def _may_be(value: Any, words: frozenset[str], numbers: frozenset[float]) -> bool:
    """Return whether a value could be one of some words, written in one way or another."""
    if isinstance(value, str):
        return not value.isascii() or value.strip().lower() in words
    return value in numbers


def _numbers_in(word: str) -> list[float]:
    """Return what a word can mean as a number, with a decimal comma or a decimal point."""
    found = []
    for text in (word, word.replace(",", "."), word.replace(",", ""), word.replace(".", "")):
        with contextlib.suppress(ValueError):
            found.append(float(text.replace(",", ".")))
    return found


def _same(one: Any, other: Any) -> bool:
    return one is None or one == other or (one != one and other != other)


class _AsColumn:
    """Converts values as a column of a table."""

    def __init__(self, schema: TableSchema, feature: Feature) -> None:
        self._schema = replace(schema, features=(feature,), id=None)
        self._name = feature.name
        self._type = {"numeric": pa.float64(), "boolean": pa.bool_()}.get(feature.kind, pa.string())

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        column = pa.table({self._name: pa.array(values, self._type)})
        return self._schema.convert(column).X[self._name].to_list()


# Each returns None for a value of another form.


def _number(value: float | None) -> float | None:
    if value is None:
        return math.nan
    return None if abs(value) > LARGEST else value


def _truth(value: bool | None) -> float:
    return math.nan if value is None else float(value)


def _category(value: str | None) -> str:
    return (value.strip() if value is not None else "") or MISSING_CATEGORY


def _days(value: str | None) -> float | None:
    if value is None:
        return math.nan
    if _MOMENT.fullmatch(value) is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * _SECONDS + since.seconds) / _SECONDS


_QUICK: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "numeric": (_number, (None, 0.1, -3.0)),
    "boolean": (_truth, (None, True, False)),
    "categorical": (
        _category,
        (
            None,
            "",
            "\u2003 \t",
            " a b\n",
            "A",
            "?",
            "-",
            "n/a",
            "NULL",
            "NaN",
            "0",
            "1,5",
            "(missing)",
        ),
    ),
    "date": (
        _days,
        (
            None,
            "2024-05-31",
            "1831-12-30 10:20:30",
            "2024-05-31T10:20:31Z",
            "2024-05-31 23:59:59-11:30",
        ),
    ),
}
