"""Lists and plans with values and efforts, from tables."""

import numpy as np
import pandas as pd
import pytest

from shortlist import Capacity
from shortlist.datasets import make_fraud
from shortlist.exceptions import TableError
from shortlist.tables import WorkColumns, evaluate_table, fit_table, select_rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a folder with a table to learn from and one to choose from, and a model."""
    folder = tmp_path_factory.mktemp("work")
    X, y = make_fraud(n_samples=3_000, prevalence=0.05, random_state=0)
    rng = np.random.default_rng(0)
    table = (
        pd.DataFrame(X)
        .rename(columns=lambda name: f"x{name}")
        .assign(fraud=y, id=[f"case {i}" for i in range(len(y))])
    )
    table["amount"] = rng.lognormal(4, 1, size=len(y)).round(2)
    table["minutes"] = rng.integers(5, 61, size=len(y))
    table[:2_000].drop(columns=["amount", "minutes"]).to_csv(folder / "old.csv", index=False)
    table[2_000:].to_csv(folder / "new.csv", index=False)
    model = fit_table(
        folder / "old.csv", target="fraud", id="id", capacity=Capacity.multiple(1),
        learner="logistic",
    ).model  # fmt: skip
    return folder, model


WORK = WorkColumns("amount", "minutes", 480, None, "minutes")


def test_a_list_spends_its_budget_on_value(tables):
    """The minutes fit, and the notes say what the list is worth and what one more minute brings."""
    folder, model = tables
    found = select_rows(model, folder / "new.csv", work=WORK, keep=["amount", "minutes"])
    minutes = [float(row["minutes"]) for row in found.rows]
    assert 440 < sum(minutes) <= 480
    p = found.columns["probability"]
    amounts = [float(row["amount"]) for row in found.rows]
    worth = [p * a / m for p, a, m in zip(p, amounts, minutes, strict=True)]
    assert worth == sorted(worth, reverse=True)
    assert any("of 480 minutes" in note and "One more minute" in note for note in found.notes)


def test_places_stay_empty_below_their_worth(tables):
    """Cases of less probability are not listed, and the notes say why the list is short."""
    folder, model = tables
    work = WorkColumns(worth=0.5)
    found = select_rows(model, folder / "new.csv", count=500, work=work)
    assert 0 < len(found) < 500
    assert all(row["probability"] >= 0.5 for row in found.rows)
    assert any("no other case reaches worth=0.5" in note for note in found.notes)


def test_other_budgets_in_money(tables):
    """Larger budgets find more, at a lower price."""
    folder, model = tables
    money = evaluate_table(model, folder / "new.csv", work=WORK).money
    values = [point["value"] for point in money.points]
    assert values == sorted(values)
    prices = [point["price"] for point in money.points]
    assert prices == sorted(prices, reverse=True)
    assert all(point["effort"] <= point["budget"] for point in money.points)


@pytest.mark.parametrize(
    ("column", "number", "message"),
    [
        ("minutes", 0, "greater than 0; got 0 in row 4"),
        ("minutes", None, "got a missing value in row 4"),
        ("amount", -5, "at least 0; got -5 in row 4"),
    ],
)
def test_bad_numbers_name_their_row_and_option(tables, tmp_path, column, number, message):
    """The row counts from 1 below the heading."""
    folder, model = tables
    table = pd.read_csv(folder / "new.csv")
    table[column] = table[column].astype(object)
    table.loc[3, column] = number
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(TableError, match=message):
        select_rows(model, tmp_path / "bad.csv", work=WORK)


def test_options_belong_together(tables):
    """Errors are in the words of the command line."""
    folder, model = tables
    with pytest.raises(TableError, match=r"effort=\.\.\. and budget=\.\.\. belong together"):
        select_rows(model, folder / "new.csv", count=5, work=WorkColumns(effort="minutes"))
    with pytest.raises(TableError, match="count=50, or budget=480"):
        select_rows(model, folder / "new.csv", count=5, work=WORK)
    with pytest.raises(TableError, match=r"segment=\.\.\. cannot be combined with value="):
        select_rows(
            model, folder / "new.csv", count={"a": 1}, segment="id", work=WorkColumns("amount")
        )
    with pytest.raises(TableError, match=r"which value=\.\.\. names"):
        select_rows(model, folder / "new.csv", count=5, work=WorkColumns("nothing"))
