"""Support vectors chosen for a capacity."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from shortlist import Capacity
from shortlist.aware import CapacityAwareSVC

CAPACITY = Capacity.fraction(0.05)


@pytest.fixture(scope="module")
def data():
    """Return 1,200 points, 60 of them rare: a small cloud within a large one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4)) * 2
    X[:60] = rng.normal(size=(60, 4)) + 1
    order = rng.permutation(1200)
    return X[order], np.where(np.arange(1200) < 60, "bad", "good")[order]


def fit(data, **options):
    """Fit with a seed."""
    return CapacityAwareSVC(CAPACITY, random_state=0, **options).fit(*data)


def test_the_score_is_the_sum_over_the_chosen_support_vectors(data):
    """Without an intercept, and in the orientation of the coefficients."""
    model = fit(data, selection="paper", gamma=0.3, max_support=7)
    X, _ = data
    assert_array_equal(model.support_vectors_, X[model.support_path_])
    expected = rbf_kernel(X, model.support_vectors_, gamma=0.3) @ model.dual_coef_
    assert_allclose(model.score_samples(X), expected)


def test_coefficients_are_positive_for_rare_support_vectors(data):
    """Scores rise with suspicion, although the rare label sorts first."""
    model = fit(data, selection="paper")
    assert model.rare_label_ == "bad"
    assert_array_equal(model.dual_coef_ > 0, data[1][model.support_path_] == "bad")


def test_the_detection_path_is_what_the_calibration_half_shows(data):
    """On the paper's procedure the last entry is the detection at the threshold."""
    model = fit(data, selection="paper", tie_break="first")
    sample = model._samples[0]
    found = np.count_nonzero(sample.scores[sample.is_rare] > model.threshold_)
    assert found / sample.is_rare.sum() == pytest.approx(model.detection_path_[-1])


def test_the_variants_are_prefixes_of_one_path(data):
    """Up to the best, or up to the first step without gain."""
    paths = {
        variant: fit(data, selection="paper", variant=variant)
        for variant in ("all", "best-prefix", "stop")
    }
    detection = paths["all"].detection_path_
    for model in paths.values():
        assert_array_equal(model.detection_path_, detection)
    assert len(paths["all"].support_vectors_) == 30
    assert len(paths["best-prefix"].support_vectors_) == np.argmax(detection) + 1
    n_stop = len(paths["stop"].support_vectors_)
    assert (np.diff(detection[:n_stop]) > 0).all()
    assert detection[n_stop] <= detection[n_stop - 1]


def test_cross_fitting_keeps_the_calibration_items_out_of_the_choice(data):
    """No support vector is a calibration item, and each path comes from its own half."""
    model = fit(data, n_swaps=2, max_support=5, fall_back=False)
    assert len(model.support_path_) == len(model.detection_path_) == 4
    assert len(model.support_vectors_) == 20
    assert model.calibration_.n_calibration == 300
    assert not set(model.support_path_[0]) & set(model.support_path_[1])


