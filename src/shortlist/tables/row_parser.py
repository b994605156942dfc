"""Single rows as JSON has them, from lines and requests: parsed as the columns of a table are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.extras import load_extra
from .columns import Feature
from .options import INFER_ALL, ReadOptions
from .schema import TableSchema

pd = load_extra("pandas", needed_for="Reading tables")

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
        self._columns = [(feature.name, feature.read) for feature in self._features]
        weights = {} if schema.work is None else schema.work.columns
        self._weights = {option: Feature(name, "numeric") for option, name in weights.items()}

    def values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values of the model's columns, or raise an error that names the column."""
        try:
            return tuple([read(fields[name]) for name, read in self._columns])
        except _ERRORS:  # which of them?
            for feature in self._features:
                _check(fields, feature)
            raise

    def weights(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value and the effort of a case, as far as the model weighs them."""
        return {
            option: _weight(fields.get(feature.name), option, feature)
            for option, feature in self._weights.items()
        }

    def frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return parsed rows as a data frame for the model."""
        return pd.DataFrame(
            {
                feature.name: pd.Series([row[place] for row in rows], dtype=feature.dtype)
                for place, feature in enumerate(self._features)
            }
        )


def _check(fields: Mapping[str, Any], feature: Feature) -> None:
    """Raise an error if this column is missing, or cannot be parsed."""
    if feature.name not in fields:
        raise ValueError(
            f"The column {feature.name!r} is missing. Write null if its value is unknown."
        )
    try:
        feature.read(fields[feature.name])
    except _ERRORS:
        raise ValueError(feature.complaint(fields[feature.name], "got")) from None


def _weight(given: Any, option: str, feature: Feature) -> float:
    try:
        number: float = feature.read(given)
        if number > 0 if option == "effort" else number >= 0:
            return number
    except _ERRORS:
        pass
    least = "greater than 0" if option == "effort" else "of at least 0"
    shown = "nothing" if given is None else f"{given!r:.80}"
    raise ValueError(
        f"{feature.name!r}, which {option}=... names, must be a number {least}; got {shown}."
    )
