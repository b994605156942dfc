"""Tie keys: a number in [0, 1) for each item that depends on the item alone.

Items with the same score need an order that depends neither on the row order nor on the batch size,
and that cannot be predicted from the item. A keyed hash of an identifier, or of the row's own
values, gives one: uniform, independent of the score, and the same whenever the item comes back.
"""

from __future__ import annotations

import hashlib
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import indexable

from .ranking import TieKeys
from .scoring import n_rows, take_rows
from .validation import check_ids

__all__ = ["check_keyed_alike", "hash_ids", "hash_rows", "is_missing", "keys_by_id", "tie_keys_of"]

Words = NDArray[np.uint64]

_MISSING = np.uint64(0x9E6C63D0676A9A99)
_NOT_WHOLE = np.uint64(0xD1B54A32D192ED03)


def hash_ids(ids: ArrayLike, *, seed: int = 0) -> NDArray[np.float64]:
    """Return one key in [0, 1) per identifier; 7, 7.0 and an int32 7 are the same identifier."""
    return _unit_interval(_hash_values(np.asarray(ids), seed))


def keys_by_id(ids: NDArray[Any] | None, *, seed: int) -> TieKeys:
    """Return the tie keys of items at given positions, by their ids or else by the positions."""
    return lambda tied: hash_ids(tied if ids is None else ids[tied], seed=seed)


def tie_keys_of(X: Any, ids: ArrayLike | None, *, seed: int) -> TieKeys:
    """Return the tie keys of items: a hash of their ids, or else of the rows' own values."""
    if ids is not None:
        return keys_by_id(check_ids(ids, n_rows(X)), seed=seed)
    return lambda tied: hash_rows(take_rows(indexable(X)[0], tied), seed=seed)


def check_keyed_alike(by_ids: bool, calibrated_by_ids: bool) -> None:
    """Raise an error if keys come from another source than in calibration."""
    if by_ids != calibrated_by_ids:
        raise ValueError(
            f"Ties were calibrated {'with' if calibrated_by_ids else 'without'} ids, and these "
            f"items come {'with' if by_ids else 'without'} them. Such hashes cannot be compared. "
            "Pass ids= both in calibration (fit or recalibrate) and here, or nowhere."
        )


def hash_rows(X: Any, *, seed: int = 0) -> NDArray[np.float64]:
    """Return one key in [0, 1) per row of a data frame, array, sparse matrix or sequence."""
    return _unit_interval(_mix(_sum_over_columns(X, seed)))


def _sum_over_columns(X: Any, seed: int) -> Words:
    """Add up the bits of a row, each mixed with its column: the position of a value matters."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    with np.errstate(over="ignore"):
        if isinstance(frame, nw.DataFrame):
            words = np.zeros(len(frame), dtype=np.uint64)
            for column in frame.iter_columns():  # known by name, in whatever order they come
                place = _hash_values(np.array([column.name], dtype=object), seed)
                words += _mix(_hash_values(_to_numpy(column), seed) + place)
            return words
        if sparse.issparse(X):
            return _sum_over_entries(sparse.csr_array(X), seed)
        table = np.asarray(X)
        flat = table.reshape(len(table), int(np.prod(table.shape[1:])))
        hashed = _hash_values(flat.ravel(), seed).reshape(flat.shape)
        return _mix(hashed + _places(flat.shape[1], seed)).sum(axis=1, dtype=np.uint64)


def _to_numpy(column: Any) -> NDArray[Any]:
    """Keep whole numbers whole: beside a missing value they would become floats."""
    if column.dtype.is_integer() and column.null_count():
        return np.array(column.to_list(), dtype=object)
    return column.to_numpy()


def _sum_over_entries(X: Any, seed: int) -> Words:
    """Do the same for a sparse table: start from a row of zeros, and correct its stored entries."""
    places = _places(X.shape[1], seed)
    zero = _hash_values(np.zeros(1), seed)
    change = _mix(_hash_values(X.data, seed) + places[X.indices]) - _mix(zero + places[X.indices])
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(change, dtype=np.uint64)])
    row_of_zeros = _mix(zero + places).sum(dtype=np.uint64)
    return row_of_zeros + totals[X.indptr[1:]] - totals[X.indptr[:-1]]


def _places(n_columns: int, seed: int) -> Words:
    """Return the bits of the columns of an array, which are known by their numbers."""
    return _hash_values(np.arange(n_columns), seed)


def _hash_values(values: NDArray[Any], seed: int) -> Words:
    """Return 64 well-mixed bits per value, keyed by `seed`."""
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind in "biu":
            words = values.astype(np.uint64)
        elif values.dtype.kind == "f":
            words = _float_words(values.astype(np.float64))
        elif values.dtype.kind in "mM":
            in_nanoseconds = values.astype(f"{values.dtype.kind}8[ns]")
            words = in_nanoseconds.view(np.int64).astype(np.uint64)
        else:
            items = [_object_word(value, seed) for value in values.tolist()]
            words = np.array(items, dtype=np.uint64)
        return _mix(_mix(words ^ _mix(np.array([seed % 2**64], dtype=np.uint64))))


def _float_words(values: NDArray[np.float64]) -> Words:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    bits = np.ascontiguousarray(values).view(np.uint64) ^ _NOT_WHOLE
    words = np.where(whole, values.astype(np.int64).astype(np.uint64), bits)
    return np.where(np.isnan(values), _MISSING, words)


def _object_word(value: Any, seed: int) -> int:
    if is_missing(value):
        return int(_MISSING)
    if isinstance(value, Integral):
        return int(value) % 2**64
    if isinstance(value, Real):
        return int(_float_words(np.array([float(value)]))[0])
    text = value if isinstance(value, bytes) else str(value).encode()
    key = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=key).digest(), "little")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA; all of them have the same hash."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True
    except ValueError:  # an array inside a cell
        return False


def _mix(words: Words) -> Words:
    """Finalise with the 64-bit mixer of Steele, Lea and Flood (SplitMix, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def _unit_interval(words: Words) -> NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
