"""Progress and interruption of long fits."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from shortlist import Capacity
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareNetworkClassifier,
    CapacityAwareSVC,
)

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has them first")
CAPACITY = Capacity.fraction(0.1)
MODELS = {
    "svc": CapacityAwareSVC(CAPACITY, max_support=3, n_swaps=2, random_state=0),
    "linear": CapacityAwareLinearClassifier(CAPACITY, random_state=0),
    "network": CapacityAwareNetworkClassifier(CAPACITY, n_members=1, max_iter=5, random_state=0),
    "forest": CapacityAwareForestClassifier(CAPACITY, n_estimators=300, random_state=0),
    "boosting": CapacityAwareBoostingClassifier(CAPACITY, max_rounds=10, random_state=0),
}
EXTRAS = {"network": "torch", "boosting": "lightgbm"}


class Listener:
    """A callback that counts steps, and can stop or interrupt the fit after some of them."""

    def __init__(self, *, stop_at=None, interrupt_at=None):
        self.stop_at, self.interrupt_at = stop_at, interrupt_at
        self.n_steps, self.announced, self.ended = 0, None, False

    def setup(self, estimator, context):
        """Hear how many steps there will be at most."""
        self.announced = context.max_subtasks

    def teardown(self, estimator, context):
        """Hear that it is over, however it ended."""
        self.ended = True

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context):
        """Count a step."""
        if context.task_name == "fit":
            return False
        self.n_steps += 1
        if self.n_steps == self.interrupt_at:
            raise KeyboardInterrupt
        return self.n_steps == self.stop_at


@pytest.fixture(params=MODELS)
def model(request):
    """Return each kind of model, unfitted."""
    if request.param in EXTRAS:
        pytest.importorskip(EXTRAS[request.param])
    return MODELS[request.param]


@pytest.fixture(scope="module")
def data():
    """Return 400 items, a tenth of them rare and shifted."""
    rng = np.random.default_rng(0)
    y = np.arange(400) < 40
    return rng.normal(size=(400, 3)) + y[:, np.newaxis], y


def listened(model, listener, data):
    """Fit a copy with a callback."""
    from sklearn.base import clone

    return clone(model).set_callbacks(listener).fit(*data)


def test_each_step_is_reported(model, data):
    """There are no more steps than announced, and the callback changes nothing."""
    listener = Listener()
    heard = listened(model, listener, data)
    assert 0 < listener.n_steps <= listener.announced
    assert listener.ended
    assert heard.offset_ == model.fit(*data).offset_


def test_a_listener_may_end_the_fit(model, data):
    """What was learned so far is kept."""
    listener = Listener(stop_at=2)
    heard = listened(model, listener, data)
    assert listener.n_steps == 2
    assert np.mean(heard.score_samples(data[0]) > heard.offset_) <= 0.1


def test_an_interrupted_fit_leaves_an_unfitted_model(model, data):
    """This also holds if it had been fitted before."""
    from sklearn.base import clone

    fitted = clone(model).fit(*data).set_callbacks(Listener(interrupt_at=1))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(*data)
    with pytest.raises(NotFittedError):
        fitted.predict(data[0])
