"""scikit-learn's own estimator checks, for joint capacities."""

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, MulticlassCapacityClassifier

CLASSIFIERS = [
    MulticlassCapacityClassifier(
        LogisticRegression(),
        capacities=Capacity.fraction(0.5),
        guarantee="confident",
        majority=False,
    ),
    MulticlassCapacityClassifier(
        KNeighborsClassifier(),
        capacities=Capacity.fraction(0.3),
        total=Capacity.fraction(0.4),
        cv=3,
        ties="hash",
    ),
]


def expected_failures(classifier):
    """Name the checks whose assumption a capacity contradicts, and why."""
    return {
        "check_classifiers_train": (
            "the capacities decide, so predict is not the class with the highest probability"
        ),
    }


@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn's own classifiers."""
    check(estimator)


@parametrize_with_checks(CLASSIFIERS[:1], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_with_metadata_routing(estimator, check):
    """It also passes them with metadata routing enabled."""
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)
