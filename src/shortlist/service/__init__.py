"""The decision service: cases over HTTP, never over capacity, nothing lost.

Needs the extra `service`. Start it with ``shortlist serve``.
"""

from .._core.extras import load_extra

for _package in ("msgspec", "starlette", "uvicorn", "prometheus_client", "psycopg"):
    load_extra(_package, needed_for="The decision service")

from ._app import make_app  # noqa: E402
from ._audit import QueueAudit, audit_store, export_log  # noqa: E402
from ._config import ServiceConfig  # noqa: E402
from ._keys import ROLES, has_keys, list_keys, make_key, revoke_key  # noqa: E402
from ._open import open_store, opened  # noqa: E402
from ._openapi import describe_api  # noqa: E402
from ._service import Service  # noqa: E402
from ._settings import QueueSettings  # noqa: E402
from ._setup import prepare  # noqa: E402
from ._supervisor import run_service  # noqa: E402

__all__ = [
    "ROLES",
    "QueueAudit",
    "QueueSettings",
    "Service",
    "ServiceConfig",
    "audit_store",
    "describe_api",
    "export_log",
    "has_keys",
    "list_keys",
    "make_app",
    "make_key",
    "open_store",
    "opened",
    "prepare",
    "revoke_key",
    "run_service",
]
