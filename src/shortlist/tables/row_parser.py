"""Single rows as JSON has them, from lines and requests: parsed as the columns of a table are."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.extras import load_extra
from .._core.validation import LARGEST
from .column_format import ColumnFormat, read_number, sentinels
from .columns import missing_value, number_text, remedy_for, takes_numbers, text_reader
from .options import INFER_ALL, ReadOptions
from .schema import Feature, TableSchema

pd = load_extra("pandas", needed_for="Reading tables")

_MOST_REMEMBERED = 1 << 12
_EXPECTED = {
    "numeric": "a finite number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "categorical": "a string",
}
_ERRORS = (KeyError, TypeError, ValueError, OverflowError)


class RowParser:
    """Parses rows for a model: each value becomes what a column of a table would make of it.

    >>> kinds = {"amount": "numeric", "opened": "date", "by": "categorical"}
    >>> features = tuple(Feature(name, kind) for name, kind in kinds.items())
    >>> parser = RowParser(TableSchema(features, target="fraud", rare_label="yes"))
    >>> parser.values({"amount": "12.5", "opened": "2024-05-31", "by": " web "})
    (12.5, 19874.0, 'web')
    """

    def __init__(self, schema: TableSchema, reading: ReadOptions = INFER_ALL) -> None:
        self._features = schema.adapted(reading).features
        self._columns = [
            (f.name, _number_parser(f) if f.kind == "numeric" else _text_parser(f))
            for f in self._features
        ]
        self._weights = {} if schema.work is None else schema.work.columns

    def values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values of the model's columns, or raise an error that names the column."""
        try:
            return tuple([parse(fields[name]) for name, parse in self._columns])
        except _ERRORS:  # which of them?
            for feature, (_, parse) in zip(self._features, self._columns, strict=True):
                _check(fields, feature, parse)
            raise

    def weights(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value and the effort of a case, as far as the model weighs them."""
        return {
            option.removeprefix("--"): _weight(fields.get(name), option, name)
            for option, name in self._weights.items()
        }

    def frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return parsed rows as a data frame for the model."""
        dtypes = [object if f.kind == "categorical" else float for f in self._features]
        return pd.DataFrame(
            {
                feature.name: pd.Series([row[place] for row in rows], dtype=dtype)
                for place, (feature, dtype) in enumerate(zip(self._features, dtypes, strict=True))
            }
        )


def parse_number(value: Any, format: ColumnFormat) -> float:
    """Return a number or a text as a number, and NaN if it is missing; others raise an error."""
    if isinstance(value, str):
        number = read_number(value, format)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    else:
        raise TypeError
    if abs(number) > LARGEST:
        raise ValueError
    return number


def _number_parser(feature: Feature) -> Callable[[Any], float]:
    format, missing = feature.format, sentinels(feature.format)

    def parse(value: Any) -> float:
        if value is None:
            return math.nan
        number = parse_number(value, format)
        return math.nan if number in missing else number

    return parse


def _text_parser(feature: Feature) -> Callable[[Any], Any]:
    missing = missing_value(feature.kind)
    read = functools.lru_cache(_MOST_REMEMBERED)(text_reader(feature.kind, feature.format))
    takes_others = feature.kind != "date" or takes_numbers("date", feature.format)

    def parse(value: Any) -> Any:
        if isinstance(value, str):
            value.encode()  # raises an error for half of a surrogate pair
            return read(value)
        if value is None:
            return missing
        if takes_others and isinstance(value, (bool, int, float)):
            return read(str(value).lower() if isinstance(value, bool) else number_text(value))
        raise TypeError

    return parse


# --- what is wrong ---


def _check(fields: Mapping[str, Any], feature: Feature, parse: Callable[[Any], Any]) -> None:
    """Raise an error if this column is missing, or cannot be parsed."""
    if feature.name not in fields:
        raise ValueError(
            f"The column {feature.name!r} is missing. Write null if its value is unknown."
        )
    value = fields[feature.name]
    try:
        parse(value)
    except _ERRORS:
        text = value if isinstance(value, str) else ""
        remedy = text and remedy_for(text, feature.name, feature.kind, feature.format)
        wanted = _EXPECTED[feature.kind]
        message = f"{feature.name!r} must be {wanted}; got {value!r:.80}. {remedy}"
        raise ValueError(message.strip()) from None


def _weight(given: Any, option: str, name: str) -> float:
    try:
        number = parse_number(given, ColumnFormat())
        if number > 0 if option == "effort" else number >= 0:
            return number
    except _ERRORS:
        pass
    least = "greater than 0" if option == "effort" else "of at least 0"
    shown = "nothing" if given is None else f"{given!r:.80}"
    raise ValueError(f"{name!r}, which {option}=... names, must be a number {least}; got {shown}.")
