"""The joint choice of k and threshold, against k by accuracy and then a threshold."""

import pytest

from shortlist.datasets import _credit
from shortlist.experiments import knn_gain

pytestmark = pytest.mark.skipif(
    _credit._find(None) is None, reason="the credit data are not here; set SHORTLIST_DATA"
)


def test_the_rule_for_ties_decides_the_gain_of_the_joint_choice():
    """To the smallest k there is a large gain, to the largest hardly any."""
    config = knn_gain.Config(prevalences=(0.02,), rows=30_000, repetitions=3, multiples=(3,))
    table = knn_gain.run(config)
    small, large = knn_gain.digest(table)
    assert (small["tie_break"], large["tie_break"]) == ("smallest", "largest")
    assert small["gain_percent"] > 10 > large["gain_percent"]
    axes = knn_gain.draw(table).axes
    assert all(ax.get_xlabel() for ax in axes)
    assert axes[0].get_ylabel()
