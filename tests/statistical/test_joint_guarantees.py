"""All capacities hold together as often as guaranteed: measured over many calibrations.

The true rates are known exactly (see the study). With 300 calibrations the standard error of a
probability of 0.05 is 0.0126; four of them are exceeded by chance in fewer than one run of 10,000.
"""

from fractions import Fraction

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.multiclass._capacities import JointCapacities
from shortlist.multiclass._rule import JointRule, JointSample
from shortlist.thresholds.samples import SegmentCapacities
from studies.statistics.joint_guarantee import JointGuaranteeConfig, run

pytestmark = pytest.mark.filterwarnings(
    "ignore::shortlist.exceptions.InsufficientCalibrationWarning"
)
TRIALS = 300
TOLERANCE = 4 * np.sqrt(0.05 * 0.95 / TRIALS)


def test_violations_and_costs_out_of_sample():
    """Plug-in exceeds, "expected" keeps the rates on average, "confident" keeps all at once."""
    config = JointGuaranteeConfig(sizes=(1_000, 4_000), n_trials=TRIALS, n_population=10_000)
    table = {(row.guarantee, row.n_calibration): row for row in run(config)}
    for n in config.sizes:
        plug_in, sure = table["plug-in", n], table["confident", n]
        average = table["expected", n]
        # A cut leaves about c n / 2 items above, ten at the least: a rate differs from its mean by
        # a third at most, and the mean over 5 classes and 300 calibrations by 0.009.
        assert average.rate_over_capacity <= 1 + 4 * 0.009
        assert sure.rate_over_capacity < average.rate_over_capacity < plug_in.rate_over_capacity
        assert plug_in.any_class_over > 0.8
        assert sure.any_class_over <= config.error + TOLERANCE
        assert sure.rate_over_capacity < plug_in.rate_over_capacity
        assert sure.objective_over_optimum < plug_in.objective_over_optimum
    # The cost falls with the sample.
    costs = [1 - table["confident", n].objective_over_optimum for n in config.sizes]
    assert costs[1] < costs[0]


def test_segments_and_a_total_are_kept_together_with_the_classes():
    """Two classes, three segments and a total hold at once, on coarse values with hashed ties."""
    rng = np.random.default_rng(1)
    size, n_segments = 20_000, 3
    gains = np.round(rng.normal(size=(size, 2)) - 1.2, 1)
    population = JointSample(
        gains, rng.integers(n_segments, size=size), rng.uniform(size=size), False
    )
    of_classes, total = [Fraction(1, 20), Fraction(1, 25)], Fraction(2, 25)
    of_segments = [Fraction(1, 10), Fraction(3, 50), Fraction(1, 20)]
    joint = JointCapacities(
        {j: Capacity.fraction(ratio) for j, ratio in enumerate(of_classes)},
        {0: 1, 1: 1, "common": 1},
        Capacity.fraction(total),
        SegmentCapacities({s: Capacity.fraction(r) for s, r in enumerate(of_segments)}, None),
    )
    over = 0
    for _ in range(TRIALS):
        sample = population.take(rng.integers(size, size=3_000))
        rule = JointRule.calibrate(sample, joint, guarantee="confident", random_state=rng)
        columns, _ = rule.decide(population)
        flagged = columns > 0
        over += (
            any(np.mean(columns == j + 1) > ratio for j, ratio in enumerate(of_classes))
            or flagged.mean() > total
            or any(
                flagged[population.segments == s].mean() > ratio
                for s, ratio in enumerate(of_segments)
            )
        )
        assert flagged.any()
    assert over / TRIALS <= 0.05 + TOLERANCE
