"""The decision service: cases over HTTP, never over capacity, nothing lost.

Needs the extra `service`. Start it with ``shortlist serve``.
"""

from .._core.extras import load_extra

for _package in ("msgspec", "starlette", "uvicorn", "prometheus_client", "jinja2"):
    load_extra(_package, needed_for="The decision service")

from ._follower import QueueSettings  # noqa: E402

__all__ = ["QueueSettings"]
