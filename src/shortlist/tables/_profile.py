"""Columns at a glance: their distributions in calibration, and notes on odd ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.plain_json import to_plain
from ._columns import MISSING_CATEGORY
from ._schema import Feature, TableRows, TableSchema

__all__ = ["ColumnProfile", "column_profiles", "notes_on"]

_N_BINS = 10
_MOST_CATEGORIES = 20
_FEWEST_ROWS = 50
_NEARLY_ALL = 0.9
_MOST_VALUES = 20
_AMBIGUOUS_DATE = r"\d{1,2}/\d{1,2}/(\d{2}|\d{4})"


@dataclass(frozen=True)
class ColumnProfile:
    """Counts of a column by bin: up to ten bins of numbers with about equal counts, or categories.

    Attributes
    ----------
    name, kind : str, str
        Name and kind of the column.
    bins : tuple
        For numbers, the upper ends of all bins but the last, which is open. For categories, the
        most frequent ones; all others share one more bin.
    counts : tuple of int
        Number of rows in each bin, followed by the number of missing values.

    Examples
    --------
    >>> from shortlist.tables import ColumnProfile
    >>> profile = ColumnProfile.from_values("country", "categorical", ["ar", "ar", "br"])
    >>> profile.bins, profile.counts
    (('ar', 'br'), (2, 1, 0, 0))
    >>> profile.count(["br", "cl"])
    (0, 1, 1, 0)
    """

    name: str
    kind: str
    bins: tuple[Any, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_values(
        cls, name: str, kind: str, values: Any, *, bins_from: Any = None
    ) -> ColumnProfile:
        """Choose bins for the values of a column and count them.

        Parameters
        ----------
        name, kind : str, str
            Name and kind of the column.
        values : array-like
            Texts for the kind "categorical", 64-bit floats for all others.
        bins_from : array-like, default=None
            Other values of the same column, from which the bins are chosen; `None` takes `values`.
            Bins that suit `values` make other values look different: of many equally frequent
            categories, those that are frequent here are less frequent elsewhere.

        Returns
        -------
        ColumnProfile
        """
        values = np.asarray(values)
        chosen = values if bins_from is None else np.asarray(bins_from)
        bins = _categories(chosen) if kind == "categorical" else _upper_ends(chosen)
        return cls(name, kind, bins, _count(values, kind, bins))

    def count(self, values: Any) -> tuple[int, ...]:
        """Count other values of the same column in the same bins."""
        return _count(np.asarray(values), self.kind, self.bins)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, numbers and texts."""
        return to_plain(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ColumnProfile:
        """Read what :meth:`to_json` wrote."""
        bins, counts = tuple(content["bins"]), tuple(int(n) for n in content["counts"])
        return cls(str(content["name"]), str(content["kind"]), bins, counts)


def column_profiles(
    X: Any, schema: TableSchema, *, bins_from: Any = None
) -> tuple[ColumnProfile, ...]:
    """Describe all columns of the rows that a model takes, in bins chosen from other rows."""
    bins_from = X if bins_from is None else bins_from
    return tuple(
        ColumnProfile.from_values(f.name, f.kind, X[f.name], bins_from=bins_from[f.name])
        for f in schema.features
    )


def _categories(values: NDArray[Any]) -> tuple[str, ...]:
    names, counts = np.unique(values[values != MISSING_CATEGORY].astype(str), return_counts=True)
    return tuple(names[np.argsort(-counts, kind="stable")][:_MOST_CATEGORIES].tolist())


def _upper_ends(values: NDArray[np.float64]) -> tuple[float, ...]:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return ()
    shares = np.arange(1, _N_BINS) / _N_BINS
    ends = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    return tuple(ends[ends < present.max()].tolist())


def _count(values: NDArray[Any], kind: str, bins: tuple[Any, ...]) -> tuple[int, ...]:
    missing = values == MISSING_CATEGORY if kind == "categorical" else np.isnan(values)
    present = values[~missing]
    if kind == "categorical":
        place = {name: number for number, name in enumerate(bins)}
        places = np.array([place.get(value, len(bins)) for value in present.tolist()], np.intp)
    else:
        places = np.searchsorted(np.array(bins, dtype=np.float64), present, side="left")
    counts = np.bincount(places, minlength=len(bins) + 1).tolist()
    return (*counts, int(missing.sum()))


# --- notes ---


def notes_on(rows: TableRows, schema: TableSchema) -> list[str]:
    """Return a sentence for each column that the model should perhaps not learn from as it is."""
    if len(rows.X) < _FEWEST_ROWS:
        return []
    notes = [_note(rows.X[feature.name], feature, rows.is_rare) for feature in schema.features]
    return [note for note in notes if note is not None]


def _note(column: Any, feature: Feature, is_rare: Mask | None) -> str | None:
    name = feature.name
    if feature.kind == "categorical" and _looks_like_dates(column):
        return (
            f"{name!r} looks like dates, but day and month are ambiguous. It is treated as text. "
            "Write dates as 2024-05-31."
        )
    if _identifies_rows(column, feature.kind):
        return (
            f"{name!r} has a different value in nearly every row and looks like an id. If it is "
            f"one, use --id {name} to exclude it from learning."
        )
    if is_rare is not None and _gives_away(column, feature.kind, is_rare):
        return (
            f"{name!r} alone separates all rare rows from the others. Leave it out unless it is "
            "known when the decision is made."
        )
    return None


def _looks_like_dates(texts: Any) -> bool:
    present = texts[texts != MISSING_CATEGORY]
    return len(present) > 0 and bool(present.str.fullmatch(_AMBIGUOUS_DATE).all())


def _identifies_rows(column: Any, kind: str) -> bool:
    """Return whether a column holds names or running numbers."""
    if kind == "categorical":
        return bool(column.nunique() > _NEARLY_ALL * len(column))
    values = column.to_numpy()
    is_whole = bool(np.all(values == np.floor(values)))  # False if a value is missing
    return kind == "numeric" and is_whole and bool((np.diff(values) > 0).all())


def _gives_away(column: Any, kind: str, is_rare: Mask) -> bool:
    if kind == "categorical":
        labels = column.groupby(column).ngroup().to_numpy()
        pairs = np.unique(np.column_stack([labels, is_rare]), axis=0)
        return len(pairs) == column.nunique() <= _MOST_VALUES
    values = column.to_numpy()
    rare, common = values[is_rare], values[~is_rare]
    if np.isnan(values).any():
        return False
    return bool(rare.min() > common.max() or rare.max() < common.min())
