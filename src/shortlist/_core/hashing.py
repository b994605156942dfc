"""Tie keys: a number in [0, 1) for each item that depends on the item alone.

Items with the same score need an order that depends neither on the row order nor on the batch size,
and that cannot be predicted from the item. A keyed hash of an identifier, or of the row's own
values, gives one: uniform, independent of the score, and the same whenever the item comes back.
"""

from __future__ import annotations

import hashlib
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import indexable

from .arrays import TieKeys
from .ids import nanoseconds_per, plain_id, to_days, values_of
from .scoring import n_rows, take_rows
from .validation import check_ids

__all__ = ["check_keyed_alike", "hash_ids", "hash_rows", "keys_by_id", "lots_of", "tie_keys_of"]

Words = NDArray[np.uint64]

_MISSING = np.uint64(0x9E6C63D0676A9A99)
_NOT_WHOLE = np.uint64(0xD1B54A32D192ED03)
_BEYOND_INT64 = np.uint64(0xA0761D6478BD642F)
_LOTS = np.uint64(0xE7037ED1A0B428DB)


def hash_ids(ids: ArrayLike, *, seed: int = 0) -> NDArray[np.float64]:
    """Return one key in [0, 1) per id, whatever holds it; `ids` says which ids are the same."""
    return _unit_interval(_hash_values(values_of(ids), seed))


def keys_by_id(ids: NDArray[Any] | None, *, seed: int) -> TieKeys:
    """Return the tie keys of items at given positions, by their ids or else by the positions."""
    return lambda tied: hash_ids(tied if ids is None else ids[tied], seed=seed)


def tie_keys_of(X: Any, ids: ArrayLike | None, *, seed: int) -> TieKeys:
    """Return the tie keys of items: a hash of their ids, or else of the rows' own values."""
    if ids is not None:
        return keys_by_id(check_ids(ids, n_rows(X)), seed=seed)
    return lambda tied: hash_rows(take_rows(indexable(X)[0], tied), seed=seed)


def lots_of(keys: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lot of each item in [0, 1): a hash of its key, which says nothing about the key.

    Keys put tied items in order. Whether an item is drawn must not depend on its place there.
    """
    return _unit_interval(_mix(_mix((keys * 2.0**53).astype(np.uint64) ^ _LOTS)))


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
                words += _mix(_hash_values(values_of(column), seed) + place)
            return words
        if sparse.issparse(X):
            return _sum_over_entries(sparse.csr_array(X), seed)
        table = values_of(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        flat = table.reshape(len(table), int(np.prod(table.shape[1:])))
        hashed = _hash_values(flat.ravel(), seed).reshape(flat.shape)
        return _mix(hashed + _places(flat.shape[1], seed)).sum(axis=1, dtype=np.uint64)


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
        kind = values.dtype.kind
        if kind in "biu":
            words = values.astype(np.uint64)
            if kind == "u":
                words = np.where(words < 2**63, words, words ^ _BEYOND_INT64)
        elif kind == "f":
            words = _float_words(values.astype(np.float64))
        elif kind in "mM":
            words = _moment_words(values, seed)
        else:
            words = _each_word(values, seed)
        return _mix(_mix(words ^ _mix(np.array([seed % 2**64], dtype=np.uint64))))


def _float_words(values: NDArray[np.float64]) -> Words:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    bits = np.ascontiguousarray(values).view(np.uint64) ^ _NOT_WHOLE
    words = np.where(whole, values.astype(np.int64).astype(np.uint64), bits)
    return np.where(np.isnan(values), _MISSING, words)


def _moment_words(values: NDArray[Any], seed: int) -> Words:
    values = to_days(values)
    counts, factor = values.astype(np.int64), nanoseconds_per(values.dtype)
    missing = np.isnat(values)
    if np.abs(np.where(missing, 0, counts)).max(initial=0) > (2**63 - 1) // factor:
        return _each_word(values, seed)  # 64 bits hold the nanoseconds of 292 years
    return np.where(missing, _MISSING, (counts * factor).astype(np.uint64))


def _each_word(values: NDArray[Any], seed: int) -> Words:
    is_moment = values.dtype.kind in "mM"  # `tolist` would turn nanoseconds into whole numbers
    items = list(values.ravel()) if is_moment else values.ravel().tolist()
    words = np.array([_word(plain_id(value), seed) for value in items], dtype=np.uint64)
    return words.reshape(values.shape)


def _word(value: int | float | bytes | None, seed: int) -> int:
    if value is None:
        return int(_MISSING)
    if isinstance(value, bytes):
        return _text_word(value, seed)
    if isinstance(value, float):
        return int(_float_words(np.array([value]))[0])
    if -(2**63) <= value < 2**63:
        return value % 2**64
    return value ^ int(_BEYOND_INT64) if 0 < value < 2**64 else _text_word(b"\0%d" % value, seed)


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


def _unit_interval(words: Words) -> NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
