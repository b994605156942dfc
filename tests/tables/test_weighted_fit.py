"""Models of reviewed cases: rows count by how likely they were reviewed, and set no threshold."""

import numpy as np
import pandas as pd
import pytest

from made_cases import make_cases
from shortlist import Capacity
from shortlist.exceptions import TableError
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.tables import fit_table

OPTIONS = {"target": "fraud", "id": "case", "capacity": Capacity.fraction(0.1), "size": "quick"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with reviewed cases, most of them of high amounts, and with recent ones."""
    folder = tmp_path_factory.mktemp("reviewed")
    cases = make_cases(3_000, seed=5)
    by_score = (cases["amount"].rank(ascending=False) <= 240).to_numpy()
    is_probe = ~by_score & (np.random.default_rng(1).random(3_000) < 0.04)
    cases["score"], cases["selected_by"] = cases["amount"], np.where(by_score, "score", "probe")
    cases["inclusion"] = np.where(by_score, 1, 0.04)
    cases[by_score | is_probe].to_csv(folder / "reviewed.csv", index=False)
    make_cases(2_000, seed=6).to_csv(folder / "recent.csv", index=False)
    make_cases(4_000, seed=7).to_csv(folder / "later.csv", index=False)
    return folder


def fitted(folder, **options):
    """Fit a model to the reviewed cases."""
    known = {"weight": "inclusion", "unlabelled": folder / "recent.csv"}
    return fit_table(folder / "reviewed.csv", **{**OPTIONS, **known, **options})


def test_weights_reach_every_model_and_no_threshold(folder, monkeypatch):
    """One over the root of the probability; the flags of later cases keep the capacity."""
    seen, fit = [], CapacityEnsembleClassifier.fit

    def recorded(self, X, y, sample_weight=None):
        seen.append((set(X), np.unique(sample_weight).tolist()))
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(CapacityEnsembleClassifier, "fit", recorded)
    result = fitted(folder, folds=2)
    assert seen == [({"amount", "country", "opened", "vip"}, [1.0, 5.0])] * 3
    assert any("'score', 'selected_by'" in note for note in result.card.notes)
    model = result.model
    with model.schema.open(folder / "later.csv") as source:
        rows = model.schema.read(source)
    # Four standard errors: of 0.1 in 4,000 rows, and of the threshold from 2,000.
    error = 4 * np.sqrt(0.09 / 4_000 + 0.09 / 2_000)
    assert abs(model.decide(rows).flagged.mean() - 0.1) < error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unlabelled": None}, "set no threshold. Name recent cases as they come with unlabelled="),
        ({"capacity": Capacity.multiple(2)}, "share of rare ones is not that of all"),
        ({"learner": "forest"}, "learner='forest' takes no weights"),
        ({"weight": "amount"}, "must hold probabilities above 0|missing value"),
        ({"weight": "country"}, "missing value"),
        ({"weight": "selected_by"}, "must hold probabilities above 0, and at most 1"),
        ({"weight": "none"}, "is not a column of features"),
    ],
)
def test_what_reviewed_rows_cannot_do_is_refused(folder, options, words):
    """Before any model is fitted, with what to do."""
    with pytest.raises(TableError, match=words):
        fitted(folder, **options)


@pytest.mark.parametrize("bad", [0, -0.1, 1.5])
def test_probabilities_lie_above_0_and_up_to_1(folder, tmp_path, bad):
    """A row that could not be reviewed was not."""
    frame = pd.read_csv(folder / "reviewed.csv")
    frame.loc[3, "inclusion"] = bad
    frame.to_csv(tmp_path / "reviewed.csv", index=False)
    (tmp_path / "recent.csv").write_bytes((folder / "recent.csv").read_bytes())
    with pytest.raises(TableError, match="inclusion"):
        fitted(tmp_path)
