"""Two labels that are equally rare: either may be meant."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareForestClassifier

CAPACITY = Capacity.fraction(0.1)
CLASSIFIERS = [
    CapacityClassifier(LogisticRegression(), capacity=CAPACITY),
    CapacityAwareForestClassifier(CAPACITY, n_estimators=4),
]


def balanced(n_items):
    """Return items of two classes, as many of each."""
    y = np.tile([0, 1], n_items // 2)
    return y[:, np.newaxis] + np.random.default_rng(0).normal(size=(n_items, 2)), y


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_a_tie_for_the_rarest_label_is_an_error(classifier):
    """The error names both labels, and the parameter that settles it."""
    X, y = balanced(302)
    with pytest.raises(ValueError, match=r"0 and 1 are equally rare.*rare_label="):
        classifier.fit(X, y)
    with pytest.raises(ValueError, match=r"'no' and 'yes' are equally rare.*rare_label="):
        classifier.fit(X[:32], np.array(["no", "yes"])[y[:32]])
    named = classifier.set_params(rare_label=0).fit(X, y)
    assert named.rare_label_ == 0
    classifier.set_params(rare_label=None)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB", "ignore:.*out-of-bag")
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_a_tie_in_a_small_sample_is_a_warning(classifier):
    """scikit-learn's checks fit such samples; the warning names the label that is taken."""
    with pytest.warns(UserWarning, match="1 is taken"):
        assert classifier.fit(*balanced(300)).rare_label_ == 1
