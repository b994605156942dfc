"""An ensemble of different models."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist.learners import CapacityEnsembleClassifier

_WEIGHTS = "Trees draw bootstrap samples: a weight of two is not the same random draw as two rows."


@parametrize_with_checks(
    [CapacityEnsembleClassifier(size="quick", random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
    },
)
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    """It passes scikit-learn's own checks."""
    check(estimator)
