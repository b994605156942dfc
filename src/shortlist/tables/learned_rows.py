"""What a model keeps of the rows that it learned from: their fingerprints and distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from .._core.arrow import pd
from .._core.formatting import number
from .._core.ids import hash_ids, hash_rows
from .columns import MISSING_CATEGORY, is_missing
from .schema import TableRows, TableSchema

if TYPE_CHECKING:
    from .cases import Columns


#: The most hashes that are kept: one megabyte. Of longer tables, a random sample of rows is kept.
_MOST = 1 << 17
_SPACE = 1 << 53
# Ids are hashed as well if more rows than this share repeat without them.
_OFTEN = 0.01
# More rows than chance explains: the exact p-value is below this level.
_UNLIKELY = 0.001

# Bins of a column: of numbers, and of categories at most.
_N_BINS, _MOST_CATEGORIES = 10, 20

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SeenRows:
    """How many rows of a table a model was fitted on.

    Attributes
    ----------
    n_items : int
        Number of rows.
    n_seen : int
        Number of rows that equal a row of the fit; an estimate if only a sample was kept.
    expected : float
        How many would do so by chance, because rows repeat.
    is_surprising : bool
        Whether there are more of them than chance explains, by an exact test at the level 0.001.
    """

    n_items: int
    n_seen: int
    expected: float
    is_surprising: bool

    @property
    def in_words(self) -> str | None:
        """One or two sentences for the reader of results; None if no row was seen before."""
        if not self.n_seen:
            return None
        count = f"{self.n_seen:,} of {self.n_items:,}"
        if self.is_surprising:
            return (
                f"{count} rows trained or calibrated this model. Results on them look better than "
                "they are. Use rows that the model has not seen."
            )
        by_chance = f"about {number(self.expected)} would do so by chance"
        return f"Rows that equal some of the fit: {count}; {by_chance}, because rows repeat."


@dataclass(frozen=True)
class RowFingerprints:
    """Keyed hashes of rows, at most a megabyte of them, in ascending order.

    A hash covers the values that the model uses, and the id as well if rows without it often
    repeat. Of more than 131,072 different rows, those with the smallest hashes are kept: a random
    sample, from which counts are estimated. Two different rows have the same hash of 53 bits with a
    probability of about 1e-16.

    Attributes
    ----------
    hashes : ndarray of uint64
        All hashes below `cutoff`, each once.
    cutoff : int
        2 ** 53 if all hashes were kept.
    key : int
        Key of the hash.
    with_ids : bool
        Whether the hashes cover ids.
    n_rows, n_repeated : int
        Number of rows, and of those that occur more than once.

    Examples
    --------
    >>> import pandas as pd
    >>> from shortlist.tables.schema import TableRows
    >>> rows = TableRows(pd.DataFrame({"amount": [10.0, 20.0, 30.0], "town": ["x", "y", "z"]}))
    >>> seen = RowFingerprints.of(rows, key=0).compare(rows.take([0, 2]))
    >>> seen.n_seen, seen.n_items
    (2, 2)
    """

    hashes: Words
    cutoff: int
    key: int
    with_ids: bool
    n_rows: int
    n_repeated: int

    @classmethod
    def of(cls, rows: TableRows, *, key: int) -> RowFingerprints:
        """Take the fingerprints of rows."""
        hashes, counts = np.unique(_hashes(rows, key, with_ids=False), return_counts=True)
        with_ids = rows.ids is not None and _n_repeated(counts) > _OFTEN * len(rows.X)
        if with_ids:
            hashes, counts = np.unique(_hashes(rows, key, with_ids=True), return_counts=True)
        return _trimmed(hashes, _SPACE, key, with_ids, len(rows.X), _n_repeated(counts))

    def joined(self, hashes: Words) -> RowFingerprints:
        """Add further rows, such as those that a model was recalibrated on."""
        new, counts = np.unique(hashes, return_counts=True)
        every = np.union1d(self.hashes, new[new < self.cutoff])
        n_rows, n_repeated = self.n_rows + hashes.size, self.n_repeated + _n_repeated(counts)
        return _trimmed(every, self.cutoff, self.key, self.with_ids, n_rows, n_repeated)

    @property
    def is_complete(self) -> bool:
        """Whether the fingerprints of all rows were kept."""
        return self.cutoff == _SPACE

    def hashes_of(self, rows: TableRows) -> Words:
        """Return the hashes of other rows."""
        return _hashes(rows, self.key, self.with_ids)

    def count(self, hashes: Words) -> NDArray[np.int64]:
        """Return three counts of some rows, which may be added up, for :meth:`seen_of`."""
        n_asked, n_found = hashes < self.cutoff, np.isin(hashes, self.hashes)
        return np.array([hashes.size, np.count_nonzero(n_asked), np.count_nonzero(n_found)])

    def compare(self, rows: TableRows) -> SeenRows:
        """Count the rows that equal one of the fitted rows."""
        return self.seen_of(self.count(self.hashes_of(rows)))

    def seen_in(self, gathered: Columns) -> SeenRows:
        """Count rows by their hashes, which were gathered from a long table."""
        return self.seen_of(sum(gathered.summaries(lambda block: self.count(block["hashes"]))))

    def seen_of(self, counts: NDArray[np.int64]) -> SeenRows:
        """Return what counts of rows say, and whether chance explains it."""
        n_items, n_asked, n_found = counts.tolist()
        # A new row repeats one of the old ones as often as these repeat each other.
        law = (n_asked + self.n_rows, n_found + self.n_repeated, n_asked)
        chance = float(hypergeom.sf(n_found - 1, *law))
        return SeenRows(
            n_items,
            round(n_found / max(n_asked, 1) * n_items),
            expected=n_items * self.n_repeated / max(self.n_rows, 1),
            is_surprising=n_found > 0 and chance < _UNLIKELY,
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything but the hashes as plain numbers."""
        names = ("cutoff", "key", "with_ids", "n_rows", "n_repeated")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, content: dict[str, Any], hashes: bytes) -> RowFingerprints:
        """Read what :meth:`to_json` and :meth:`to_bytes` wrote."""
        numbers = {name: int(content[name]) for name in ("cutoff", "key", "n_rows", "n_repeated")}
        words = np.frombuffer(hashes, dtype="<u8").astype(np.uint64)
        return cls(words, with_ids=bool(content["with_ids"]), **numbers)

    def to_bytes(self) -> bytes:
        """Return the hashes, eight bytes each."""
        return self.hashes.astype("<u8").tobytes()


