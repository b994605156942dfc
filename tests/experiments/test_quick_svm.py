"""The quick machine gives the scores of scikit-learn's."""

from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from shortlist.experiments._quick_svm import QuickSVC


def test_scores_and_labels_are_those_of_scikit_learn(rng):
    """But for rounding, also across the batches."""
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 1.5).astype(int)
    new = rng.normal(size=(2_500, 4))
    ours, theirs = (kind(C=1, gamma=0.1).fit(X, y) for kind in (QuickSVC, SVC))
    assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=1e-10)
    assert_array_equal(ours.predict(new), theirs.predict(new))
