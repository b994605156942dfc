"""The picture shows the numbers of the curve, and nothing else."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
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
    curve = capacity_curve(y, model.predict_proba(X)[:, 1])
    assert_array_equal(display.line_.get_xdata(), curve.fraction)
    assert_array_equal(display.line_.get_ydata(), curve.detection)
    assert display.line_.get_label() == "Pipeline"
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize(("x", "last"), [("fraction", 0.1), ("multiple", 5.0), ("flags", 400)])
def test_the_axis_has_three_units(data, x, last):
    """Share, multiple and number of flags."""
    X, y, model = data
    display = CapacityCurveDisplay.from_estimator(model, X, y, max_fraction=0.1, x=x)
    assert display.ax_.get_xlim() == pytest.approx((0, last))
    with pytest.raises(ValueError, match="'fraction', 'multiple', 'flags'"):
        display.plot(x="share")


def test_a_capacity_is_marked_with_its_numbers(data):
    """What is found with how many flags."""
    X, y, model = data
    display = CapacityCurveDisplay.from_estimator(
        model, X, y, capacity=Capacity.count(100), marginal=True
    )
    (note,) = display.ax_.texts
    row = display.curve.at(Capacity.count(100))
    assert note.get_text() == f"{row['n_found']} found\nwith 100 flags"
    assert "one more flag" in display.marginal_ax_.get_ylabel()


def test_displays_share_axes(data):
    """Each adds its curve; what they have in common is in the legend once."""
    X, y, model = data
    first = CapacityCurveDisplay.from_estimator(model, X[:2_000], y[:2_000], name="one")
    CapacityCurveDisplay.from_estimator(model, X[2_000:], y[2_000:], name="two", ax=first.ax_)
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert labels == ["one", "95 % interval at each capacity", "At random", "two"]


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
    again = CapacityCurveDisplay.from_predictions(y, np.arange(y.size))
    assert again.ax_ is not ax
