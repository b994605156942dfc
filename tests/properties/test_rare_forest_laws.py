"""The cut of the quick forest is the best of all cuts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shortlist.experiments._rare_forest import RareForest

items = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=2, max_size=40)


def gini_gain(values, is_rare, cut):
    """Return the sum of squares over sizes of both sides, which the split makes largest."""
    total = 0.0
    for side in (values <= cut, values > cut):
        n, rare = side.sum(), (side & is_rare).sum()
        total += (rare**2 + (n - rare) ** 2) / n
    return total


@given(items=items)
def test_no_cut_of_a_feature_is_better(items):
    """However values tie, the first cut has the largest gain of all that part the items."""
    values = np.array([float(value) for value, _ in items])
    is_rare = np.array([rare for _, rare in items])
    tree = (
        RareForest(1, bootstrap=False, max_features=1)
        .fit(values[:, np.newaxis], is_rare.astype(int))
        .trees_[0]
    )
    cuts = np.unique(values)[:-1]
    if is_rare.all() or not is_rare.any() or cuts.size == 0:
        assert tree.feature[0] == -1
        return
    best = max(gini_gain(values, is_rare, cut) for cut in cuts)
    assert np.isclose(gini_gain(values, is_rare, tree.threshold[0]), best)
