"""What a model file remembers of its fit: the model card."""

import numpy as np
import pandas as pd

from shortlist._core.files import to_plain
from shortlist.tables import load_model
from shortlist.tables.columns import Feature
from shortlist.tables.learned_rows import column_profiles
from shortlist.tables.model_file import as_card
from shortlist.tables.schema import TableSchema


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
    assert as_card({"card": to_plain(card)}) == card
    assert card.n_train + card.n_calibration == card.n_rows == 1_500
    assert card.measured_on == "calibration"
    assert card is table_fit.card
    assert card.rules


def test_a_file_remembers_the_card(model_file, table_fit):
    """As it was written."""
    assert load_model(model_file).card == table_fit.model.card
