"""Fingerprints of the rows that a model was fitted on: has it seen these rows before?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from .._core.extras import load_extra
from .._core.ids import hash_ids, hash_rows
from .schema import TableRows

pd = load_extra("pandas", needed_for="Reading tables")

#: The most hashes that are kept: one megabyte. Of longer tables, a random sample of rows is kept.
_MOST = 1 << 17
_SPACE = 1 << 53
# Ids are hashed as well if more rows than this share repeat without them.
_OFTEN = 0.01
# More rows than chance explains: the exact p-value is below this level.
_UNLIKELY = 0.001

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
        count = f"{self.n_seen:,} of {self.n_items:,} rows"
        if self.is_surprising:
            return (
                f"{count} trained or calibrated this model. Results on them look better than "
                "they are. Use rows that the model has not seen."
            )
        return (
            f"{count} equal rows that trained or calibrated this model. As rows repeat, about "
            f"{self.expected:.3g} would do so by chance."
        )


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
