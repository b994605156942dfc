"""Laws of the assignment, on random, tied and degenerate instances."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist import assign
from shortlist.assignment import solve_assignment
from shortlist.assignment._highs import solve_with_highs
from shortlist.assignment.problem import check_problem

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


def check(problem):
    """Return the instance as the solvers see it."""
    defaults = {"total": None, "segments": None, "segment_capacities": None}
    return check_problem(**(defaults | problem))


def counts_within(problem, columns):
    """Return whether all limits are kept."""
    flagged = columns > 0
    by_class = np.bincount(columns, minlength=problem.class_limits.size + 1)[1:]
    kept = (by_class <= problem.class_limits).all() and flagged.sum() <= problem.total
    for part in problem.segmentations:
        by_segment = np.bincount(part.codes[flagged], minlength=part.limits.size)
        kept = kept and (by_segment <= part.limits).all()
    return kept


@settings(max_examples=300)
@given(instances())
def test_the_optimum_is_that_of_highs_and_its_prices_prove_it(instance):
    """The assignment keeps the limits; its value equals that of HiGHS and the dual bound."""
    problem = check(instance)
    found = solve_assignment(**instance)
    assert counts_within(problem, found.columns)
    assert not np.isneginf(
        np.asarray(instance["values"])[np.arange(problem.n_rows), found.columns]
    ).any()
    best = problem.value_of(solve_with_highs(problem)[0])
    scale = 1 + abs(best)
    assert abs(found.value - best) <= 1e-6 * scale
    assert abs(found.bound - found.value) <= 1e-10 * scale


@given(instances())
def test_prices_of_limits_that_do_not_bind_are_zero(instance):
    """Complementary slackness holds for classes, segments and the total; no price is negative."""
    problem, found = check(instance), solve_assignment(**instance)
    by_class = np.bincount(found.columns, minlength=problem.class_limits.size + 1)[1:]
    assert (found.prices >= 0).all()
    assert not found.prices[by_class < problem.class_limits].any()
    assert found.total_price >= 0
    assert found.total_price == 0 or (found.columns > 0).sum() == problem.total
    for part in problem.segmentations:
        used = np.bincount(part.codes[found.columns > 0], minlength=part.limits.size)
        prices = np.array([found.segment_prices[label] for label in part.labels.tolist()])
        assert (prices >= 0).all()
        assert not prices[used < part.limits].any()


@given(instances())
def test_strictly_above_the_prices_there_is_no_choice(instance):
    """A row with a single best column after prices has that column in the optimum."""
    problem, found = check(instance), solve_assignment(**instance)
    net = problem.gains - found.prices - found.total_price
    for part in problem.segmentations:
        net -= np.array([found.segment_prices[s] for s in part.labels.tolist()])[part.codes, None]
    net = np.column_stack([np.zeros(problem.n_rows), net])
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
    found = solve_assignment(**instance)
    if instance["capacities"][j] is None:
        return
    more = list(instance["capacities"])
    more[j] += 1
    better = solve_assignment(**(instance | {"capacities": more}))
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


@settings(max_examples=60)
@given(st.data())
def test_crossing_segments_are_solved_to_the_optimum(data):
    """The value equals the best of all assignments, on instances small enough to list them."""
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 2))
    values = data.draw(hnp.arrays(np.float64, (n, m + 1), elements=tied))
    segments = data.draw(hnp.arrays(np.int64, (n, 2), elements=st.integers(0, 1)))
    some = st.integers(0, 2)
    instance = {
        "values": values,
        "capacities": data.draw(st.lists(some, min_size=m, max_size=m)),
        "total": data.draw(st.integers(0, 4)),
        "segments": segments,
        "segment_capacities": [{0: data.draw(some), 1: data.draw(some)} for _ in range(2)],
    }
    problem, found = check(instance), solve_assignment(**instance)
    assert counts_within(problem, found.columns)
    everything = (np.array(columns) for columns in product(range(m + 1), repeat=n))
    best = max(problem.value_of(c) for c in everything if counts_within(problem, c))
    assert abs(found.value - best) <= 1e-9
    assert found.bound >= found.value - 1e-9
