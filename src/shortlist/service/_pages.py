"""The dashboard: one page, a stylesheet and a script, under a strict content policy."""

from __future__ import annotations

from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["page_routes"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def page_routes() -> list[Route]:
    """Return the routes of the dashboard; its data come from the API."""
    files = {"/": "index.html", "/dashboard.css": "dashboard.css", "/dashboard.js": "dashboard.js"}
    return [Route(path, _page(name), methods=["GET"]) for path, name in files.items()]


def _page(name: str) -> Any:
    folder = resources.files("shortlist.service").joinpath("dashboard")
    content = folder.joinpath(name).read_text()

    async def page(request: Request) -> Response:
        return Response(
            content,
            media_type=_TYPES[name.rpartition(".")[2]],
            headers={
                "content-security-policy": _POLICY,
                "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer",
                "cache-control": "no-cache",
            },
        )

    return page
