"""What the program writes about its requests: enough to find one, and nothing about a case."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from shortlist.client import Client
from shortlist.service import logs
from tests.service.helpers import case, serve, serving

BASE = "/v1/queues/default"
SECRET, AMOUNT, COUNTRY = "case-4711", 123.75, "Ruritania"


@pytest.fixture
def lines():
    """Yield the lines of JSON that are logged."""
    found, handler, log = [], logging.Handler(), logging.getLogger("shortlist.service")
    handler.emit = lambda record: found.append(logs.JsonLines().format(record))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield found
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def requests(lines):
    """Return the lines about requests as objects."""
    return [each for each in map(json.loads, lines) if each["message"] == "request"]


def test_each_request_is_one_line_with_its_id(service, lines):
    """The route without its path, the status, the time, the key, and what kind of problem."""
    sent = {"x-request-id": "from-a-gateway:1"}
    decided = service.post(f"{BASE}/decisions", json=case(SECRET), headers=sent)
    other = service.post(f"{BASE}/decisions", json=case(SECRET, 7.0))
    nothing = service.get(f"/nothing/{SECRET}")
    about = requests(lines)
    answers = (decided, other, nothing)
    assert [each["request"] for each in about] == [r.headers["x-request-id"] for r in answers]
    assert about[0]["request"] == "from-a-gateway:1"
    assert about[0].items() >= {
        "level": "info", "route": "POST /v1/queues/{queue}/decisions", "queue": "default",
        "status": 200, "key": "", "process": os.getpid(),
    }.items()  # fmt: skip
    assert about[0]["ms"] >= 0
    assert about[0]["time"].endswith("+00:00")
    assert (about[1]["status"], about[1]["problem"]) == (422, "conflict")
    assert "route" not in about[2]


@pytest.mark.parametrize("given", ["", "two words", "x" * 65, "naïve", '{"id":1}'])
def test_an_odd_request_id_is_replaced(untouched, lines, given):
    """It would be written as it was sent."""
    answer = untouched.get("/v1/queues", headers={"x-request-id": given.encode()})
    [about] = requests(lines)
    assert about["request"] == answer.headers["x-request-id"] != given


def test_health_is_logged_only_if_it_is_bad(service, lines, monkeypatch):
    """Somebody asks for it every second."""
    service.get("/v2/health/ready")
    service.get("/v2/health/live")
    monkeypatch.setattr(type(service.service), "ready", False)
    service.get("/v2/health/ready")
    assert [each["status"] for each in requests(lines)] == [503]


def test_no_line_tells_about_a_case(tmp_path, model_file, lines, monkeypatch):
    """Whatever is asked, and whatever goes wrong: no id, no column, no note, no name."""
    with serving(tmp_path / "shortlist.db", model_file, patience=2.0) as service:
        fields = {"id": SECRET, "amount": AMOUNT, "country": COUNTRY}
        service.post(f"{BASE}/decisions", json=fields)
        service.post(f"{BASE}/decisions", json=[fields, {**fields, "amount": "x" + SECRET}])
        service.post(
            f"{BASE}/decisions", content=SECRET, headers={"content-type": "application/json"}
        )
        service.get(f"{BASE}/decisions/{SECRET}", params={"id": SECRET})
        service.get(f"/v1/queues/{SECRET}/status")
        service.post(f"{BASE}/outcomes", json={"id": SECRET, "rare": True, "reviewer": "Rudolf"})
        service.put("/v1/reviewers/Rudolf", json={"minutes": 9})
        service.post(f"{BASE}/claims", json={"id": "other " + SECRET, "reviewer": "Rudolf"})

        def fail(*args):
            raise KeyError(SECRET)

        monkeypatch.setattr("shortlist.service._reviews._entry", fail)
        failed = service.get(f"{BASE}/decisions/{SECRET}")
        assert failed.status_code == 500
        decider = service.service.deciders["default"]
        monkeypatch.setattr(decider, "_write", fail)
        service.post(f"{BASE}/decisions", json={**fields, "id": "new " + SECRET})
    written = "\n".join(lines)
    for secret in (SECRET, str(AMOUNT), COUNTRY, "Rudolf"):
        assert secret not in written
    [error] = [each for each in map(json.loads, lines) if "A request failed" in each["message"]]
    assert "KeyError at " in error["message"]
    assert error["request"] == failed.headers["x-request-id"]


def test_who_comes_through_a_proxy_is_not_named(tmp_path, model_file, lines):
    """The log says that the proxy asked."""
    with serving(tmp_path / "shortlist.db", model_file, proxy_secret=b"s3") as client:
        client.get("/v1/me", headers={"x-proxy-secret": "s3", "x-forwarded-user": "kim"})
    assert [each["key"] for each in requests(lines)] == ["proxy"]
    assert "kim" not in "".join(lines)


def test_a_traceback_says_where_and_not_what():
    """As of uvicorn, or of a library: its text may have columns."""
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "It failed", (), None)
    try:
        raise ValueError(SECRET)
    except ValueError:
        record.exc_info = sys.exc_info()
    line = logs.JsonLines().format(record)
    assert SECRET not in line
    assert json.loads(line)["error"].startswith("ValueError at ")
    assert "test_logs.py:" in json.loads(line)["error"]


def test_the_command_writes_lines_of_json_alone(tmp_path, model_file, monkeypatch):
    """From its start to its end; a request has the id that its sender gave it."""
    monkeypatch.setenv("SHORTLIST_LOG", "json")
    process, port = serve(tmp_path, model_file, "--count", "5")
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            client.decide({"id": SECRET, "amount": AMOUNT, "country": "DE"})
    finally:
        process.send_signal(signal.SIGTERM)
        _, written = process.communicate(timeout=180)
    found = [json.loads(line) for line in written.splitlines()]
    assert "Serving on" in found[0]["message"]
    assert [each["route"] for each in found if each.get("status") == 200][-1] == (
        "POST /v1/queues/{queue}/decisions"
    )
    assert SECRET not in written


def test_another_format_is_refused(tmp_path, model_file):
    """In one line, before anything is made."""
    done = subprocess.run(
        [sys.executable, "-m", "shortlist", "serve", model_file, "--count", "5", "--database",
         tmp_path / "shortlist.db"],
        capture_output=True, text=True, env={**os.environ, "SHORTLIST_LOG": "xml"}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "SHORTLIST_LOG must be text or json; got 'xml'." in done.stderr
    assert not list(tmp_path.iterdir())


# --- traces ---------------------------------------------------------------------------------------


class Span:
    """A span of a stand-in for OpenTelemetry, which need not be installed."""

    def __init__(self, before):
        self.before, self.attributes, self.status, self.is_ended = before, {}, None, False

    update_name = lambda self, name: setattr(self, "name", name)  # noqa: E731
    set_status = lambda self, status: setattr(self, "status", status)  # noqa: E731
    set_attributes = lambda self, new: self.attributes.update(new)  # noqa: E731
    get_span_context = lambda self: SimpleNamespace(trace_id=10)  # noqa: E731


class Nobody:
    """Stands for what OpenTelemetry has before somebody collects spans."""


def test_a_request_is_a_span_that_has_the_name_of_its_route(service, lines, monkeypatch):
    """It belongs to the trace of whoever asks; log and trace name one another."""
    spans, collects = [], object()

    @contextlib.contextmanager
    def start(name, context, kind):
        spans.append(Span(context))
        yield spans[-1]
        spans[-1].is_ended = True

    trace = SimpleNamespace(
        get_tracer=lambda name: SimpleNamespace(start_as_current_span=start),
        format_trace_id=lambda id: f"{id:032x}", SpanKind=SimpleNamespace(SERVER="server"),
        StatusCode=SimpleNamespace(ERROR="error"), ProxyTracerProvider=Nobody,
        get_tracer_provider=lambda: collects,
    )  # fmt: skip
    propagate = SimpleNamespace(extract=lambda carrier: carrier["traceparent"])
    monkeypatch.setattr(logs, "trace", trace)
    monkeypatch.setattr(logs, "propagate", propagate, raising=False)
    headers = {"traceparent": "00-whose-trace-01"}
    service.post(f"{BASE}/decisions", json=case(SECRET), headers=headers)
    monkeypatch.setattr("shortlist.service._reviews._entry", lambda *args: 1 / 0)
    service.get(f"{BASE}/decisions/{SECRET}", headers=headers)
    service.get(f"/nothing/{SECRET}", headers=headers)
    assert [span.name for span in spans] == [
        "POST /v1/queues/{queue}/decisions", "GET /v1/queues/{queue}/decisions/{case}", "request",
    ]  # fmt: skip
    assert all(span.before == "00-whose-trace-01" and span.is_ended for span in spans)
    codes = [span.attributes["http.response.status_code"] for span in spans]
    assert codes == [200, 500, 404]
    assert [span.status for span in spans] == [None, "error", None]
    assert spans[0].attributes["http.route"] == "/v1/queues/{queue}/decisions"
    ids = [span.attributes["shortlist.request"] for span in spans]
    assert ids == [each["request"] for each in requests(lines)]
    assert {each["trace"] for each in requests(lines)} == {f"{10:032x}"}
    assert SECRET not in str([span.__dict__ for span in spans])
    collects = Nobody()
    service.post(f"{BASE}/decisions", json=case("b"), headers=headers)
    assert len(spans) == 3


def test_spans_reach_opentelemetry(service):
    """The real one, where it is installed."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    service.post(f"{BASE}/decisions", json=case("a"), headers={"traceparent": parent})
    [span] = exporter.get_finished_spans()
    assert span.name == "POST /v1/queues/{queue}/decisions"
    assert f"{span.context.trace_id:032x}" == parent.split("-")[1]
    assert span.attributes["http.response.status_code"] == 200
