"""Columns at a glance: their distributions in calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.plain_json import to_plain
from .columns import MISSING_CATEGORY
from .schema import TableSchema

_N_BINS = 10
_MOST_CATEGORIES = 20


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
    ends : tuple of float
        The lowest and the highest number of the fit; empty for categories, and in older models.

    Examples
    --------
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
    ends: tuple[float, ...] = ()

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
        ends = () if kind == "categorical" else _ends(values, chosen)
        return cls(name, kind, bins, _count(values, kind, bins), ends)

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
        ends = tuple(content.get("ends", ()))
        return cls(str(content["name"]), str(content["kind"]), bins, counts, ends)


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


def _ends(*parts: NDArray[np.float64]) -> tuple[float, ...]:
    present = np.concatenate([values[~np.isnan(values)] for values in parts])
    return (float(present.min()), float(present.max())) if present.size else ()


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
