"""Which controller a stream gets."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, QuantileTracker
from shortlist.service.stream import StreamSettings


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (StreamSettings(Capacity.count(50), period=86_400.0), BudgetController),
        (StreamSettings(Capacity.count(50, per=1_000)), BudgetController),
        (StreamSettings(Capacity.fraction(0.05)), QuantileTracker),
        (StreamSettings(Capacity.multiple(2)), QuantileTracker),
    ],
    ids=["per day", "per lines", "share", "multiple"],
)
def test_a_number_gets_a_budget_and_a_share_a_tracker(table_fit, settings, kind):
    """The log knows all ids, so that the controller remembers none."""
    controller = settings.controller(table_fit.model)
    assert type(controller) is kind
    assert controller.capacity == settings.capacity
    assert controller.state()["options"]["remember"] == 1


def test_a_number_per_lines_is_never_exceeded(table_fit):
    """Not even by the highest scores: five of each hundred lines, and no sixth."""
    controller = StreamSettings(Capacity.count(5, per=100)).controller(table_fit.model)
    flagged = controller.decide_many(1e6 + np.arange(300.0)).flagged
    assert flagged.reshape(3, 100).sum(axis=1).tolist() == [5, 5, 5]


def test_the_default_is_the_capacity_of_the_model(table_fit):
    """It is what the model was fitted for."""
    own = StreamSettings().controller(table_fit.model)
    assert own.capacity == table_fit.model.classifier.capacity


def test_arrivals_are_guessed_from_the_capacity_of_the_model(table_fit):
    """The model flags one in ten; therefore fifty flags need five hundred cases."""
    controller = StreamSettings(Capacity.count(50), period=60.0).controller(table_fit.model)
    assert controller.options["expected_arrivals"] == 500
    nothing = StreamSettings(Capacity.count(0), period=60.0).controller(table_fit.model)
    assert not nothing.decide_many(np.full(5, 1e6), at=np.zeros(5)).flagged.any()


@pytest.mark.parametrize(
    "settings",
    [
        StreamSettings(capacity=Capacity.count(5)),
        StreamSettings(capacity=Capacity.fraction(0.1), period=60.0),
        StreamSettings(capacity=Capacity.count(5, per=10), period=60.0),
    ],
    ids=["no period", "share of a period", "count of a count"],
)
def test_a_number_and_a_period_belong_together(table_fit, settings):
    """Every other combination raises an error."""
    with pytest.raises(CapacityError, match="belong together"):
        settings.controller(table_fit.model)


def test_settings_say_what_a_stream_is(table_fit):
    """The capacity is in its JSON form; the estimated arrivals are not included."""
    said = StreamSettings(Capacity.count(5), period=60.0).to_json(table_fit.model)
    assert said["capacity"] == {"kind": "count", "value": 5, "per": None}
    assert "expected_arrivals" not in said


def test_probes_belong_to_a_budget(table_fit):
    """A share for probes reaches the controller, and is refused where nobody counts flags."""
    settings = StreamSettings(Capacity.count(50), period=60.0, probe=0.1, probe_key="k")
    assert settings.controller(table_fit.model).has_probes
    said = settings.to_json(table_fit.model)
    assert said["probe"] == 0.1
    assert said["probe_key"] not in (None, "k")
    with pytest.raises(CapacityError, match="--probe"):
        StreamSettings(Capacity.fraction(0.1), probe=0.1).controller(table_fit.model)
    assert "probe" not in StreamSettings().to_json(table_fit.model)
