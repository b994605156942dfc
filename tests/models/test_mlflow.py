"""MLflow saves and loads classifiers with the list of trusted types."""

import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist.models import trusted_types

mlflow = pytest.importorskip("mlflow", minversion="3")
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow warns about its own dependencies


@pytest.fixture
def fitted():
    """Return items and a classifier that was fitted to them."""
    X, y = make_classification(1_000, weights=[0.95], random_state=0)
    return X, CapacityClassifier(
        LogisticRegression(), capacity=Capacity.fraction(0.06), cv=0.5
    ).fit(X, y)


def test_a_classifier_comes_back(fitted, tmp_path):
    """As a classifier, and as a function that predicts labels."""
    X, classifier = fitted
    mlflow.sklearn.save_model(classifier, tmp_path / "m", skops_trusted_types=trusted_types())
    loaded = mlflow.sklearn.load_model(str(tmp_path / "m"))
    assert_array_equal(loaded.flag(X), classifier.flag(X))
    assert loaded.threshold_ == classifier.threshold_
    function = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert_array_equal(function.predict(X), classifier.predict(X))


def test_without_the_list_it_is_refused(fitted, tmp_path):
    """MLflow names the argument that it needs."""
    _, classifier = fitted
    with pytest.raises(mlflow.MlflowException, match="skops_trusted_types"):
        mlflow.sklearn.save_model(classifier, tmp_path / "m", serialization_format="skops")
