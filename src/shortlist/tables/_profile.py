"""How the values of each column were spread in calibration, in a few numbers per column."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import MISSING_CATEGORY
from ._schema import TableSchema

__all__ = ["ColumnProfile", "column_profiles"]

_N_BINS = 10
_MOST_CATEGORIES = 20


@dataclass(frozen=True)
class ColumnProfile:
    """Counts of a column by bins: up to ten of numbers with about equal counts, or categories.

    Attributes
    ----------
    name, kind : str, str
        Of the column.
    bins : tuple
        Upper ends of all bins of numbers but the last, which has none; or the most frequent
        categories, after which all others share a bin.
    counts : tuple of int
        Rows in each bin, and the number without a value at last.
    """

    name: str
    kind: str
    bins: tuple[Any, ...]
    counts: tuple[int, ...]

    def count(self, values: Any) -> tuple[int, ...]:
        """Count other values of the same column by the same bins."""
        return _count(np.asarray(values), self.kind, self.bins)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, numbers and texts."""
        return asdict(self) | {"bins": list(self.bins), "counts": list(self.counts)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ColumnProfile:
        """Read what :meth:`to_json` wrote."""
        bins, counts = tuple(content["bins"]), tuple(int(n) for n in content["counts"])
        return cls(str(content["name"]), str(content["kind"]), bins, counts)


def column_profiles(X: Any, schema: TableSchema) -> tuple[ColumnProfile, ...]:
    """Describe the columns of rows that are ready for a model."""
    profiles = []
    for feature in schema.features:
        values = np.asarray(X[feature.name])
        bins = _categories(values) if feature.kind == "categorical" else _upper_ends(values)
        counts = _count(values, feature.kind, bins)
        profiles.append(ColumnProfile(feature.name, feature.kind, bins, counts))
    return tuple(profiles)


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
