"""Which controller a stream gets."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.exceptions import CapacityError
from shortlist.online import BudgetController, QuantileTracker
from shortlist.service.stream import _KINDS, CONTROLLERS, StreamSettings, make_controller


def test_what_auto_stands_for(table_fit):
    """A number per period gets a budget, a share a tracker; the default is the model's share."""
    model = table_fit.model
    per_day = StreamSettings(capacity=Capacity.count(50), period=86_400.0)
    assert isinstance(make_controller(model, per_day), BudgetController)
    own = make_controller(model, StreamSettings())
    assert isinstance(own, QuantileTracker)
    assert own.capacity == model.classifier.capacity


def test_arrivals_are_guessed_from_the_capacity_of_the_model(table_fit):
    """The model flags one in ten; therefore fifty flags need five hundred cases."""
    settings = StreamSettings(capacity=Capacity.count(50), period=60.0).resolved(table_fit.model)
    assert settings.expected_arrivals == 500
    nothing = StreamSettings(capacity=Capacity.count(0), period=60.0).resolved(table_fit.model)
    controller = make_controller(table_fit.model, nothing)
    assert not controller.decide_many(np.full(5, 1e6), at=np.zeros(5)).flagged.any()


@pytest.mark.parametrize("name", CONTROLLERS[1:])
def test_every_controller_has_a_name(table_fit, name):
    """Each controller can be made by its name."""
    capacity = Capacity.count(100, per=1_000)
    controller = make_controller(table_fit.model, StreamSettings(name, capacity))
    assert type(controller) is _KINDS[name]
    assert controller.state()["options"]["remember"] == 1


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
        settings.resolved(table_fit.model)


def test_settings_say_what_a_stream_is(table_fit):
    """The capacity is in its JSON form; the estimated arrivals are not included."""
    settings = StreamSettings(capacity=Capacity.count(5), period=60.0).resolved(table_fit.model)
    assert settings.to_json()["capacity"] == {"kind": "count", "value": 5, "per": None}
    assert "expected_arrivals" not in settings.to_json()


def test_probes_belong_to_a_budget(table_fit):
    """A share for probes reaches the controller, and is refused where nobody counts flags."""
    settings = StreamSettings(capacity=Capacity.count(50), period=60.0, probe=0.1, probe_key="k")
    assert make_controller(table_fit.model, settings).has_probes
    said = settings.resolved(table_fit.model).to_json()
    assert said["probe"] == 0.1
    assert said["probe_key"] not in (None, "k")
    with pytest.raises(CapacityError, match="--probe"):
        make_controller(table_fit.model, StreamSettings(probe=0.1))
    assert "probe" not in StreamSettings().to_json()
