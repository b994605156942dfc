"""Random requests to every operation: no answer contradicts the description of the API."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

from shortlist.service import _models  # noqa: E402
from tests.service.helpers import serving  # noqa: E402
from tools.openapi import FILE, written_api  # noqa: E402

SCHEMA = schemathesis.openapi.from_dict(json.loads(FILE.read_bytes()))
OPERATIONS = {result.ok().label: result.ok() for result in SCHEMA.get_all_operations()}


def test_the_description_is_that_of_the_routes():
    """Written anew with: python tools/openapi.py."""
    assert FILE.read_bytes() == written_api()


@pytest.fixture(scope="module")
def running(tmp_path_factory, model_file):
    """Yield a client of one service for all operations."""
    database = tmp_path_factory.mktemp("schema") / "shortlist.db"
    # A process of its own for each made-up model would say the same of it as this one.
    with pytest.MonkeyPatch.context() as patch, serving(database, model_file) as client:
        patch.setattr(_models, "check_apart", lambda content: None)
        client.post(
            "/v1/queues/default/decisions", json={"id": "a", "amount": 900, "country": "US"}
        )
        yield client


@pytest.mark.parametrize("label", OPERATIONS)
def test_answers_are_as_described(running, label):
    """Whatever is sent, the answer has a described status, type and form."""

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[label].as_strategy(), real=st.integers(0, 3))
    def ask(case, real):
        if real and "queue" in (case.path_parameters or {}):
            case.path_parameters["queue"] = "default"
        response = case.call(base_url=str(running.base_url), timeout=180)
        # What a model needs is not in the description: valid requests may be refused.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])
        assert response.status_code < 500 or response.status_code == 503

    ask()
