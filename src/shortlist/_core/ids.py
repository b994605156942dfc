"""Ids, and what is made of them: tie keys, lots, groups and draws.

An id is a whole number or a text. 7, an int8 7 and True + 6 are one id, "7" and b"7" another one.
Lists, tuples, arrays, masked arrays, and the series of pandas, polars and Arrow can hold them.

The values of rows are hashed by the same rules. Numbers other than whole ones count as floats,
moments as microseconds, and anything else is what `str` says about it. None, NaN, NaT, pandas.NA
and masked entries are alike.

A *tie key* is a number in [0, 1) for each item. Items with the same score need an order that
depends neither on the row order nor on the batch size, and that cannot be predicted from the item.
A keyed hash of the id, or of the row's own values, gives one: uniform, independent of the score,
and the same whenever the item comes back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils import indexable

from .arrays import Doubles, Mask, Rows, TieKeys
from .scoring import n_rows, take_rows
from .validation import name_rows

#: Of more calibration items than this, some are drawn.
MOST_ITEMS = 1 << 20
_DRAW_SEED = 0x5EED
_NONE = np.empty(0, dtype=np.intp)
_STANDARD_ERRORS = 6  # of the number of drawn items
#: Shares of the rows that repeat, and of equal rows with different labels, that are too many.
_FEW_REPEATS, _MIXED = 0.01, 0.1
_FEWEST_UNITS = 10

Words = NDArray[np.uint64]
#: Names of columns, of which arrays have none; None if they are not known.
Columns = Sequence[Any] | None

#: What an id can be, as a type and as the kind of an array.
_ID_TYPES, _ID_KINDS = (Integral, str, bytes), "biuUST"
_MISSING = np.uint64(0x9E6C63D0676A9A99)
_NOT_WHOLE = np.uint64(0xD1B54A32D192ED03)
_PLACES = np.uint64(0xA0761D6478BD642F)
_LOTS = np.uint64(0xE7037ED1A0B428DB)


# --- what an id is ----------------------------------------------------------------------------


def values_of(container: Any) -> NDArray[Any]:
    """Return the values of any container as an array that changes none of them.

    Whole numbers beside a gap stay whole, and a masked entry is None. A list is left as it is: an
    array would turn [7, "a"] into texts, and pairs into a table.
    """
    if isinstance(container, np.ma.MaskedArray):
        return np.array(container.tolist(), dtype=object)
    if isinstance(container, np.ndarray):
        return container
    if isinstance(container, (list, tuple)):
        return _objects(container)
    series = nw.from_native(container, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _objects(series.to_list()) if _would_change(series) else series.to_numpy()
    dtype = getattr(container, "dtype", None)
    if hasattr(container, "tolist") and not isinstance(dtype, np.dtype):
        return _objects(container.tolist())  # an array of Arrow, an array or index of pandas
    return np.asarray(container)


def _would_change(series: Any) -> bool:
    """Whether NumPy would make floats of whole numbers or truths, or numbers of categories."""
    dtype = series.dtype
    if dtype.is_integer() or dtype == nw.Boolean:
        return bool(series.null_count())
    return dtype == nw.Categorical


def _objects(values: Any) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or masked; all of them are the same id."""
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True
    except ValueError:  # an array inside a cell
        return False


def check_ids(ids: ArrayLike | None, n_items: int) -> NDArray[Any] | None:
    """Return identifiers as an array with one entry per item, or None."""
    if ids is None:
        return None
    array = values_of(ids)
    if array.shape != (n_items,):
        raise ValueError(
            f"ids must hold one identifier for each of the {n_items} items; "
            f"got shape {array.shape}."
        )
    is_plain = array.dtype.kind in _ID_KINDS
    wrong = _NONE if is_plain else np.flatnonzero([not isinstance(id, _ID_TYPES) for id in array])
    if wrong.size:
        raise ValueError(
            f"ids must be whole numbers or texts; got {array[wrong[0]]!r} at {name_rows(wrong)}. "
            "A missing value turns a column of whole numbers into floats, which may be rounded: "
            "fill it, or read ids as texts."
        )
    return array


def check_id(id: Any, name: str = "id") -> str | int:
    """Return one identifier as a plain string or integer, which JSON can store."""
    if type(id) is str or type(id) is int:
        return id
    if isinstance(id, (np.integer, np.str_)):
        return id.item()
    raise TypeError(
        f"{name} must be a string or an integer, because it is stored as JSON; got {id!r} of type "
        f"{type(id).__name__}. Convert it with str(...)."
    )


# --- keys and lots ----------------------------------------------------------------------------


