"""The picture shows the numbers of the curve, and nothing else."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, CapacityCurveDisplay, capacity_curve


@pytest.fixture
def data(fraud):
    """Return items, labels and a fitted model; close all figures afterwards."""
    X, y = fraud
    yield X, y, make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    plt.close("all")


def test_it_draws_the_curve(data):
    """The line is the detection of the curve, from predictions as from a model."""
    X, y, model = data
    display = CapacityCurveDisplay.from_estimator(model, X, y, max_fraction=0.2)
    curve = capacity_curve(y, model.predict_proba(X)[:, 1], max_fraction=0.2)
    assert_array_equal(display.line_.get_xdata(), curve.fraction)
    assert_array_equal(display.line_.get_ydata(), curve.detection)
    assert display.line_.get_label() == "Pipeline"
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize(("x", "last"), [("fraction", 0.1), ("multiple", 5.0), ("flags", 400)])
def test_the_axis_has_three_units(data, x, last):
    """Share, multiple and number of flags."""
    X, y, model = data
    display = CapacityCurveDisplay.from_estimator(model, X, y, max_fraction=0.1, x=x)
    assert display.line_.get_xdata()[-1] == pytest.approx(last)
    with pytest.raises(ValueError, match="'fraction', 'multiple', 'flags'"):
        display.plot(x="share")


def test_a_capacity_is_marked_with_its_numbers(data):
    """What is found with how many flags."""
    X, y, model = data
    display = CapacityCurveDisplay.from_estimator(
        model, X, y, capacity=Capacity.count(100), marginal=True, despine=True
    )
    (note,) = display.ax_.texts
    row = display.curve.at(Capacity.count(100))
    assert note.get_text() == f"{row['n_found']} found\nwith 100 flags"
    assert "one more flag" in display.marginal_ax_.get_ylabel()
    assert not display.ax_.spines["top"].get_visible()


def test_one_curve_per_fold(data):
    """From cross-validation with kept models and indices."""
    X, y, model = data
    options = {"cv": 3, "return_estimator": True, "return_indices": True}
    results = cross_validate(model, X, y, **options)
    display = CapacityCurveDisplay.from_cv_results(results, X, y, max_fraction=0.3)
    assert [line.get_label() for line in display.line_] == ["Fold 1", "Fold 2", "Fold 3"]
    with pytest.raises(ValueError, match="return_estimator=True"):
        CapacityCurveDisplay.from_cv_results(cross_validate(model, X, y, cv=3), X, y)
    with pytest.raises(ValueError, match="one entry per curve"):
        display.plot(name=["only one"])


def test_it_draws_where_it_is_told(data):
    """On given axes, with given styles, with or without chance."""
    X, y, model = data
    _, ax = plt.subplots()
    display = CapacityCurveDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        name="mine",
        band=False,
        plot_chance_level=False,
        curve_kwargs={"color": "black"},
    )
    assert display.ax_ is ax
    assert display.line_.get_color() == "black"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mine"]
    assert len(ax.collections) == 0
    again = CapacityCurveDisplay.from_predictions(y, np.arange(y.size), chance_level_kw={"lw": 3})
    assert again.ax_ is not ax
