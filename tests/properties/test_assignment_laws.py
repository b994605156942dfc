"""Laws of the assignment, on random, tied and degenerate instances."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from assignment_by_highs import best_value, written_out
from shortlist import assign

tied = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
fine = st.floats(-10, 10)
limits = st.none() | st.integers(0, 6)


@st.composite
def instances(draw):
    """Draw values with ties, duplicated rows and forbidden columns; limits of every kind."""
    n, m = draw(st.integers(0, 14)), draw(st.integers(0, 4))
    values = draw(hnp.arrays(np.float64, (n, m + 1), elements=draw(st.sampled_from([tied, fine]))))
    if n and draw(st.booleans()):
        values = values[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]
    if draw(st.booleans()):
        values[:, 1:][draw(hnp.arrays(bool, (n, m)))] = -np.inf
    problem = {"values": values, "capacities": draw(st.lists(limits, min_size=m, max_size=m))}
    problem["total"] = draw(limits)
    if draw(st.booleans()):
        problem["segments"] = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
        problem["segment_capacities"] = {s: draw(limits) for s in range(4)}
    return problem


def counts_within(problem, columns):
    """Return whether all limits are kept."""
    flagged = columns > 0
    by_class = np.bincount(columns, minlength=problem.classes.size + 1)[1:]
    by_segment = np.bincount(problem.segment_of[flagged], minlength=problem.segments.size)
    return (
        (by_class <= problem.classes).all()
        and (by_segment <= problem.segments).all()
        and flagged.sum() <= problem.total
    )


@settings(max_examples=300)
@given(instances())
def test_the_optimum_is_that_of_highs_and_its_prices_prove_it(instance):
    """The assignment keeps the limits; its value equals that of HiGHS and the dual bound."""
    problem = written_out(**instance)
    found = assign(return_details=True, **instance)
    assert counts_within(problem, found.columns)
    assert not np.isneginf(
        np.asarray(instance["values"])[np.arange(len(problem.gains)), found.columns]
    ).any()
    best = best_value(**instance)
    scale = 1 + abs(best)
    assert abs(found.value - best) <= 1e-6 * scale
    assert abs(found.bound - found.value) <= 1e-10 * scale


@given(instances())
def test_prices_of_limits_that_do_not_bind_are_zero(instance):
    """Complementary slackness holds for classes, segments and the total; no price is negative."""
    problem, found = written_out(**instance), assign(return_details=True, **instance)
    by_class = np.bincount(found.columns, minlength=problem.classes.size + 1)[1:]
    assert (found.prices >= 0).all()
    assert not found.prices[by_class < problem.classes].any()
    assert found.total_price >= 0
    assert found.total_price == 0 or (found.columns > 0).sum() == problem.total
    used = np.bincount(problem.segment_of[found.columns > 0], minlength=problem.segments.size)
    for place, name in enumerate(problem.names):
        assert found.segment_prices[name] >= 0
        assert found.segment_prices[name] == 0 or used[place] == problem.segments[place]


@given(instances())
def test_strictly_above_the_prices_there_is_no_choice(instance):
    """A row with a single best column after prices has that column in the optimum."""
    problem, found = written_out(**instance), assign(return_details=True, **instance)
    net = problem.gains - found.prices - found.total_price
    if problem.names:
        prices = np.array([found.segment_prices[name] for name in problem.names])
        net -= prices[problem.segment_of, np.newaxis]
    net = np.column_stack([np.zeros(len(net)), net])
    ranked = np.sort(net, axis=1)
    if net.shape[1] > 1:
        clear = ranked[:, -1] - ranked[:, -2] > 1e-9
        assert_array_equal(found.columns[clear], net.argmax(axis=1)[clear])


@given(instances(), st.data())
def test_more_capacity_is_never_worth_less(instance, data):
    """One more place never loses; in a class without other limits it gains exactly its price."""
    m = np.asarray(instance["values"]).shape[1] - 1
    if m == 0:
        return
    j = data.draw(st.integers(0, m - 1))
    found = assign(return_details=True, **instance)
    if instance["capacities"][j] is None:
        return
    more = list(instance["capacities"])
    more[j] += 1
    better = assign(return_details=True, **(instance | {"capacities": more}))
    assert better.value >= found.value - 1e-9
    assert better.value <= found.value + found.prices[j] + 1e-9
    if instance["total"] is None and "segments" not in instance:
        assert abs(better.value - found.value - found.prices[j]) <= 1e-9


@given(instances(), st.randoms(use_true_random=False))
def test_shuffled_rows_get_the_same_columns(instance, random):
    """With ids, ties do not depend on the order of the rows."""
    n = len(instance["values"])
    order = np.array(random.sample(range(n), n), dtype=int)
    shuffled = {
        name: value[order] if isinstance(value, np.ndarray) else value
        for name, value in instance.items()
    }
    ids = np.arange(n)
    assert_array_equal(assign(**shuffled, ids=ids[order]), assign(**instance, ids=ids)[order])


@given(instances())
def test_the_arguments_are_not_changed(instance):
    """Nothing is written into the caller's arrays."""
    before = instance["values"].copy()
    assign(**instance)
    assert_array_equal(before, instance["values"])
