"""A state file of a budget of work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import BudgetController
from shortlist.streaming import DurableController

EFFORTS = st.lists(st.sampled_from([0.1, 0.2, 1.0, 2.5, 4.0]), min_size=1, max_size=12)


def budget():
    """Return a controller of ten units of work for every twenty items."""
    return BudgetController(
        Capacity.effort(10, per=20),
        calibration_scores=np.linspace(0, 1, 50),
        expected_effort=1.0,
    )


def opened(path):
    """Open the state file."""
    return DurableController(path, budget, identity={"model": "a"}, sync=False)


@settings(max_examples=15, deadline=None)
@given(batches=st.lists(EFFORTS, min_size=1, max_size=6))
def test_a_crash_after_any_decision_spends_nothing_twice(tmp_path_factory, batches):
    """However often it is killed and opened again, twenty items never get more than ten units."""
    folder, spent = tmp_path_factory.mktemp("state"), []
    for run, efforts in enumerate(batches):
        with opened(folder / f"{run}") as durable:
            flagged = durable.decide(np.linspace(0.2, 0.9, len(efforts)), efforts=efforts).flagged
            killed = (folder / f"{run}").read_bytes()  # without the save at the end
        (folder / f"{run + 1}").write_bytes(killed)
        spent += np.where(flagged, efforts, 0).tolist()
    for start in range(0, len(spent), 20):
        assert round(sum(spent[start : start + 20]), 6) <= 10


def test_what_a_crash_cut_off_is_dropped_and_the_rest_replayed(tmp_path):
    """The work of the whole records is spent, and no other."""
    with opened(tmp_path / "state") as durable:
        assert durable.decide([0.9, 0.95], efforts=[4.0, 4.0]).flagged.all()
        once = (tmp_path / "state").read_bytes()
        durable.decide([0.9], efforts=[2.0])
        twice = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(twice[: len(once) + 30])
    with opened(tmp_path / "state") as again:
        assert (again.n_dropped_bytes, again.n_before) == (30, 2)
        assert again.controller.remaining == 2


def test_efforts_belong_to_budgets_of_work(tmp_path):
    """Missing efforts, and efforts of a controller that counts flags, change nothing."""
    with opened(tmp_path / "state") as durable, pytest.raises(ValueError, match="needs efforts"):
        durable.decide([0.9])
    counts = lambda: BudgetController(  # noqa: E731
        Capacity.count(2, per=9), calibration_scores=np.arange(9.0)
    )
    with (
        DurableController(tmp_path / "other", counts, identity={}) as durable,
        pytest.raises(ValueError, match="has no use for efforts"),
    ):
        durable.decide([0.9], efforts=[1.0])