@pytest.fixture(scope="module")
def spots():
    """Return 1,200 points in a plane, of which 120 stand in twelve spots, and are rare."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-6, 6, size=(1200, 2))
    X[:120] = np.repeat(rng.permutation(36)[:12], 10)[:, np.newaxis] // [6, 1] % 6 * 2.0 - 5
    X[:120] += rng.normal(scale=0.05, size=(120, 2))
    return X, np.where(np.arange(1200) < 120, "bad", "good")


def test_the_whole_machine_is_used_where_few_are_not_enough(spots):
    """One of a path cannot cover twelve spots; a machine on all items to learn from can."""
    options = {"gamma": 2.0, "max_support": 1, "n_swaps": 3}
    model = CapacityAwareSVC(Capacity.fraction(0.1), random_state=0, **options).fit(*spots)
    assert model.falls_back_
    assert model.detection_["all"] > model.detection_["few"] + 0.1
    X, y = spots
    learned_on = np.setdiff1d(np.arange(1200), _calibration_rows(model, X))
    machine = SVC(gamma=2.0).fit(X[learned_on], y[learned_on] == "bad")
    expected = machine.decision_function(X) - machine.intercept_[0]
    assert_allclose(model.score_samples(X), expected, atol=1e-8)


def test_few_are_used_where_nothing_speaks_against_them(data):
    """Within one standard error the shorter sum is preferred."""
    model = fit(data, max_support=5)
    assert not model.falls_back_
    assert set(model.detection_) == {"few", "all"}
    assert len(model.support_vectors_) == 50


@pytest.mark.parametrize("n_swaps", [1, 3])
@pytest.mark.parametrize(("sample", "gamma"), [("data", "scale"), ("spots", 2.0)])
def test_calibration_items_decide_nothing_but_the_threshold(sample, gamma, n_swaps, request):
    """With nonsense in their place, the score is the same: also where it is a whole machine."""
    X, y = request.getfixturevalue(sample)
    options = {"gamma": gamma, "max_support": 1, "n_swaps": n_swaps, "random_state": 0}
    model = CapacityAwareSVC(Capacity.fraction(0.1), **options).fit(X, y)
    assert model.falls_back_ == (sample == "spots")
    nonsense = X.copy()
    nonsense[_calibration_rows(model, X)] = 7.0
    again = CapacityAwareSVC(Capacity.fraction(0.1), **options).fit(nonsense, y)
    assert_array_equal(again.support_vectors_, model.support_vectors_)
    assert_array_equal(again.dual_coef_, model.dual_coef_)
    assert again.gamma_ == model.gamma_
    assert again.detection_ == model.detection_


def test_the_papers_procedure_promises_nothing(data):
    """Its scores were chosen on the items that would have to vouch for them."""
    with pytest.raises(ValueError, match="selection='cross-fit'"):
        fit(data, selection="paper", guarantee="expected")
    assert fit(data, guarantee="expected").calibration_.guarantee == "expected"


def test_the_same_seed_gives_the_same_model(data):
    """And another seed another one."""
    first, again = fit(data), fit(data)
    assert_array_equal(first.dual_coef_, again.dual_coef_)
    other = CapacityAwareSVC(CAPACITY, random_state=1).fit(*data)
    assert not np.array_equal(first.support_vectors_, other.support_vectors_)


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_other_kernels_score_as_their_machine_does(data, kernel):
    """With all support vectors, the score is the decision function without its intercept."""
    X = StandardScaler().fit_transform(data[0])
    model = CapacityAwareSVC(
        CAPACITY, kernel=kernel, selection="paper", max_support=10_000, random_state=0
    ).fit(X, data[1])
    assert np.isfinite(model.score_samples(X)).all()
    machine = SVC(kernel=kernel, gamma=model.gamma_)
    fitted_on = np.setdiff1d(np.arange(1200), _calibration_rows(model, X))
    machine.fit(X[fitted_on], data[1][fitted_on] == "bad")
    expected = machine.decision_function(X) - machine.intercept_[0]
    assert_allclose(model.score_samples(X), expected, atol=1e-8)


def _calibration_rows(model, X):
    """Find the held-out rows by their scores."""
    from shortlist._core.ranking import lift

    return np.flatnonzero(np.isin(lift(model.score_samples(X)), model._samples[0].scores))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "magic"}, "kernel must be one of 'rbf'"),
        ({"variant": "some"}, "variant must be one of 'all'"),
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
    """The complaint says which one, and what would do."""
    with pytest.raises(ValueError, match=message):
        fit(data, **options)


def test_more_than_two_classes_are_refused(rng):
    """With a word on what to do."""
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        fit((rng.normal(size=(30, 2)), np.arange(30) % 3))


def test_cross_fitting_takes_three_of_a_class(rng):
    """To fit, to choose and to calibrate; one more is left out to compare on, if there is one."""
    X = rng.normal(size=(30, 2))
    with pytest.raises(ValueError, match="at least three items of each class"):
        fit((X, np.arange(30) < 2))
    three, four = (fit((X, np.arange(30) < n), n_swaps=1) for n in (3, 4))
    assert not three.falls_back_
    assert not hasattr(three, "detection_")
    assert set(four.detection_) == {"few", "all"}


def test_a_class_of_one_is_refused(rng):
    """It cannot be both learned from and calibrated on."""
    with pytest.raises(ValueError, match="has 1 of 30 items"):
        fit((rng.normal(size=(30, 2)), np.arange(30) == 0))
