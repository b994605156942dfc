"""Every public estimator can be saved by skops and loaded with the list of trusted types."""

import importlib
import inspect
import subprocess
import sys

import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareNetworkClassifier,
    CapacityAwareSVC,
)
from shortlist.learners import (
    CapacityEnsembleClassifier,
    KernelDensityClassifier,
    KernelKNeighborsClassifier,
)
from shortlist.models import trusted_types

CAPACITY = Capacity.fraction(0.1)
ESTIMATORS = [
    CapacityClassifier(LogisticRegression(), capacity=CAPACITY, cv=0.5),
    CapacityClassifier(LogisticRegression(), capacity=Capacity.multiple(2), cv=3, ties="hash"),
    CapacityClassifier(
        RandomForestClassifier(50, random_state=0),
        capacity=CAPACITY,
        cv="oob",
        guarantee="confident",
    ),
    MulticlassCapacityClassifier(LogisticRegression(), capacities={1: CAPACITY}),
    CapacityAwareBoostingClassifier(CAPACITY, random_state=0),
    CapacityAwareForestClassifier(CAPACITY, n_estimators=20, random_state=0),
    CapacityAwareLinearClassifier(CAPACITY, random_state=0),
    CapacityAwareNetworkClassifier(CAPACITY, random_state=0),
    CapacityAwareSVC(CAPACITY, random_state=0),
    CapacityEnsembleClassifier(size="quick", random_state=0),
    KernelDensityClassifier(),
    KernelKNeighborsClassifier(),
]


@pytest.fixture(scope="module")
def items():
    """Return items of which one in ten is rare."""
    return make_classification(600, 6, weights=[0.9], class_sep=0.6, random_state=0)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_an_estimator_comes_back(estimator, items):
    """With the same predictions, and without any other trusted type."""
    X, y = items
    fitted = estimator.fit(X, y)
    saved = skops.io.dumps(fitted)
    loaded = skops.io.loads(saved, trusted=trusted_types())
    assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_segments_come_back(items):
    """A capacity for each segment is saved with the classifier."""
    X, y = items
    segments = (X[:, 0] > 0).astype(int)
    limits = {0: Capacity.fraction(0.1), 1: Capacity.fraction(0.2)}
    classifier = CapacityClassifier(
        LogisticRegression(), capacity=None, segment_capacities=limits, cv=0.5
    )
    classifier.fit(X, y, segments=segments)
    loaded = skops.io.loads(skops.io.dumps(classifier), trusted=trusted_types())
    options = {"segments": segments}
    assert_array_equal(loaded.predict(X, **options), classifier.predict(X, **options))


def test_no_public_estimator_is_forgotten():
    """A new one has to be added to this test."""
    modules = ("shortlist", "shortlist.aware", "shortlist.learners", "shortlist.multiclass")
    public = {
        getattr(module, name)
        for module in map(importlib.import_module, modules)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    }
    estimators = {each for each in public if issubclass(each, BaseEstimator)}
    assert estimators == {type(each) for each in ESTIMATORS}


def test_the_list_is_the_same_in_a_fresh_interpreter():
    """It does not depend on what was imported or fitted before."""
    code = "from shortlist.models import trusted_types; print(*trusted_types())"
    fresh = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert fresh.stdout.split() == trusted_types()


def test_dangerous_types_are_not_in_the_list():
    """Of Python itself a container only, which can do nothing, and no function."""
    names = trusted_types()
    assert [name for name in names if name.startswith("builtins.")] == ["builtins.frozenset"]
    assert sorted(set(names)) == names
    assert {name.partition(".")[0] for name in names} == {
        "builtins",
        "collections",
        "fractions",
        "lightgbm",
        "numpy",
        "shortlist",
        "sklearn",
    }
