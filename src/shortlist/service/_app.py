"""The application: decisions on the fast path, everything else through Starlette."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ._deciding import decide
from ._openapi import openapi_route
from ._pages import page_routes
from ._problems import Problem, problem_response
from ._routes import make_routes
from ._service import Service

__all__ = ["make_app"]

_log = logging.getLogger("shortlist.service")
_KINDS = {404: "not-found", 405: "wrong-method", 400: "invalid-json"}


def make_app(service: Service) -> Any:
    """Return the ASGI application of a service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    routes = [*make_routes(service), openapi_route(), *page_routes()]
    starlette = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={Problem: _told, HTTPException: _refused, Exception: _failed},
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        queue = _queue_of_decisions(scope)
        if queue is None:
            # Starlette raises an error again after it was answered and noted.
            with contextlib.suppress(Exception):
                await starlette(scope, receive, send)
            return
        started, status = time.monotonic(), 500
        try:
            status = await decide(service, queue, scope, receive, send)
        except Problem as problem:
            status = problem.status
            await problem_response(problem)(scope, receive, send)
        except Exception as error:
            await (await _failed(Request(scope), error))(scope, receive, send)
        finally:
            service.metrics.decided(status, time.monotonic() - started)

    return app


def _queue_of_decisions(scope: Any) -> str | None:
    """Return the queue of `POST /v1/queues/{queue}/decisions`, or None for anything else."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    return _queue_in(scope["path"])


@lru_cache(maxsize=256)
def _queue_in(path: str) -> str | None:
    if not (path.startswith("/v1/queues/") and path.endswith("/decisions")):
        return None
    name = path[len("/v1/queues/") : -len("/decisions")]
    return unquote(name) if "/" not in name and name else None


async def _told(request: Request, problem: Any) -> Response:
    return problem_response(problem)


async def _refused(request: Request, error: Any) -> Response:
    kind = _KINDS.get(error.status_code, "error")
    response = problem_response(Problem(error.status_code, kind, str(error.detail)))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _failed(request: Request, error: Exception) -> Response:
    """Answer a bug of ours; what arrived is not logged, because it may be personal."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{place.filename}:{place.lineno}" for place in places)
    _log.error("A request failed: %s at %s", type(error).__name__, where)
    return problem_response(Problem(500, "error", "The service has failed. Its log says why."))
