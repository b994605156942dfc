"""scikit-learn's own list of checks."""

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity, CapacityClassifier

CLASSIFIERS = [
    CapacityClassifier(LogisticRegression(), capacity=Capacity.multiple(1)),
    CapacityClassifier(LinearSVC(), capacity=Capacity.fraction(0.3), ties="hash"),
    CapacityClassifier(KNeighborsClassifier(), capacity=Capacity.fraction(0.3), cv=3, ties="hash"),
    CapacityClassifier(LinearSVC(), capacity=Capacity.multiple(0.5), cv=3, guarantee="expected"),
    CapacityClassifier(
        LinearSVC(), capacity=Capacity.fraction(0.3), cv=3, list_estimator=LinearSVC(C=0.1)
    ),
]


def expected_failures(classifier):
    """Name the checks whose assumption a capacity contradicts, and why."""
    if not hasattr(classifier.estimator, "predict_proba"):
        return {}
    return {
        "check_classifiers_train": (
            "the capacity decides, so predict is not the class with the highest probability"
        ),
    }


def skip_if_models_overrule(estimator, check):
    """Skip a check of ranks on unseeded items, which depends on where one model overrules all."""
    name = getattr(check, "func", check).__name__
    several = not isinstance(estimator.cv, float) and hasattr(estimator.estimator, "predict_proba")
    if name == "check_decision_proba_consistency" and several:
        pytest.skip("one of several models decides about an item and signs it, all of them rank it")


@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """Everything that holds for scikit-learn's own classifiers."""
    skip_if_models_overrule(estimator, check)
    check(estimator)


@parametrize_with_checks(CLASSIFIERS[:2], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_with_metadata_routing(estimator, check):
    """The same with metadata routing enabled."""
    skip_if_models_overrule(estimator, check)
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)
