"""What all tests share."""

import os
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

from made_cases import make_cases

mpl.use("Agg")
# The machine may be busy: examples are not timed, and every run draws the same ones.
settings.register_profile("shortlist", deadline=None, derandomize=True)
settings.load_profile("shortlist")
# Tests on the credit data run where their folder is named, or lies beside the checkout.
_BESIDE = Path(__file__).parents[2] / "shared" / "data"
if _BESIDE.is_dir():
    os.environ.setdefault("SHORTLIST_DATA", str(_BESIDE))
# Databases flush every commit, which costs nothing where files are kept in memory.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4e9:
    tempfile.tempdir = os.environ["TMPDIR"] = str(_MEMORY)
# A job in the background ignores Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    """Return a fresh generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def fraud():
    """Return simulated payments: 4,000 rows, 80 of them frauds."""
    from shortlist.datasets import make_fraud

    return make_fraud(4_000, prevalence=0.02, random_state=0)


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    """Return the path of a labelled table in a CSV file."""
    path = tmp_path_factory.mktemp("cases") / "cases.csv"
    make_cases().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def new_cases(tmp_path_factory):
    """Return the path of another labelled table of the same kind."""
    path = tmp_path_factory.mktemp("new_cases") / "new.csv"
    make_cases(800, seed=1).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def table_fit(cases):
    """Return a logistic model fitted to the table, with all that was measured."""
    from shortlist import Capacity
    from shortlist.tables import fit_table

    return fit_table(
        cases,
        target="fraud",
        id="case",
        capacity=Capacity.count(100, per=1_000),
        learner="logistic",
        folds=1,
        random_state=3,  # of a split whose threshold flags no more than a tenth of `new_cases`
    )


@pytest.fixture(scope="session")
def folded_fit(cases):
    """Return the same with the models of ten folds, which is the default."""
    from shortlist import Capacity
    from shortlist.tables import fit_table

    return fit_table(
        cases,
        target="fraud",
        id="case",
        capacity=Capacity.count(100, per=1_000),
        learner="logistic",
    )


#: Settings that make a learner quick; what a file has to hold is of the same kind.
QUICK_LEARNERS = {
    "forest": {"n_estimators": 20},
    "aware-forest": {"n_estimators": 20},
    "aware-network": {"n_members": 2, "max_iter": 20},
    "aware-svm": {"max_support": 5},
}


@pytest.fixture(scope="session")
def learner_model(cases):
    """Return a maker of models, which fits each learner once."""
    from shortlist import Capacity
    from shortlist.tables import estimators, fit_table

    make = estimators._make

    @cache
    def fitted(learner):
        options = {"target": "fraud", "id": "case", "capacity": Capacity.fraction(0.1)}
        quick = QUICK_LEARNERS.get(learner, {})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(estimators, "_make", lambda *args: make(*args).set_params(**quick))
            return fit_table(cases, learner=learner, folds=1, **options).model

    return fitted


@pytest.fixture(scope="session")
def model_file(table_fit, tmp_path_factory):
    """Return the path of that model in a file."""
    from shortlist.tables import save_model

    path = tmp_path_factory.mktemp("models") / "model.shortlist"
    save_model(table_fit.model, path)
    return path


def draw_items(n_items, rng):
    """Draw items of which one in twenty-five is rare: most clearly so, in two of five features."""
    is_rare = rng.random(n_items) < 0.04
    X = rng.normal(size=(n_items, 5))
    X[is_rare, 0] += 1.5
    X[is_rare & (rng.random(n_items) < 0.5), 1] += 2
    return X, is_rare


@pytest.fixture(scope="session")
def few_rare():
    """Return 2,000 items to learn from."""
    return draw_items(2000, np.random.default_rng(0))


@pytest.fixture(scope="session")
def others():
    """Return 20,000 items that nothing was learned from."""
    return draw_items(20_000, np.random.default_rng(1))
