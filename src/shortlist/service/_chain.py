"""Hashes that bind every row to all rows before it, so that an outsider sees any later change.

What is about a person enters the chain through a *seal* only: the hash of a random salt and of what
is private. Whoever erases a person keeps the seal and forgets the rest, salt included. Then nobody
can guess what it was, and the chain can still be checked.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

# What is about a person, in the tables whose rows have a seal.
_PRIVATE = ("case_id", "digest", "body", "note", "idempotency")
_SALT, _SEAL = 16, 32  # bytes


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
    kept = {name: value for name, value in row.items() if name not in ("seal", "hash")}
    if row.get("seal") is not None:
        kept = {name: value for name, value in kept.items() if name not in _PRIVATE}
        kept["seal"] = seal_of(row)
    return _hash([before, *kept.values()])


def hash_row(row: dict[str, Any]) -> bytes:
    """Return the hash of a row that is in no chain; of an erased one, nothing is private."""
    return _hash(list(row.values())) if is_erased(row.get("seal")) else link(b"", row)


def _hash(values: list[Any]) -> bytes:
    return hashlib.sha256(json.dumps([_text(value) for value in values]).encode()).digest()


def _text(value: Any) -> str | None:
    """Return a value as every database returns it: 1.0 may come back as 1, and True as 1."""
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, float):
        return format(value + 0.0, ".17g")
    return None if value is None else str(int(value) if isinstance(value, bool) else value)
