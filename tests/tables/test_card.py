"""What a model file remembers of its fit: the model card, and a twin for comparison."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shortlist import Capacity
from shortlist.tables import ModelCard, fit_table, load_model, save_model
from shortlist.tables._twin import smote_twin
from shortlist.tables.profile import column_profiles
from shortlist.tables.schema import Feature, TableRows, TableSchema


def test_profiles_count_every_row_once(rng):
    """Numbers in about equal bins, categories by name, gaps apart."""
    X = pd.DataFrame(
        {
            "amount": np.where(rng.random(1_000) < 0.1, np.nan, rng.normal(size=1_000)),
            "country": rng.choice(["ar", "br", "(missing)"], 1_000),
            "vip": rng.choice([0.0, 1.0], 1_000),
            "empty": np.nan,
        }
    )
    kinds = ["numeric", "categorical", "boolean", "numeric"]
    features = tuple(Feature(name, kind) for name, kind in zip(X, kinds, strict=True))
    profiles = {p.name: p for p in column_profiles(X, TableSchema(features, "fraud", "yes"))}
    for name, profile in profiles.items():
        assert sum(profile.counts) == 1_000
        assert profile.count(X[name]) == profile.counts
    assert len(profiles["amount"].counts) == 11
    assert profiles["amount"].counts[-1] == X["amount"].isna().sum()
    assert max(profiles["amount"].counts[:-1]) - min(profiles["amount"].counts[:-1]) <= 1
    assert set(profiles["country"].bins) == {"ar", "br"}
    assert profiles["vip"].bins == (0.0,)
    assert profiles["empty"].counts == (0, 1_000)


def test_new_values_fall_into_the_outer_bins():
    """Beyond the largest number, and among the other categories."""
    X = pd.DataFrame({"n": np.arange(100.0), "c": ["a"] * 60 + ["b"] * 40})
    schema = TableSchema((Feature("n", "numeric"), Feature("c", "categorical")), "y", "1")
    numbers, categories = column_profiles(X, schema)
    assert numbers.count([1e9, -1e9]) == (1, *[0] * 8, 1, 0)
    assert categories.count(np.array(["z", "b"], dtype=object)) == (0, 1, 1, 0)


def test_the_card_comes_back_from_json(table_fit):
    """As it was, with the sizes of all parts and what was noted."""
    card = table_fit.model.card
    assert ModelCard.from_json(card.to_json()) == card
    assert card.n_train + card.n_calibration == card.n_rows == 1_500
    assert card.measured_on == "calibration"
    assert card.rules == tuple(table_fit.rules)
    assert card.notes == tuple(table_fit.notes)


def test_the_twin_is_read_only_when_asked_for(model_file, table_fit, new_cases):
    """And then predicts as before; it has the learner and the columns of the model."""
    from shortlist.tables.read import open_table

    assert load_model(model_file).twin is None
    loaded = load_model(model_file, with_twin=True)
    with open_table(new_cases) as source:
        X = loaded.schema.read(source).X
    assert_array_equal(loaded.twin.predict(X), table_fit.model.twin.predict(X))
    assert loaded.card == table_fit.model.card
    inside = [type(each.named_steps["learner"]) for each in (loaded.twin, table_fit.model.twin)]
    assert inside[0] is inside[1] is type(loaded.classifier.estimators_[0].named_steps["learner"])


def test_smote_makes_the_learner_flag_more(cases):
    """More rare rows in training raise the scores at the default threshold."""
    options = {"capacity": Capacity.fraction(0.1), "learner": "logistic", "test_share": 0.2}
    by_rule = {rule.rule: rule for rule in fit_table(cases, target="fraud", **options).rules}
    assert by_rule["SMOTE, default threshold"].flagged > by_rule["default threshold"].flagged


@pytest.mark.parametrize("left_out", ["asked for", "not installed"])
def test_models_without_a_twin(cases, tmp_path, monkeypatch, left_out):
    """Are models all the same."""
    if left_out == "not installed":
        monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    options = {"capacity": Capacity.fraction(0.1), "learner": "logistic"}
    smote = left_out == "not installed"
    model = fit_table(cases, target="fraud", smote=smote, **options).model
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m", with_twin=True).twin is None


def test_learners_that_know_the_capacity_have_no_twin(cases, table_fit):
    """They have a threshold of their own, and nothing for SMOTE to move."""
    options = {"capacity": Capacity.fraction(0.1), "learner": "aware-linear"}
    model = fit_table(cases, target="fraud", **options).model
    assert model.twin is None
    assert model.knows_capacity
    assert not table_fit.model.knows_capacity


def test_as_many_rare_rows_as_others_need_no_more(table_fit, rng):
    """Then the twin is trained on the rows as they are."""
    X = pd.DataFrame(
        {
            "amount": rng.normal(size=40),
            "country": "ar",
            "opened": 0.0,
            "vip": 1.0,
        }
    )
    twin = smote_twin(table_fit.model, TableRows(X, None, np.arange(40) < 20))
    assert twin.predict(X).shape == (40,)


def test_bins_are_chosen_from_the_training_rows(cases):
    """Bins that suited the rows of a threshold alone would make other rows look different."""
    options = {"capacity": Capacity.fraction(0.1), "learner": "logistic"}
    card = fit_table(cases, target="fraud", folds=1, **options).model.card
    profile = {p.name: p for p in card.profiles}["amount"]
    frame = pd.read_csv(cases)
    assert set(profile.bins) <= set(frame["amount"])
    assert sum(profile.counts) == card.n_calibration == len(frame) // 4


def test_bins_of_other_rows_count_these():
    """A category that the other rows lack is counted among the others."""
    schema = TableSchema((Feature("c", "categorical"),), "y", "1")
    rows, others = pd.DataFrame({"c": ["a", "b"]}), pd.DataFrame({"c": ["a"]})
    (profile,) = column_profiles(rows, schema, bins_from=others)
    assert (profile.bins, profile.counts) == (("a",), (1, 1, 0))
