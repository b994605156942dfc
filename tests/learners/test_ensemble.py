"""An ensemble of different models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier, _ensemble, members
from shortlist.learners._fitting import fit_line, form_shares, greedy_weights
from shortlist.learners.members import (
    FORMS,
    MEMBERS,
    Size,
    rows_for,
    watching_members,
    weights_for,
)
from shortlist.metrics import detection_at_capacity

_WEIGHTS = "Trees draw bootstrap samples: a weight of two is not the same random draw as two rows."
FEW = ("forest", "logistic")


@parametrize_with_checks(
    [CapacityEnsembleClassifier(members=FEW, size="quick", random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
    },
)
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    """It passes scikit-learn's own checks."""
    check(estimator)


@pytest.fixture(scope="module")
def mixed():
    """Return a frame with texts, gaps and truth values, and labels that depend on all of them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "amount": rng.exponential(100, 600),
            "town": rng.choice(["a", "b", "c"], 600),
            "known": rng.random(600) < 0.5,
        }
    )
    odds = X["amount"] / 100 + 2 * (X["town"] == "c") + X["known"] + rng.normal(size=600)
    y = np.where(odds > np.quantile(odds, 0.9), "rare", "common")
    X.loc[::9, "amount"] = np.nan
    X.loc[::11, "town"] = None
    return X, y


def quick(**options):
    """Make a small ensemble with a fixed seed."""
    return CapacityEnsembleClassifier(size="quick", **{"random_state": 0, **options})


def log_odds(model, name, X):
    """Return the weighted log-odds of each form of a member, written out."""
    view = model.columns_[model.views_[name]].transform(X)
    parts = []
    for form, (member,) in model.members_[name].items():
        n_trees = member.roots.size if name == "forest" else 10_000
        shares = member.predict_proba(view)[:, 1]
        odds = (n_trees * shares + 0.5) / (n_trees * (1 - shares) + 0.5)
        parts.append(model.weights_[name][form] * np.log(odds))
    return parts


def test_frames_may_have_texts_gaps_and_unknown_categories(mixed):
    """Each member gets the columns in its own form."""
    X, y = mixed
    model = quick().fit(X[:400], y[:400])
    assert list(model.members_) == list(MEMBERS)
    new = X[400:].assign(town="nowhere", amount=np.nan)
    assert np.isfinite(model.decision_function(new)).all()
    found = detection_at_capacity(
        y[400:] == "rare", model.predict_proba(X[400:])[:, 1], Capacity.multiple(2)
    )
    assert found > 0.5


def test_the_score_is_the_weighted_mean_of_the_log_odds_of_its_members(mixed):
    """And probabilities follow from it."""
    X, y = mixed
    model = quick(members=FEW).fit(X, y)
    score = model.decision_function(X)
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score)))
    assert model.weights_ == {name: {"flexible": 0.5} for name in FEW}
    assert_allclose(score, sum(part for name in FEW for part in log_odds(model, name, X)))


def test_sparse_and_dense_rows_are_scored_alike():
    """Numbers in either form, with gaps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * (rng.random((300, 5)) < 0.4)
    y = (X[:, 0] + rng.normal(size=300) > 1).astype(int)
    dense, thin = (quick().fit(kind(X), y) for kind in (np.asarray, sparse.csr_array))
    close = dense.decision_function(X) - thin.decision_function(sparse.csr_array(X))
    assert np.corrcoef(dense.decision_function(X), thin.decision_function(X))[0, 1] > 0.99
    assert np.abs(close).mean() < 0.2


