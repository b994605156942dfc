"""Support vectors chosen for a capacity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareSVC
from shortlist.aware._svc import (
    Expansion,
    draw_swaps,
    find_gamma,
    kernel_sums,
    kernel_terms,
    mean_of,
)

CAPACITY = Capacity.fraction(0.05)


@pytest.fixture(scope="module")
def data():
    """Return 1,200 points, 60 of them rare: a small cloud within a large one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4)) * 2
    X[:60] = rng.normal(size=(60, 4)) + 1
    order = rng.permutation(1200)
    return X[order], np.where(np.arange(1200) < 60, "bad", "good")[order]


PAPER = {"selection": "paper"}


def fit(data, **options):
    """Fit with a seed."""
    return CapacityAwareSVC(CAPACITY, random_state=0, **options).fit(*data)


def test_the_score_is_the_sum_over_the_chosen_support_vectors(data):
    """The score has no intercept and the sign of the coefficients."""
    model = fit(data, **PAPER, gamma=0.3, max_support=7)
    X, _ = data
    assert_array_equal(model.support_vectors_, X[model.support_path_])
    expected = rbf_kernel(X, model.support_vectors_, gamma=0.3) @ model.dual_coef_
    assert_allclose(model.score_samples(X), expected)


def test_coefficients_are_positive_for_rare_support_vectors(data):
    """Scores rise with suspicion although the rare label sorts first."""
    model = fit(data, **PAPER)
    assert model.rare_label_ == "bad"
    assert_array_equal(model.dual_coef_ > 0, data[1][model.support_path_] == "bad")


def test_the_papers_rule_takes_its_threshold_from_the_half_it_chooses_on(data):
    """The last entry of the path is the detection at the threshold."""
    machine = CapacityAwareSVC(**PAPER, tie_break="first", random_state=0)
    rule = {"cv": "oob", "guarantee": "plug-in", "ties": "exclude"}
    model = CapacityClassifier(machine, capacity=CAPACITY, **rule).fit(*data)
    sample = model.rule_.samples[0]
    assert sample.scores.size == 600
    found = np.count_nonzero(sample.scores[sample.is_rare] > model.threshold_)
    path = model.estimator_.detection_path_
    assert found / sample.is_rare.sum() == pytest.approx(path[-1])
    alone = fit(data, **PAPER, tie_break="first")
    assert_array_equal(model.estimator_.dual_coef_, alone.dual_coef_)


def test_halves_that_swap_have_no_scores_out_of_bag(data):
    """The error says what to use."""
    with pytest.raises(ValueError, match="need selection='paper'"):
        CapacityClassifier(CapacityAwareSVC(), capacity=CAPACITY, cv="oob").fit(*data)


def test_fewer_steps_choose_a_prefix_of_the_path(data):
    """So the best part of a path is a fit with fewer steps."""
    whole, part = fit(data, **PAPER), fit(data, **PAPER, max_support=4)
    assert len(whole.support_vectors_) == 30
    assert_array_equal(part.detection_path_, whole.detection_path_[:4])
    assert_array_equal(part.support_vectors_, whole.support_vectors_[:4])


def test_each_path_comes_from_its_own_half(data):
    """Two swaps make four paths."""
    model = fit(data, n_swaps=2, max_support=5, fall_back=False)
    assert len(model.support_path_) == len(model.detection_path_) == 4
    assert len(model.support_vectors_) == 20
    assert not set(model.support_path_[0]) & set(model.support_path_[1])


@pytest.fixture(scope="module")
def spots():
    """Return 1,200 points in a plane; 120 of them are rare and lie in twelve spots."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-6, 6, size=(1200, 2))
    X[:120] = np.repeat(rng.permutation(36)[:12], 10)[:, np.newaxis] // [6, 1] % 6 * 2.0 - 5
    X[:120] += rng.normal(scale=0.05, size=(120, 2))
    return X, np.where(np.arange(1200) < 120, "bad", "good")


def test_the_whole_machine_is_used_where_few_are_not_enough(spots):
    """One support vector per path cannot cover twelve spots; a whole machine can."""
    options = {"gamma": 2.0, "max_support": 1, "n_swaps": 3}
    model = CapacityAwareSVC(Capacity.fraction(0.1), random_state=0, **options).fit(*spots)
    assert model.falls_back_
    assert model.detection_["all"] > model.detection_["few"] + 0.1
    X, y = spots
    machine = SVC(gamma=2.0).fit(X, y == "bad")
    expected = machine.decision_function(X) - machine.intercept_[0]
    assert_allclose(model.score_samples(X), expected, atol=1e-8)


def test_few_are_used_unless_clearly_worse(data):
    """Within one standard error the shorter sum is preferred."""
    model = fit(data, max_support=5)
    assert not model.falls_back_
    assert set(model.detection_) == {"few", "all"}
    assert len(model.support_vectors_) == 50


def test_the_same_seed_gives_the_same_model(data):
    """Another seed gives another model."""
    first, again = fit(data), fit(data)
    assert_array_equal(first.dual_coef_, again.dual_coef_)
    other = CapacityAwareSVC(CAPACITY, random_state=1).fit(*data)
    assert not np.array_equal(first.support_vectors_, other.support_vectors_)


def test_all_support_vectors_score_as_their_machine_does(data):
    """With all support vectors, the score is the decision function without its intercept."""
    X = StandardScaler().fit_transform(data[0])
    model = CapacityAwareSVC(
        CAPACITY, **PAPER, max_support=10_000, oob_score=True, random_state=0
    ).fit(X, data[1])
    assert np.isfinite(model.score_samples(X)).all()
    machine = SVC(gamma=model.gamma_)
    fitted_on = np.flatnonzero(np.isnan(model.oob_scores_))
    machine.fit(X[fitted_on], data[1][fitted_on] == "bad")
    expected = machine.decision_function(X) - machine.intercept_[0]
    assert_allclose(model.score_samples(X), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie_break": "last"}, "tie_break must be one of"),
        ({"selection": "none"}, "selection must be one of"),
        ({"max_support": 0}, "max_support must be a whole number of at least 1; got 0"),
        ({"max_support": 2.5}, "max_support must be a whole number"),
        ({"gamma": "tiny"}, "gamma must be one of 'scale', 'auto'"),
        ({"gamma": -1}, "gamma must not be negative"),
        ({"n_swaps": 0}, "n_swaps must be a whole number of at least 1"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    """The error names the parameter and what it must be."""
    with pytest.raises(ValueError, match=message):
        fit(data, **options)


def test_two_of_a_class_are_enough(rng):
    """One each to fit on and to choose on; a third allows a comparison."""
    X = rng.normal(size=(30, 2))
    for selection in ("paper", "cross-fit"):
        with pytest.raises(ValueError, match="at least two items of each class"):
            fit((X, np.arange(30) < 1), selection=selection)
    two, three = (fit((X, np.arange(30) < n), n_swaps=1) for n in (2, 3))
    assert not two.falls_back_
    assert not hasattr(two, "detection_")
    assert set(three.detection_) == {"few", "all"}


# --- sums of kernels --------------------------------------------------------------------------


def test_the_sum_is_the_decision_of_a_machine_without_its_intercept(rng):
    """Kernels, support vectors and coefficients are those of scikit-learn's SVC."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) < 20
    machine = SVC(gamma=0.4).fit(X, y)
    sums = kernel_sums(X, machine.support_vectors_, machine.dual_coef_[0], 0.4)
    assert_allclose(sums, machine.decision_function(X) - machine.intercept_[0], atol=1e-10)


