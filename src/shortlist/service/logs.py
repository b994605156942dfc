"""What the program says about its requests: lines of JSON, and traces where OpenTelemetry is there.

Neither has a column or the id of a case, or the name of a person. So there are no paths, which may
end in an id, and no texts of problems; of an error there is its type and its place.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

try:
    from opentelemetry import propagate, trace
except ImportError:  # nobody traces then
    trace = None

_log = logging.getLogger("shortlist.service")
_IS_ID = re.compile(rb"[\w.:-]{1,64}").fullmatch
_HEALTH = ("GET /v2/health/live", "GET /v2/health/ready")


def set_up_log(form: str) -> Callable[[str], Any]:
    """Write texts, or every message and request as a line of JSON; return what writes a notice."""
    if form not in ("text", "json"):
        raise ValueError(f"SHORTLIST_LOG must be text or json; got {form!r}.")
    handler, as_json = logging.StreamHandler(), form == "json"
    texts = logging.Formatter("%(levelname)s: %(message)s")
    handler.setFormatter(JsonLines() if as_json else texts)
    logging.basicConfig(handlers=[handler])
    logging.captureWarnings(as_json)
    _log.setLevel(logging.INFO if as_json else logging.WARNING)
    return _log.info if as_json else lambda text: sys.stderr.write(f"{text}\n")


class JsonLines(logging.Formatter):
    """Writes each message as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a message, with what is known about its request, as a line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "process": record.process,
            **getattr(record, "about", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["error"] = place_of(record.exc_info[1])
        return msgspec.json.encode(line).decode()


def place_of(error: BaseException) -> str:
    """Return the type and the place of an error; its text may be about a person."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{place.filename}:{place.lineno}" for place in places)
    return f"{type(error).__name__} at {where}"


@contextlib.contextmanager
def telling(headers: dict[bytes, bytes]) -> Iterator[dict[str, Any]]:
    """Yield what is known about a request, to be completed; then log it, and end its span."""
    given, started = headers.get(b"x-request-id", b""), time.monotonic()
    about: dict[str, Any] = {"request": given.decode() if _IS_ID(given) else secrets.token_hex(8)}
    with _span(headers) as span:
        yield about
        about["ms"] = round(1e3 * (time.monotonic() - started), 3)
        if span is not None:
            _complete(span, about)
    if about.get("route") not in _HEALTH or about["status"] != 200:
        _log.info("request", extra={"about": about})


def _span(headers: dict[bytes, bytes]) -> contextlib.AbstractContextManager[Any]:
    """Return a span, as part of the trace that the headers name, if somebody collects spans."""
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return contextlib.nullcontext()
    texts = {name.decode("latin-1"): each.decode("latin-1") for name, each in headers.items()}
    tracer, before = trace.get_tracer("shortlist"), propagate.extract(texts)
    return tracer.start_as_current_span("request", before, kind=trace.SpanKind.SERVER)


def _complete(span: Any, about: dict[str, Any]) -> None:
    """Name a span by the route, and let log and trace name one another."""
    route, status = about.get("route", "request"), about["status"]
    method, _, path = route.partition(" ")
    span.update_name(route)
    span.set_attributes({"http.request.method": method, "http.route": path})
    span.set_attributes(
        {"http.response.status_code": status, "shortlist.request": about["request"]}
    )
    about["trace"] = trace.format_trace_id(span.get_span_context().trace_id)
    if status >= 500:
        span.set_status(trace.StatusCode.ERROR)
