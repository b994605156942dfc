"""A PostgreSQL server and empty databases for the tests of the service."""

import functools
import itertools
import os

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("uvicorn")

from shortlist.service import _models
from tests.service.helpers import running_postgres

_numbers = itertools.count()


def pytest_collection_modifyitems(items):
    """Let one worker run all tests that need PostgreSQL: it starts a server of its own."""
    for item in items:
        given = getattr(item, "callspec", None)
        on_postgres = given is not None and given.params.get("address") == "postgresql"
        if on_postgres or "postgres" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("postgres"))


@pytest.fixture(scope="session")
def postgres():
    """Yield a PostgreSQL server of our own, on the loopback address."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Return where an empty database is: a file, or the address of a server."""
    if request.param == "sqlite":
        return str(tmp_path / "shortlist.db")
    server = request.getfixturevalue("postgres")
    return server.new_database(f"test{os.getpid()}n{next(_numbers)}")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """Return a small model file, fitted once."""
    from tests.service.helpers import fit_small_model

    return fit_small_model(tmp_path_factory.mktemp("model"))


def _remembered(function):
    """Return a function that knows what it answered to the same content, errors as well."""

    @functools.lru_cache(maxsize=32)
    def answer(content):
        try:
            return function(content), None
        except ValueError as error:
            return None, error

    def told(content):
        found, error = answer(content)
        if error is not None:
            raise error
        return found

    return told


@pytest.fixture(scope="session", autouse=True)
def models_are_read_once():
    """Read each model file once: every service of a test would read the same one again."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_model", "check_apart"):
            patch.setattr(_models, name, _remembered(getattr(_models, name)))
        yield


@pytest.fixture(scope="session")
def untouched(tmp_path_factory, model_file):
    """Yield a service, shared by all tests that let it decide nothing."""
    from tests.service.helpers import serving

    with serving(tmp_path_factory.mktemp("untouched") / "shortlist.db", model_file) as client:
        yield client


@pytest.fixture
def service(tmp_path, model_file):
    """Yield a service on SQLite without keys, as a client sees it."""
    from tests.service.helpers import serving

    with serving(tmp_path / "shortlist.db", model_file) as client:
        yield client