def hash_ids(ids: ArrayLike, *, seed: int = 0) -> Doubles:
    """Return one key in [0, 1) per id, whatever holds it; `ids` says which ids are the same."""
    return _unit_interval(_hash_values(values_of(ids), seed))


def keys_by_id(ids: NDArray[Any] | None, *, seed: int) -> TieKeys:
    """Return the tie keys of items at given positions, by their ids or else by the positions."""
    return lambda tied: hash_ids(tied if ids is None else ids[tied], seed=seed)


def tie_keys_of(X: Any, ids: ArrayLike | None, *, seed: int, columns: Columns = None) -> TieKeys:
    """Return the tie keys of items: a hash of their ids, or else of the rows' own values."""
    if ids is not None:
        return keys_by_id(check_ids(ids, n_rows(X)), seed=seed)
    return lambda tied: hash_rows(take_rows(indexable(X)[0], tied), seed=seed, columns=columns)


def lots_of(keys: Doubles) -> Doubles:
    """Return the lot of each item in [0, 1): a hash of its key, which says nothing about the key.

    Keys put tied items in order. Whether an item is drawn must not depend on its place there.
    """
    return _unit_interval(_mix(_mix((keys * 2.0**53).astype(np.uint64) ^ _LOTS)))


def columns_of(X: Any) -> Columns:
    """Return the names of the columns of a frame; none for rows of any other kind."""
    frame = _frame_of(X)
    return frame.columns if isinstance(frame, nw.DataFrame) else []


def _frame_of(X: Any) -> Any:
    """Return a data frame of any library with unique names of columns; other rows as they are."""
    try:
        return nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(X.columns)
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"X has more than one column named {twice!r}. Rename or remove the copies: it is "
            "unclear which one is meant."
        ) from None


def hash_rows(X: Any, *, seed: int = 0, columns: Columns = None) -> Doubles:
    """Return one key in [0, 1) per row of a data frame, array, sparse matrix or sequence.

    Columns are known by their names in a frame, in whatever order they come, and by their numbers
    elsewhere. `columns` are those of the rows that a model learned from: where these had names, an
    array is hashed as a frame with the names, and where they had none, a frame as an array.
    """
    return _unit_interval(_mix(_sum_over_columns(X, seed, columns)))


def _sum_over_columns(X: Any, seed: int, columns: Columns) -> Words:
    """Add up the bits of a row, each mixed with its column: the position of a value matters."""
    frame = _frame_of(X)
    with np.errstate(over="ignore"):
        if isinstance(frame, nw.DataFrame):
            names = [] if columns is not None and not columns else frame.columns
            places = _places(frame.shape[1], names, seed)
            words = np.zeros(len(frame), dtype=np.uint64)
            for column, place in zip(frame.iter_columns(), places, strict=True):
                words += _mix(_hash_values(values_of(column), seed) + place)
            return words
        if sparse.issparse(X):
            by_rows = sparse.csr_array(X, copy=True)
            by_rows.sum_duplicates()  # what is stored for one place several times is added up
            return _sum_over_entries(by_rows, seed, columns)
        table = values_of(X) if isinstance(X, np.ma.MaskedArray) else _table(X)
        flat = table.reshape(len(table), int(np.prod(table.shape[1:])))
        hashed = _hash_values(flat.ravel(), seed).reshape(flat.shape)
        places = _places(flat.shape[1], columns, seed)
        return _mix(hashed + places).sum(axis=1, dtype=np.uint64)


def _table(X: Any) -> NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError:  # lists of different lengths
        return _objects(X)


def _sum_over_entries(X: Any, seed: int, columns: Columns) -> Words:
    """Do the same for a sparse table: start from a row of zeros, and correct its stored entries."""
    places = _places(X.shape[1], columns, seed)
    zero = _hash_values(np.zeros(1), seed)
    change = _mix(_hash_values(X.data, seed) + places[X.indices]) - _mix(zero + places[X.indices])
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(change, dtype=np.uint64)])
    row_of_zeros = _mix(zero + places).sum(dtype=np.uint64)
    return row_of_zeros + totals[X.indptr[1:]] - totals[X.indptr[:-1]]


def _places(n_columns: int, names: Columns, seed: int) -> Words:
    """Return the bits of columns, by their names if there is one for each, or by their numbers."""
    named = names is not None and len(names) == n_columns
    hashed = _hash_values(_objects(names) if named else np.arange(n_columns), seed)
    return _mix(hashed ^ _PLACES)  # a 1 in column 2 is not a 2 in column 1


