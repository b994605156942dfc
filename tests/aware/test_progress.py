"""Long fits tell scikit-learn's callbacks how far they are."""

import pytest

from shortlist import Capacity
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareSVC,
)

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")
CAPACITY = Capacity.multiple(2)
#: Classifiers, and the tasks that they go through.
TASKS = {
    "svc": (CapacityAwareSVC(CAPACITY, n_swaps=2, max_support=2), ["machine"] * 4),
    "forest": (CapacityAwareForestClassifier(CAPACITY, n_estimators=60), ["trees"] * 4),
    "boosting": (
        CapacityAwareBoostingClassifier(CAPACITY, max_rounds=5, cv=3),
        ["booster"] * (3 + 3 + 1),
    ),
}


class Listener:
    """Writes down the tasks that begin and end."""

    def __init__(self):
        self.begun, self.ended, self.open = [], [], 0

    def setup(self, estimator, context):
        """Begin to listen."""
        self.open += 1

    def on_fit_task_begin(self, estimator, context):
        """Note a task."""
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        """Note its end."""
        self.ended.append(context.task_name)

    def teardown(self, estimator, context):
        """End listening."""
        self.open -= 1


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_told(name, few_rare):
    """Each begins and ends once, within the whole fit."""
    if name == "boosting":
        pytest.importorskip("lightgbm")
    model, tasks = TASKS[name]
    listener = Listener()
    model.set_callbacks(listener).fit(*few_rare)
    model.set_callbacks()
    assert listener.begun == ["fit", *tasks]
    assert listener.ended == [*tasks, "fit"]
    assert listener.open == 0


def test_an_interrupted_fit_ends_its_callbacks(few_rare):
    """They are torn down, and nothing is learned."""

    class Impatient(Listener):
        def on_fit_task_end(self, estimator, context):
            raise KeyboardInterrupt

    listener = Impatient()
    model = CapacityAwareForestClassifier(CAPACITY, n_estimators=60).set_callbacks(listener)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*few_rare)
    assert listener.open == 0
    assert not hasattr(model, "forests_")
