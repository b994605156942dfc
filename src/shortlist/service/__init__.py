"""The decision service: cases over HTTP, never over capacity, nothing lost.

Start it with ``shortlist serve``. It needs the extra `service`; `shortlist stream`, which keeps its
decisions in the same kind of database, needs the extra `cli` only.
"""

from importlib import import_module
from typing import Any

__all__ = ["ServiceConfig", "audit_store", "make_app", "run_service"]

_HOMES = {
    "ServiceConfig": "settings",
    "audit_store": "audit",
    "make_app": "app",
    "run_service": "supervisor",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a stream needs no web server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.settings").check_extra()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
