"""Hashes that bind every row to all rows before it, so that an outsider sees any later change.

What is about a person enters the chain through a *seal* only: the hash of a random salt and of what
is private. Whoever erases a person keeps the seal and forgets the rest, salt included. Then nobody
can guess what it was, and the chain can still be checked.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

# What is about a person, in the tables whose rows have a seal.
_PRIVATE = ("case_id", "entity", "digest", "body", "note", "idempotency")
_UNHASHED = {"seal", "hash"}
_HIDDEN = _UNHASHED.union(_PRIVATE)
_SALT, _SEAL = 16, 32  # bytes
_encode = msgspec.msgpack.Encoder().encode


def new_salt() -> bytes:
    """Return what makes a seal unpredictable."""
    return secrets.token_bytes(_SALT)


def is_erased(seal: bytes | None) -> bool:
    """Whether only the seal of a row is left."""
    return seal is not None and len(seal) == _SEAL


def seal_of(row: dict[str, Any]) -> bytes:
    """Return what stands for the private part of a row; its column `seal` holds the salt first."""
    if is_erased(row["seal"]):
        return bytes(row["seal"])
    return _hash([row["seal"], *(row[name] for name in _PRIVATE if name in row)])


def link(before: bytes, row: dict[str, Any]) -> bytes:
    """Return the hash of a row and of the hash before it."""
    is_sealed = row.get("seal") is not None
    left_out = _HIDDEN if is_sealed else _UNHASHED
    kept = [value for name, value in row.items() if name not in left_out]
    return _hash([before, *kept, seal_of(row) if is_sealed else None])


def hash_row(row: dict[str, Any]) -> bytes:
    """Return the hash of a row that is in no chain; of an erased one, nothing is private."""
    return _hash(list(row.values())) if is_erased(row.get("seal")) else link(b"", row)


def _hash(values: list[Any]) -> bytes:
    """Hash values as every database returns them: 1.0 may come back as 1, and True as 1."""
    plain = [
        int(each) if type(each) in (float, bool) and _is_whole(each) else each for each in values
    ]
    return hashlib.sha256(_encode(plain)).digest()


def _is_whole(number: float) -> bool:
    return float(number).is_integer() and abs(number) < 1 << 53


class CheckedChain:
    """Rows that follow from one another, and lead through the heads that were kept."""

    def __init__(
        self, what: str, head: bytes, ends: Iterable[Any], expect: Callable[[bool, str], None]
    ) -> None:
        self._what, self.head, self.last, self._expect = what, head, 0, expect
        self._kept = list(ends)

    def see(self, place: int, row: dict[str, Any]) -> None:
        """Check the next row."""
        where, head, hash = f"{self._what} {place}", link(self.head, row), bytes(row["hash"])
        follows = place == self.last + 1 and head == hash
        self._expect(follows, f"{where} does not follow from what comes before it")
        is_kept = all(place != each or hash.hex() == kept for each, kept in self._kept)
        self._expect(is_kept, f"{where} is not the one of a head that was kept")
        self.last, self.head = place, hash

    def end(self) -> None:
        """Check that nothing is missing at the end."""
        most = max((place for place, _ in self._kept), default=0)
        last = f"the last one is {self.last}"
        self._expect(most <= self.last, f"a head that was kept has {self._what} {most}, but {last}")
