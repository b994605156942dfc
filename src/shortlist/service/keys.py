"""API keys: who may do what, on which queues.

A key is shown once, when it is made. The database keeps a hash of its secret part, which has 256
random bits; a slow hash would add nothing. Keys are read again every few seconds, so that a new key
starts and a revoked one stops working soon. Once there has been a key, every request needs one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from typing import Any, NamedTuple

from ._api import Problem, check_name
from .store import COMMAND, Store

_ALWAYS = frozenset({"queues", "status", "case", "me"})
_READ = _ALWAYS | {"cases", "backlog", "reviewers", "log", "metrics", "shadow"}
# What a key for some queues may not do.
_EVERYWHERE = frozenset(
    {"total", "make_queue", "set_reviewer", "drop_reviewer", "undelivered", "send_again"}
)
#: What each role may do: names of routes.
ROLES = {
    "decide": _ALWAYS | {"decide", "observe"},
    "review": _ALWAYS | {"cases", "claim", "next", "release", "outcome"},
    "manage": _READ
    | _EVERYWHERE
    | {"allow", "capacity", "model", "set_shadow", "end_shadow", "promote", "back"}
    | {"assign", "release"},
    "read": _READ | {"undelivered"},
}


class ApiKey(NamedTuple):
    """A key: its public name, its role, the queues it is for (None means all), and its person."""

    id: str
    role: str
    queues: list[str] | None
    hash: str = ""
    ends: float = 0.0
    person: str | None = None

    def may(self, action: str, queue: str | None) -> bool:
        """Whether the key allows an action, on a queue or at all."""
        if action not in ROLES[self.role]:
            return False
        if self.queues is None:
            return True
        return action not in _EVERYWHERE if queue is None else queue in self.queues


#: Who asks a service that needs no keys.
NO_KEY = ApiKey("", "", None)


def make_key(
    store: Store,
    role: str,
    *,
    queues: list[str] | None = None,
    days: float | None = None,
    person: str | None = None,
) -> str:
    """Make a key, perhaps for some days or of a person, and return it; it cannot be shown again."""
    try:
        person = None if person is None else check_name(person)
    except Problem as error:
        raise ValueError(error.detail) from None
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}; got {role!r}.")
    known = {row.name for row in store.queues()}
    unknown = [name for name in queues or [] if name not in known]
    if unknown:
        raise ValueError(f"There is no queue {unknown[0]!r}; there are {', '.join(sorted(known))}.")
    id, secret, now = secrets.token_hex(4), secrets.token_hex(32), time.time()
    with store.write():
        row = {"id": id, "hash": _hash(secret), "role": role, "made": now}
        row["person"] = person
        row["queues"] = None if not queues else json.dumps(queues)
        row["ends"] = None if days is None else now + 86_400 * days
        store.put("api_key", row)
        said = {"key": id, "role": role}
        store.note(now, COMMAND, "key made", None, said, vouch=[("api_key", id)])
    return f"sl_{id}_{secret}"


def revoke_key(store: Store, id: str) -> None:
    """Let a key stop working."""
    with store.write():
        if not store.query("SELECT id FROM api_key WHERE id = ? AND revoked IS NULL", id):
            raise ValueError(f"There is no key {id!r}, or it was revoked before.")
        store.query("UPDATE api_key SET revoked = ? WHERE id = ?", time.time(), id)
        said = {"key": id}
        store.note(time.time(), COMMAND, "key revoked", None, said, vouch=[("api_key", id)])


def list_keys(store: Store) -> list[dict[str, Any]]:
    """Return all keys, without anything secret."""
    names = ("id", "role", "queues", "person", "made", "ends", "state")
    state = "CASE WHEN revoked > 0 THEN 'revoked' WHEN ends <= ? THEN 'ended' ELSE 'valid' END"
    columns = ", ".join((*names[:-1], state))
    rows = store.query(f"SELECT {columns} FROM api_key ORDER BY made", time.time())
    return [dict(zip(names, row, strict=True)) for row in rows]


class KeyRing:
    """The keys that are valid now.

    Parameters
    ----------
    store : Store
        Connected.
    required : bool
        Whether requests need a key although there has never been one.
    """

    def __init__(self, store: Store, *, required: bool) -> None:
        self._store, self._required = store, required
        self._keys: dict[str, ApiKey] | None = None

    @property
    def required(self) -> bool:
        """Whether requests need a key; a problem as long as nobody knows which keys there are."""
        if self._keys is None:
            raise Problem(503, "unavailable", "The service is not ready.")
        return self._required

    def refresh(self) -> None:
        """Read the keys; one that was revoked still shows that requests need a key."""
        rows = self._store.query(
            "SELECT id, role, queues, hash, coalesce(ends, 1e300), person, revoked FROM api_key"
        )
        self._required = self._required or bool(rows)
        self._keys = {
            id: ApiKey(id, role, json.loads(queues) if queues else None, *rest)
            for id, role, queues, *rest, revoked in rows
            if revoked is None
        }

    def find(self, given: str) -> ApiKey | None:
        """Return the key of a request, if it is valid."""
        _, _, rest = given.strip().partition("sl_")
        id, _, secret = rest.partition("_")
        key = (self._keys or {}).get(id)
        if key is None or not hmac.compare_digest(key.hash, _hash(secret)):
            return None
        return key if time.time() < key.ends else None


def vouched_person(headers: dict[bytes, bytes], secret: bytes) -> ApiKey | None:
    """Return what a person may do for whom a proxy vouches with its secret."""
    if not hmac.compare_digest(headers.get(b"x-proxy-secret", b""), secret):
        return None
    name = headers.get(b"x-forwarded-user", b"").decode("utf-8", "backslashreplace")
    role = headers.get(b"x-forwarded-role", b"review").decode("latin-1")
    if role not in ROLES:
        return None
    check_name(name)
    return ApiKey(f"proxy {name}", role, None, person=name)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