def _hash_values(values: NDArray[Any], seed: int) -> Words:
    """Return 64 well-mixed bits per value, keyed by `seed`."""
    with np.errstate(over="ignore", invalid="ignore"):
        kind = values.dtype.kind
        if kind in "bi" or (kind == "u" and values.max(initial=0) < 2**63):
            words = values.astype(np.uint64)
        elif kind == "f":
            words = _float_words(values.astype(np.float64))
        elif kind in "mM":
            counts = values.astype(f"{kind}8[us]").astype(np.int64).astype(np.uint64)
            words = np.where(np.isnat(values), _MISSING, counts)
        else:
            each = [_word(value, seed) for value in values.ravel().tolist()]
            words = np.array(each, dtype=np.uint64).reshape(values.shape)
        return _mix(_mix(words ^ _mix(np.array([seed % 2**64], dtype=np.uint64))))


def _float_words(values: Doubles) -> Words:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    bits = np.ascontiguousarray(values).view(np.uint64) ^ _NOT_WHOLE
    words = np.where(whole, values.astype(np.int64).astype(np.uint64), bits)
    return np.where(np.isnan(values), _MISSING, words)


def _word(value: Any, seed: int) -> int:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return _text_word(value, seed)
    if is_missing(value):
        return int(_MISSING)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value % 2**64
    if isinstance(value, (float, Decimal)):
        return int(_float_words(np.array([float(value)]))[0])
    return _text_word(b"\0" + str(value).encode(), seed)


def _text_word(text: bytes, seed: int) -> int:
    key = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=key).digest(), "little")


def _mix(words: Words) -> Words:
    """Finalise with the 64-bit mixer of Steele, Lea and Flood (SplitMix, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def _unit_interval(words: Words) -> Doubles:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


# --- groups and draws -------------------------------------------------------------------------


def number_groups(groups: ArrayLike | None, n_items: int) -> Rows | None:
    """Number the groups in the order in which they first occur.

    None if there are none, or if every item is a group of its own: that is the same.
    """
    if groups is None:
        return None
    values = values_of(groups)
    if values.shape != (n_items,):
        raise ValueError(
            f"groups must name one group for each of the {n_items} items; got shape {values.shape}."
        )
    words, missing = _hash_values(values, 0), _hash_values(np.array([None]), 0)
    without = np.flatnonzero(words == missing)
    if without.size:
        raise ValueError(
            f"groups must not be missing, as at {name_rows(without)}: items without a group might "
            "belong together. Leave them out, or give each a group of its own."
        )
    _, first, sorted_codes = np.unique(words, return_index=True, return_inverse=True)
    codes = rankdata(first, method="ordinal")[sorted_codes] - 1
    return None if first.size == n_items else codes.astype(np.intp)


class Repeats(NamedTuple):
    """Rows that are equal in all columns and in their label: how many, and whether they are cases.

    `groups` has the number of each different row, unless nothing is gained by grouping: rows that
    are alike `by_chance` are different cases, and very few different rows are no evidence.
    """

    n_repeated: int = 0
    by_chance: bool = False
    groups: Rows | None = None

    @property
    def matter(self) -> bool:
        """Whether enough rows repeat to mislead."""
        return self.groups is not None and self.n_repeated >= _FEW_REPEATS * self.groups.size


def repeats_of(X: Any, labels: NDArray[Any]) -> Repeats:
    """Find rows that repeat others, by their hashes; labels are numbers or truths.

    If equal rows often have different labels, their columns have few values, and different cases
    are alike by chance.
    """
    keys = hash_rows(X)
    _, alike, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    if sizes.size == alike.size:
        return Repeats()
    codes = labels.astype(np.intp)
    counts = np.bincount(codes)
    n_rare = np.bincount(alike, codes != counts.argmax())
    with_rare = (sizes > 1) & (n_rare > 0)
    n_mixed = np.count_nonzero(with_rare & (n_rare < sizes))
    by_chance = bool(n_mixed > _MIXED * np.count_nonzero(with_rare))
    different, groups = np.unique(counts.size * alike + codes, return_inverse=True)
    units = np.bincount(different % counts.size)
    too_few = different.size < _FEWEST_UNITS or np.any(units == 1)
    together = None if by_chance or too_few or different.size == codes.size else groups
    return Repeats(codes.size - different.size, by_chance, together)


def is_drawn(positions: Rows, n_items: int) -> Mask:
    """Tell which positions among `n_items` are drawn: all, or almost surely at most `MOST_ITEMS`.

    A hash of the position draws each item by itself, so blocks of items can be drawn one by one.
    Nothing about an item has a say, so what held for all items holds for those drawn. A hash of
    the item's values would draw equal items together.
    """
    if n_items <= MOST_ITEMS:
        return np.ones(positions.size, dtype=bool)
    most = MOST_ITEMS - _STANDARD_ERRORS * MOST_ITEMS**0.5
    return hash_ids(positions, seed=_DRAW_SEED) < most / n_items
