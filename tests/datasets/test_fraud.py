"""The simulator is deterministic and has the prevalence it is asked for."""

import numpy as np
from numpy.testing import assert_array_equal

from shortlist.datasets import FRAUD_FEATURES, make_fraud


def test_the_same_seed_gives_the_same_payments():
    """By default as well."""
    assert_array_equal(make_fraud(500)[0], make_fraud(500, random_state=0)[0])
    assert (make_fraud(500, random_state=1)[0] != make_fraud(500)[0]).any()


def test_shape_and_prevalence():
    """Columns as named, one per cent frauds, all finite."""
    X, y = make_fraud(20_000)
    assert X.shape == (20_000, len(FRAUD_FEATURES))
    assert y.sum() == 200
    assert np.isfinite(X).all()
