"""Commands run in this process, again and again, on a few models."""

import functools
import pickle

import pytest
import typer.testing

from shortlist.tables import model_file


@pytest.fixture(scope="session", autouse=True)
def models_and_commands_are_read_once():
    """Read each content of a model file once, and give every command a copy of its own."""

    @functools.lru_cache(maxsize=16)
    def pickled(payload, name):
        return pickle.dumps(read(payload, name))

    read = model_file.load_estimator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_file, "load_estimator", lambda *args: pickle.loads(pickled(*args)))
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.testing._get_command))
        yield
