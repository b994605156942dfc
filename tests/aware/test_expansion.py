"""Sums of kernels around some rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from shortlist.aware._expansion import Expansion, Kernel, find_gamma, mean_of


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "sigmoid"])
def test_the_sum_is_the_decision_of_a_machine_without_its_intercept(name, rng):
    """With its support vectors and coefficients, and each kernel as scikit-learn's SVC has it."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) < 20
    machine = SVC(kernel=name, gamma=0.4).fit(X, y)
    sums = Kernel(name, 0.4).sums(X, machine.support_vectors_, machine.dual_coef_[0])
    assert_allclose(sums, machine.decision_function(X) - machine.intercept_[0], atol=1e-10)


def test_many_items_are_summed_in_parts(rng, monkeypatch):
    """As they would be at once."""
    kernel, X = Kernel("rbf", 1.0), rng.normal(size=(10, 2))
    at_once = kernel.sums(X, X[:3], np.arange(3.0))
    monkeypatch.setattr("shortlist.aware._expansion._CHUNK", 4)
    assert_allclose(kernel.sums(X, X[:3], np.arange(3.0)), at_once)


def test_terms_add_up_to_the_sum(rng):
    """One row for each vector."""
    kernel, X, coefficients = Kernel("rbf", 1.0), rng.normal(size=(10, 2)), np.arange(3.0)
    terms = kernel.terms(X[:3], coefficients, X)
    assert_allclose(terms.sum(axis=0), kernel.sums(X, X[:3], coefficients))


def test_the_mean_of_expansions_sums_to_the_mean_of_their_sums(rng):
    """Also where they share rows."""
    kernel, X = Kernel("rbf", 1.0), rng.normal(size=(10, 2))
    parts = [Expansion(np.array(rows), rng.normal(size=len(rows))) for rows in ([1, 2, 3], [3, 5])]
    sums = [kernel.sums(X, X[part.rows], part.coefficients) for part in (*parts, mean_of(parts))]
    assert_allclose(sums[2], (sums[0] + sums[1]) / 2)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_means_what_it_means_to_scikit_learn(gamma, rng):
    """Words and numbers."""
    X = 3 * rng.normal(size=(40, 5))
    assert find_gamma(gamma, X) == pytest.approx(SVC(gamma=gamma).fit(X, X[:, 0] > 0)._gamma)