def test_the_same_seed_gives_the_same_scores(mixed):
    """Another seed, others."""
    X, y = mixed
    first, again, other = (
        quick(members=("boosting", "forest", "network"), random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    )
    assert_array_equal(first.decision_function(X), again.decision_function(X))
    assert (first.decision_function(X) != other.decision_function(X)).any()


def test_an_interrupted_fit_resumes(mixed, tmp_path, monkeypatch):
    """Members that were finished are not fitted again."""
    X, y = mixed
    whole = quick(members=FEW).fit(X, y)
    fitted = []
    with watching_members(lambda *step: fitted.append(step)):
        quick(members=FEW, memory=str(tmp_path)).fit(X, y)
    assert fitted == [("forest", 20 * 600 * np.log(600)), ("logistic", 600)]

    def refuse(*args):
        raise AssertionError("was fitted again")

    monkeypatch.setattr(members.RandomForestClassifier, "fit", refuse)
    resumed = quick(members=FEW, memory=str(tmp_path)).fit(X, y)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_without_lightgbm_scikit_learn_boosts(mixed, monkeypatch):
    """And nothing else changes."""
    X, y = mixed
    monkeypatch.setattr(members, "has_lightgbm", lambda: False)
    model = quick(members=("boosting",)).fit(X, y)
    ((boosting,),) = model.members_["boosting"].values()
    assert type(boosting).__name__ == "HistGradientBoostingClassifier"
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("capacity", [None, Capacity.multiple(1)])
def test_members_that_detect_little_move_the_ranking_less(capacity):
    """One column decides, by a rule that misleads a straight line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 3))
    y = (X[:, 0] > 1.9) | (np.abs(X[:, 0]) < 0.05) | (rng.random(1_500) < 0.01)
    model = CapacityEnsembleClassifier(capacity, members=FEW, random_state=0).fit(X, y)
    moves = {name: sum(log_odds(model, name, X)).std() for name in FEW}
    assert moves["forest"] > 1.5 * moves["logistic"]
    assert_allclose(sum(sum(model.weights_[name].values()) for name in FEW), 1)


@pytest.mark.parametrize("size", ["quick", "default"])
def test_noisy_tables_get_smooth_members(size):
    """Eighty columns, most of them noise: unseen rows prefer large leaves and penalties."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 80))
    noisy = X[:, :40].sum(axis=1) / 6 + rng.normal(size=400) > 1.9
    model = CapacityEnsembleClassifier(members=FEW, size=size, random_state=0)
    model.fit(X, noisy)
    assert max(model.weights_["logistic"], key=model.weights_["logistic"].get) == "smooth"
    assert "smooth" in model.members_["forest"]
    clear = X[:, 0] > 1.2
    assert list(model.fit(X[:, :2], clear).members_["logistic"]) == ["flexible"]


def test_both_forms_take_part_in_doubt():
    """The one that explains unseen rows better has the larger share; a clear loser has none."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=2_000) - 2
    is_rare = rng.random(2_000) < 1 / (1 + np.exp(-log_odds))
    alike = log_odds + rng.normal(scale=0.1, size=(2, 2_000))
    lines = {form: fit_line(scores, is_rare) for form, scores in zip(FORMS, alike, strict=True)}
    shares = form_shares(lines)
    assert list(shares) == list(FORMS)
    assert_allclose(sum(shares.values()), 1)
    noise = fit_line(rng.normal(size=2_000), is_rare)
    assert form_shares({"flexible": noise, "smooth": lines["smooth"]}) == {"smooth": 1.0}
    assert form_shares({"flexible": lines["flexible"], "smooth": noise}) == {"flexible": 1.0}


def test_a_member_with_two_forms_has_one_score():
    """Its forms are averaged by their weights, and all members make up the score."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 6))
    y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + rng.normal(size=600) > 2
    model = CapacityEnsembleClassifier(members=FEW, random_state=0).fit(X, y)
    assert any(len(forms) == 2 for forms in model.members_.values())
    parts = [part for name in FEW for part in log_odds(model, name, X)]
    assert_allclose(model.decision_function(X), sum(parts))


def test_overconfident_members_do_not_dominate_the_others():
    """The slope of an overconfident member scales its log-odds down."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=2_000) - 2
    is_rare = rng.random(2_000) < 1 / (1 + np.exp(-log_odds))
    honest, loud = fit_line(log_odds, is_rare), fit_line(5 * log_odds, is_rare)
    assert_allclose(honest.slope, 1, atol=0.15)
    assert_allclose(loud.slope, honest.slope / 5, atol=0.01)
    assert fit_line(-log_odds, is_rare).slope == 0
    blurred = fit_line(log_odds + rng.normal(size=2_000), is_rare)
    assert honest.gain_over(blurred) > 2
    assert honest.gain_over(blurred) == -blurred.gain_over(honest)
    assert honest.gain_over(honest) == 0


def test_few_rare_rows_hardly_move_the_weights():
    """Ten rare rows say little, however clearly they say it."""
    is_rare = np.arange(200) < 10
    rng = np.random.default_rng(0)
    scores = {"good": 3.0 * is_rare + rng.normal(size=200), "bad": rng.normal(size=200)}
    assert greedy_weights(scores, is_rare, 10)["good"] < 0.8


def test_long_tables_hold_rows_out_for_the_weights(monkeypatch):
    """Members are then fitted once, without these rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = X[:, 0] + rng.normal(size=2_000) > 2.2
    monkeypatch.setattr(_ensemble, "LONG", 1_000)
    monkeypatch.setattr("shortlist.learners._fitting._HELD_OUT", 800)
    fit, n_rows = members.RandomForestClassifier.fit, []
    monkeypatch.setattr(
        members.RandomForestClassifier,
        "fit",
        lambda self, X, y, **options: n_rows.append(len(X)) or fit(self, X, y, **options),
    )
    model = quick(capacity=Capacity.multiple(2), members=FEW).fit(X, y)
    assert model.weights_["logistic"]["flexible"] > 0.5
    assert n_rows == [1_200]


def test_classes_of_a_sample_keep_their_weight():
    """A network of a long table sees all rare rows, and common ones for several."""
    rng = np.random.default_rng(0)
    codes = (np.arange(1_000) < 50).astype(np.intp)
    size = Size(1, 1, 1, 100, 200, False)
    rows = rows_for(MEMBERS["network"], size, codes, rng)
    assert rows.size == 200
    assert codes[rows].sum() == 50
    weights = weights_for(rows, codes, None)
    assert_allclose(np.bincount(codes[rows], weights), [950, 50])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"members": ()}, "members must be a tuple"),
        ({"members": "forest"}, "members must be a tuple"),
        ({"members": ("oracle",)}, "members must be one of 'boosting'"),
        ({"size": "huge"}, "size must be one of 'quick'"),
    ],
)
def test_wrong_options_are_named(mixed, options, complaint):
    """With what there is instead."""
    with pytest.raises((ValueError, TypeError), match=complaint):
        CapacityEnsembleClassifier(**options).fit(*mixed)


def test_the_rare_label_may_be_the_first(mixed):
    """Scores and probabilities belong to the second class, whichever is rare."""
    X, y = mixed
    model = quick(members=FEW, rare_label="rare").fit(X, y)
    turned = quick(members=FEW, rare_label="a").fit(X, np.where(y == "rare", "a", "b"))
    assert_allclose(turned.decision_function(X), -model.decision_function(X), rtol=1e-6)
    assert_allclose(turned.predict_proba(X), model.predict_proba(X)[:, ::-1], rtol=1e-6)


def test_more_than_two_classes_are_refused(mixed):
    """One class is told from all others."""
    X, y = mixed
    with pytest.raises(ValueError, match="Pass y == rare_label"):
        quick().fit(X, np.where(np.arange(y.size) % 9 == 0, "third", y))


def test_dates_are_not_numbers():
    """They are refused with what to do."""
    X = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=20), "n": range(20)})
    with pytest.raises(ValueError, match="'day' has dates"):
        quick().fit(X, np.arange(20) % 2)
