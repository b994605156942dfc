"""scikit-learn's own list of checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareNetworkClassifier,
    CapacityAwareSVC,
)

CLASSIFIERS = [
    CapacityAwareSVC(Capacity.multiple(1)),
    CapacityAwareSVC(
        Capacity.fraction(0.3),
        selection="paper",
        variant="stop",
        tie_break="first",
        guarantee="plug-in",
        ties="hash",
    ),
    CapacityAwareLinearClassifier(Capacity.multiple(1)),
    CapacityAwareLinearClassifier(Capacity.fraction(0.3), loss="pat-mat", guarantee="expected"),
    CapacityAwareNetworkClassifier(Capacity.multiple(1), n_members=2, max_iter=10),
    CapacityAwareNetworkClassifier(
        Capacity.fraction(0.3), hidden_layer_sizes=(), loss="top-push", max_iter=5, batch_size=15
    ),
    CapacityAwareForestClassifier(Capacity.multiple(1), n_estimators=10),
    CapacityAwareBoostingClassifier(Capacity.multiple(1), max_rounds=10, cv=2),
    CapacityAwareBoostingClassifier(
        Capacity.fraction(0.3), loss="detection", max_rounds=5, cv=2, ties="hash"
    ),
]


@parametrize_with_checks(CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(estimator, check):
    """The classifier passes the checks of scikit-learn."""
    check(estimator)
