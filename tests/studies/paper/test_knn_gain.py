"""The joint choice of k and threshold, against k by accuracy and then a threshold."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shortlist.learners import KernelKNeighborsClassifier
from studies.paper import knn_gain

needs_credit = pytest.mark.skipif(
    "SHORTLIST_DATA" not in os.environ, reason="the credit data are missing; set SHORTLIST_DATA"
)


@needs_credit
def test_the_rule_for_ties_decides_the_gain_of_the_joint_choice():
    """To the smallest k there is a large gain, to the largest hardly any."""
    config = knn_gain.Config(prevalences=(0.02,), rows=30_000, repetitions=3, multiples=(3,))
    table = knn_gain.run(config)
    small, large, mixed = knn_gain.digest(table)
    assert [row["tie_break"] for row in (small, large, mixed)] == list(knn_gain.READINGS)
    assert (mixed["joint"], mixed["post_hoc"]) == (large["joint"], small["post_hoc"])
    assert small["gain_percent"] > 10 > large["gain_percent"]
    axes = knn_gain.draw(table).axes
    assert all(ax.get_xlabel() for ax in axes)
    assert axes[0].get_ylabel()


def test_one_search_scores_every_number_of_neighbours(rng):
    """Each column has the scores of the classifier with as many neighbours."""
    X, items = rng.normal(size=(200, 4)) * [1, 10, 0.1, 1], rng.normal(size=(50, 4))
    X[:, 3], y = 7.0, rng.integers(2, size=200)
    scores = knn_gain.scores_by_k(X, y, items, 30)
    for k in (1, 5, 30):
        model = KernelKNeighborsClassifier(k).fit(X, y)
        assert_allclose(scores[:, k - 1], model.predict_proba(items)[:, 1], atol=1e-6)
    assert np.isfinite(scores).all()
