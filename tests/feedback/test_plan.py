"""Plans for probes: what they cost, and when they are useless."""

import pytest

from shortlist.feedback import plan_probes


def test_more_probes_and_more_periods_tell_more():
    """The interval to be expected shrinks with time, and the cost grows with the share."""
    plans = plan_probes(20_000, 400, 0.02, detection=0.55, shares=[0.1, 0.2], n_periods=[7, 30])
    widths = [plan.detection_high - plan.detection_low for plan in plans]
    assert widths[1] < widths[0]
    assert widths[3] < widths[1]
    assert plans[2].cost > plans[0].cost > 0
    assert plans[1].is_useful
    assert not plans[0].is_useful
    assert "useless" in str(plans[0])


def test_forty_slots_are_useless_within_a_month():
    """Four probes a day say nothing within thirty days."""
    assert not any(plan.is_useful for plan in plan_probes(2_000, 40, 0.02, detection=0.5))


def test_a_curve_of_ones_own_is_taken():
    """A function of the number of slots replaces the normal curve."""
    (plan,) = plan_probes(
        1_000, 100, 0.1, detection=lambda slots: slots / 100, shares=[0.5], n_periods=[1]
    )
    assert plan.cost == pytest.approx(1 - 0.5 - 0.5 * 50 / 950)


@pytest.mark.parametrize("detection", [0.01, 1.5])
def test_an_impossible_detection_is_refused(detection):
    """A model does not find less than chance, or more than there are slots."""
    with pytest.raises(ValueError, match="detection must lie between"):
        plan_probes(1_000, 100, 0.05, detection=detection)