def _hashes(rows: TableRows, key: int, with_ids: bool) -> Words:
    columns = [_numbers(rows.X[name], key) for name in rows.X.columns]
    if with_ids:
        columns.append(_numbers(pd.Series(rows.ids, dtype=object), key))
    keys = hash_rows(np.column_stack(columns), seed=key)
    return (keys * _SPACE).astype(np.uint64)  # exact: the keys are multiples of 2 ** -53


def _numbers(column: Any, key: int) -> NDArray[np.float64]:
    """Return a column of numbers as it is; each different text is hashed once."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64)
    codes, texts = pd.factorize(column)
    hashed = np.append(hash_ids(np.asarray(texts, dtype=object), seed=key), np.nan)
    return hashed[codes]  # a missing text has the code -1


def _n_repeated(counts: NDArray[np.intp]) -> int:
    return int(counts[counts > 1].sum())


def _trimmed(hashes: Words, cutoff: int, *others: Any) -> RowFingerprints:
    made = RowFingerprints(hashes, cutoff, *others)
    if hashes.size <= _MOST:
        return made
    return replace(made, hashes=hashes[:_MOST], cutoff=int(hashes[_MOST]))


# --- distributions of columns ---


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
        Number of rows in each bin, followed by the number of missing values. Of many categories, a
        random half of the rows chooses bins, and the other half is counted.
    ends : tuple of float
        The lowest and the highest number of the fit; empty for categories.

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
    def from_values(cls, name: str, kind: str, values: Any) -> ColumnProfile:
        """Choose bins for the values of a column and count them."""
        values = np.asarray(values)
        if kind == "categorical":
            bins = _categories(values)
            if len(bins) == _MOST_CATEGORIES:
                # The most frequent of many look too frequent in the rows that they were chosen by.
                chooses = np.random.default_rng(0).random(values.size) < 0.5
                bins, values = _categories(values[chooses]), values[~chooses]
            return cls(name, kind, bins, _count(values, kind, bins))
        present = values[~np.isnan(values)]
        ends = (float(present.min()), float(present.max())) if present.size else ()
        upper = _upper_ends(present)
        return cls(name, kind, upper, _count(values, kind, upper), ends)

    def count(self, values: Any) -> tuple[int, ...]:
        """Count other values of the same column in the same bins."""
        return _count(np.asarray(values), self.kind, self.bins)


def column_profiles(X: Any, schema: TableSchema) -> tuple[ColumnProfile, ...]:
    """Describe all columns of the rows that a model takes."""
    return tuple(ColumnProfile.from_values(f.name, f.kind, X[f.name]) for f in schema.features)


def _categories(values: NDArray[Any]) -> tuple[str, ...]:
    names, counts = np.unique(values[values != MISSING_CATEGORY].astype(str), return_counts=True)
    return tuple(names[np.argsort(-counts, kind="stable")][:_MOST_CATEGORIES].tolist())


def _upper_ends(present: NDArray[np.float64]) -> tuple[float, ...]:
    if present.size == 0:
        return ()
    shares = np.arange(1, _N_BINS) / _N_BINS
    ends = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    return tuple(ends[ends < present.max()].tolist())


def _count(values: NDArray[Any], kind: str, bins: tuple[Any, ...]) -> tuple[int, ...]:
    missing = is_missing(values, kind)
    present = values[~missing]
    if kind == "categorical":
        place = {name: number for number, name in enumerate(bins)}
        places = np.array([place.get(value, len(bins)) for value in present.tolist()], np.intp)
    else:
        places = np.searchsorted(np.array(bins, dtype=np.float64), present, side="left")
    counts = np.bincount(places, minlength=len(bins) + 1).tolist()
    return (*counts, int(missing.sum()))
