"""Lines of JSON: read from a file descriptor, and parsed for a model."""

from __future__ import annotations

import json
import math
import os
import select
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from .._core.extras import load_extra
from .._core.plain_json import flattened
from .._core.timestamps import parse_moment, to_seconds
from .._core.validation import LARGEST
from ..tables import ReadOptions
from ..tables.column_format import ColumnFormat, read_number, read_truth
from ..tables.row_values import RowValues
from ..tables.schema import Feature, TableSchema

__all__ = ["LONGEST_LINE", "TOO_LONG", "Item", "LineReader", "read_batches"]

LONGEST_LINE = 1 << 20
#: Stands for a line that was longer than that and was skipped.
TOO_LONG = b"\0too long"
_CHUNK = 1 << 16
_NO_IDS = "a case that comes again is decided again. Name the field with the ids with --id"
_NO_MOMENTS = "the moment of a line is now. Name the field with the moments with --time"


def read_batches(descriptor: int, *, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines.

    A list is yielded as soon as no more input is waiting. Therefore a slow stream is answered line
    by line, and a fast one in batches.
    """
    lines: list[bytes] = []
    rest, skipping, ended = b"", False, False
    while not ended:
        chunk = os.read(descriptor, _CHUNK)
        ended = not chunk
        *complete, rest = (rest + chunk + (b"\n" if ended and rest else b"")).split(b"\n")
        for line in complete:
            lines.append(TOO_LONG if skipping else line)
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        while len(lines) >= most or (lines and (ended or not _is_waiting(descriptor))):
            yield lines[:most]
            del lines[:most]
    if skipping:
        yield [TOO_LONG]


def _is_waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


class Item(NamedTuple):
    """A parsed line; `shown` is the id as it was written, and `error` the problem, if any.

    `value` and `effort` are those of the case, if the model weighs them.
    """

    line: int
    shown: Any = None
    id: str | None = None
    at: float | None = None
    values: tuple[Any, ...] = ()
    error: str | None = None
    value: float | None = None
    effort: float | None = None


class LineReader:
    """Parses lines for a model: its columns by name, and the fields with the id and the moment."""

    def __init__(
        self,
        schema: TableSchema,
        *,
        id_field: str | None,
        time_field: str,
        reading: ReadOptions | None = None,
    ) -> None:
        # This class reads the ids.
        self._schema = replace(schema.adapted(reading or ReadOptions()), id=None, work=None)
        self._weights = {} if schema.work is None else schema.work.columns
        self._features = self._schema.features
        self._columns = [(each.name, _READERS[each.kind], each.format) for each in self._features]
        names = {feature.name for feature in schema.features}
        own = schema.id if schema.id is not None else None if "id" in names else "id"
        self._id_field = own if id_field is None else id_field
        self._time_field = time_field
        self._expected = {}
        if self._id_field is not None and self._id_field in (id_field, schema.id):
            self._expected[self._id_field] = _NO_IDS
        if time_field != "at":
            self._expected[time_field] = _NO_MOMENTS

    def read(self, number: int, line: bytes) -> Item:
        """Parse a line; the item reports whatever is wrong with it."""
        if line == TOO_LONG:
            return Item(number, error=f"The line is longer than {LONGEST_LINE:,} bytes.")
        shown = None
        try:
            fields = _object(line)
            if self._expected:
                self._expected = {f: why for f, why in self._expected.items() if f not in fields}
            given = fields.get(self._id_field) if self._id_field is not None else None
            shown = given if isinstance(given, (str, int)) else None
            id, at = _id(given, self._id_field), fields.get(self._time_field)
            moment = None if at is None else _moment(at)
            return Item(number, shown, id, moment, self.values(fields), **self.weights(fields))
        except (TypeError, ValueError) as error:
            return Item(number, shown, error=" ".join(str(error).split()))

    def notes(self) -> list[str]:
        """Return what it means that no line so far had the field with the id or the moment."""
        return [f"No line has the field {field!r}: {why}" for field, why in self._expected.items()]

    def values(self, fields: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of the model's columns, or raise an error that names the column."""
        try:
            return tuple(
                [
                    None if (value := fields[name]) is None else read(value, format)
                    for name, read, format in self._columns
                ]
            )
        except (KeyError, TypeError, ValueError, OverflowError):  # which of them?
            return tuple([_value(fields, feature) for feature in self._features])

    def weights(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the value and the effort of a case, as far as the model weighs them."""
        return {
            option.removeprefix("--"): _weight(fields, option, name)
            for option, name in self._weights.items()
        }

    def row_values(self) -> RowValues:
        """Return what turns the values of a valid item into a row of plain values for a model."""
        return RowValues(self._schema)

    def frame(self, items: list[Item]) -> Any:
        """Return the values of valid items as rows for the model."""
        pa = load_extra("pyarrow", needed_for="Streaming")
        types = {"numeric": pa.float64(), "boolean": pa.bool_()}
        columns = {
            feature.name: pa.array(
                [item.values[place] for item in items], types.get(feature.kind, pa.string())
            )
            for place, feature in enumerate(self._features)
        }
        return self._schema.convert(pa.table(columns)).X


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("The line is not JSON. Write one object per line.") from None
    if not isinstance(fields, dict):
        raise ValueError("The line must be a JSON object with the columns of the model.")
    return flattened(fields)


def _id(value: Any, field: str | None) -> str | None:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{field!r} is empty. Leave it out, or write null, if a case has no id.")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # 1 and "1" are the same id, as in tables
    raise ValueError(f"{field!r} must be a string or a whole number; got {value!r:.80}.")


def _moment(value: Any) -> float:
    return parse_moment(value) if isinstance(value, str) else to_seconds(value)


def _value(fields: dict[str, Any], feature: Feature) -> Any:
    if feature.name not in fields:
        raise ValueError(
            f"The column {feature.name!r} is missing. Write null if its value is unknown."
        )
    value = fields[feature.name]
    if value is None:
        return None
    try:
        return _READERS[feature.kind](value, feature.format)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{feature.name!r} must be {_EXPECTED[feature.kind]}; got {value!r:.80}."
            f"{_remedy(value, feature)}"
        ) from None


def _remedy(value: Any, feature: Feature) -> str:
    """Return the option that would read a text, if there is one."""
    if feature.kind != "numeric" or not isinstance(value, str):
        return ""
    other = "," if feature.format.decimal == "." else "."
    try:
        read_number(value, replace(feature.format, decimal=other, thousands=feature.format.decimal))
    except ValueError:
        return ""
    return f" If it is a number, use --decimal {other}"


def _weight(fields: dict[str, Any], option: str, name: str) -> float:
    """Return the value or the effort of a case."""
    given = fields.get(name)
    try:
        number = _number(given, ColumnFormat())
        if number is not None and (number > 0 if option == "--effort" else number >= 0):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    least = "greater than 0" if option == "--effort" else "of at least 0"
    shown = "nothing" if given is None else f"{given!r:.80}"
    raise ValueError(f"{name!r}, which {option} names, must be a number {least}; got {shown}.")


def _number(value: Any, format: ColumnFormat) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError
    number = read_number(value, format) if isinstance(value, str) else float(value)
    if number is None or math.isnan(number):
        return None
    if abs(number) > LARGEST:
        raise ValueError
    return number


def _truth(value: Any, format: ColumnFormat) -> bool:
    return value if isinstance(value, bool) else read_truth(_text(value, format))


def _date(value: Any, format: ColumnFormat) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text(value: Any, format: ColumnFormat) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # raises an error for half of a surrogate pair
    return value


_READERS: dict[str, Any] = {
    "numeric": _number,
    "boolean": _truth,
    "date": _date,
    "categorical": _text,
}
_EXPECTED = {
    "numeric": "a finite number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "categorical": "a string",
}
