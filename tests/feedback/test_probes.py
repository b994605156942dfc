"""Probes keep the length of a list, are drawn uniformly, and say how likely they were."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, select
from shortlist._core.probing import draw_probes
from shortlist.datasets import make_fraud

batches = st.tuples(
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.integers(0, 45),
    st.fractions(0, 1, max_denominator=20),
)


@pytest.mark.filterwarnings("ignore:A share of")
@given(batches)
@settings(max_examples=150, deadline=None)
def test_the_list_keeps_its_length_and_its_head(batch):
    """Probes replace the last slots only, and a list with probes is as long as one without."""
    scores, count, probe = batch
    scores, capacity = np.array(scores, dtype=float), Capacity.count(count)
    plain = select(scores, capacity)
    picked = select(scores, capacity, probe=probe, return_details=True)
    assert picked.flagged.sum() == plain.sum()
    n_probes = int(probe * int(plain.sum()))
    assert picked.is_probe.sum() == n_probes
    head = select(scores, Capacity.count(int(plain.sum()) - n_probes))
    np.testing.assert_array_equal(picked.flagged & ~picked.is_probe, head)
    assert (picked.probabilities[head] == 1).all()
    below = ~head
    assert picked.probabilities[below].sum() == pytest.approx(n_probes)


@given(batches)
@settings(max_examples=50, deadline=None)
def test_without_probes_nothing_changes(batch):
    """A share of 0 gives the list of today, bit for bit."""
    scores, count, _ = batch
    plain = select(scores, Capacity.count(count), ids=range(len(scores)))
    picked = select(scores, Capacity.count(count), ids=range(len(scores)), probe=0)
    np.testing.assert_array_equal(picked, plain)


def test_probes_do_not_depend_on_the_row_order():
    """The same ids are drawn when the rows come in another order."""
    rng = np.random.default_rng(0)
    scores, ids = rng.integers(0, 9, 200), np.array([f"case {i}" for i in range(200)])
    order = rng.permutation(200)
    one = select(scores, Capacity.count(40), ids=ids, probe=0.3)
    other = select(scores[order], Capacity.count(40), ids=ids[order], probe=0.3)
    np.testing.assert_array_equal(one[order], other)


def test_every_case_is_drawn_with_its_probability():
    """Over 1,500 keys and 30 cases, draws agree with the probabilities that were answered."""
    scores, drawn = np.arange(30.0), np.zeros(30)
    for seed in range(1_500):
        picked = select(
            scores,
            Capacity.count(10),
            probe=0.5,
            random_state=seed,
            return_details=True,
        )
        drawn += picked.is_probe
    below = picked.probabilities < 1
    spread = np.sqrt(picked.probabilities * (1 - picked.probabilities) / 1_500)
    errors = (drawn / 1_500 - picked.probabilities)[below] / spread[below]
    assert np.abs(errors).max() < 4.5
    # Pairs: draws without replacement repel each other, and by the right amount.
    assert drawn[below].sum() == 1_500 * 5


def test_a_share_of_less_than_one_probe_warns():
    """Five slots have no tenth: nothing is drawn, and that is said."""
    with pytest.warns(UserWarning, match="less than one probe"):
        select(np.arange(50.0), Capacity.count(5), probe=0.1)


def test_no_probe_in_a_small_segment_warns():
    """Of 3 and 20 slots, a fifth is no probe and four: cases of the first cannot be drawn."""
    flagged = np.arange(200) % 100 < np.repeat([3, 20], 100)
    numbers = np.random.default_rng(0).random(200)
    with pytest.warns(UserWarning, match="less than one probe for 97 cases below the cut"):
        drawn = draw_probes(
            flagged,
            -np.arange(200.0),
            np.zeros_like,
            numbers.__getitem__,
            Fraction(1, 5),
            groups=np.repeat([0, 1], 100),
        )
    assert np.all(drawn.probabilities[3:100] == 0)
    assert drawn.is_probe.sum() == 4


def test_probes_by_loss_need_probabilities_and_cases():
    """Scores that are no probabilities have no expected loss; without cases nothing is drawn."""
    alike = select(
        np.arange(-5, 5.0), Capacity.count(4), values=np.ones(10), probe=0.5, return_details=True
    )
    assert set(alike.probabilities[:8]) == {1 / 4}
    assert select([], Capacity.count(4), values=[], probe=0.5).size == 0


@pytest.mark.parametrize("probe", [-0.1, 1.5, float("nan"), "some", True])
def test_an_impossible_share_is_refused(probe):
    """A share of the slots lies between 0 and 1."""
    with pytest.raises((ValueError, TypeError), match="probe"):
        select(np.arange(50.0), Capacity.count(5), probe=probe)


def test_a_classifier_keeps_the_capacity_of_every_segment():
    """Probes are drawn inside each segment, from its own slots."""
    X, y = make_fraud(1_500, prevalence=0.05)
    teams = np.where(np.arange(1_500) % 3 == 0, "north", "south")
    model = CapacityClassifier(
        LogisticRegression(max_iter=1_000),
        capacity=Capacity.fraction(0.1),
        segment_capacities={"north": Capacity.fraction(0.05), "south": Capacity.fraction(0.08)},
        cv=0.5,
        random_state=0,
    ).fit(X, y, segments=teams)
    plain = model.select(X, segments=teams)
    picked = model.select(X, segments=teams, probe=0.2, return_details=True)
    for team in ("north", "south"):
        own = teams == team
        assert picked.flagged[own].sum() == plain[own].sum()
        assert picked.is_probe[own].sum() == int(0.2 * plain[own].sum())
        below = own & (picked.reasons != "score")
        assert len(set(picked.probabilities[below])) == 1
