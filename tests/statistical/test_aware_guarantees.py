"""The guarantees hold for models learned for the capacity."""

import numpy as np
import pytest

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareLinearClassifier, CapacityAwareSVC

N_TRIALS, N_TEST, FRACTION = 60, 2_000, 0.1


def draw(rng, n):
    """Draw items of which about a tenth are rare and shifted."""
    is_rare = rng.random(n) < 0.1
    return rng.normal(size=(n, 2)) + is_rare[:, np.newaxis], is_rare


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: CapacityAwareSVC(max_support=5, n_swaps=1, random_state=seed),
        lambda seed: CapacityAwareLinearClassifier(),
    ],
    ids=["svc", "linear"],
)
def test_the_flag_rate_is_within_the_capacity_on_average(make, rng):
    """Learning for the capacity does not exceed it: the threshold comes from other items."""
    rates = []
    for seed in range(N_TRIALS):
        model = CapacityClassifier(
            make(seed), capacity=Capacity.fraction(FRACTION), cv=0.25, random_state=seed
        )
        rates.append(model.fit(*draw(rng, 600)).flag(draw(rng, N_TEST)[0]).mean())
    # With 150 calibration scores k + 1 = 15, and the true rate is Beta(15, 136): mean 0.0993,
    # standard deviation 0.0243. Counting it on 2,000 items adds 0.0067; together 0.0252 for a trial
    # and 0.0033 for the mean of 60. Three of these above 0.0993 make 0.109, three below 0.089.
    assert 0.089 < np.mean(rates) < 0.109