def test_many_items_are_summed_in_parts(rng, monkeypatch):
    """Batches give the same sums as all items at once."""
    X = rng.normal(size=(10, 2))
    at_once = kernel_sums(X, X[:3], np.arange(3.0), 1.0)
    monkeypatch.setattr("shortlist.aware._svc._ROWS_AT_A_TIME", 4)
    assert_allclose(kernel_sums(X, X[:3], np.arange(3.0), 1.0), at_once)


def test_terms_add_up_to_the_sum(rng):
    """Each support vector is one row of the terms."""
    X, coefficients = rng.normal(size=(10, 2)), np.arange(3.0)
    terms = kernel_terms(X[:3], coefficients, X, 1.0)
    assert_allclose(terms.sum(axis=0), kernel_sums(X, X[:3], coefficients, 1.0))


def test_the_mean_of_expansions_sums_to_the_mean_of_their_sums(rng):
    """This also holds if they share rows."""
    X = rng.normal(size=(10, 2))
    parts = [Expansion(np.array(rows), rng.normal(size=len(rows))) for rows in ([1, 2, 3], [3, 5])]
    sums = [
        kernel_sums(X, X[part.rows], part.coefficients, 1.0) for part in (*parts, mean_of(parts))
    ]
    assert_allclose(sums[2], (sums[0] + sums[1]) / 2)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_means_what_it_means_to_scikit_learn(gamma, rng):
    """This holds for words and numbers."""
    X = 3 * rng.normal(size=(40, 5))
    assert find_gamma(gamma, X) == pytest.approx(SVC(gamma=gamma).fit(X, X[:, 0] > 0)._gamma)


# --- halves that swap their roles -------------------------------------------------------------


@given(
    n_rare=st.integers(3, 20),
    n_common=st.integers(3, 40),
    n_swaps=st.integers(1, 7),
    leave_out=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_swap_uses_every_row_once(n_rare, n_common, n_swaps, leave_out, seed):
    """Each row is used to fit, to choose, or left out; both halves contain both classes."""
    is_rare = np.random.default_rng(seed).permutation(np.arange(n_rare + n_common) < n_rare)
    swaps = draw_swaps(is_rare, n_swaps, np.random.default_rng(seed), leave_out=leave_out)
    assert len(swaps) == n_swaps
    for swap in swaps:
        (first, second), turned = swap.pairs
        assert turned[0] is second
        assert turned[1] is first
        used = np.concatenate([first, second, swap.left_out])
        assert_array_equal(np.sort(used), np.arange(is_rare.size))
        assert all(set(is_rare[half]) == {True, False} for half in (first, second))
        assert leave_out or not swap.left_out.size


@given(st.integers(3, 7), st.integers(0, 99))
def test_every_row_is_left_out_in_turn(n_swaps, seed):
    """Exactly one swap leaves each row out."""
    rows = np.arange(40)
    swaps = draw_swaps(rows < 10, n_swaps, np.random.default_rng(seed), leave_out=True)
    assert_array_equal(np.sort(np.concatenate([swap.left_out for swap in swaps])), rows)


def test_support_vectors_come_in_the_order_of_the_data(data):
    """The order of the machine is by class, and would decide which of several ties is first."""
    X, y = data
    machine = fit(data, **PAPER, gamma=0.3)._machine(X, y == "bad", np.arange(len(X)))
    assert_array_equal(machine.rows, np.sort(machine.rows))
    whole = SVC(gamma=0.3).fit(X, y == "bad")
    expected = whole.decision_function(X[:50]) - whole.intercept_
    assert_allclose(kernel_sums(X[:50], X[machine.rows], machine.coefficients, 0.3), expected)
