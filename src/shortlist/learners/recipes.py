"""Ready-made learners: the paper's settings, and settings that detect more. Add a learner here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._core.validation import check_option
from ._ensemble import CapacityEnsembleClassifier
from ._kde import KernelDensityClassifier
from ._kernel_knn import KernelKNeighborsClassifier

#: Presets of :func:`make_learner`.
PRESETS = ("paper", "recommended")


def make_learner(name: str, preset: str = "recommended", *, random_state: Any = None) -> Any:
    """Make an unfitted learner to wrap in a :class:`~shortlist.CapacityClassifier`.

    Parameters
    ----------
    name : {"kde", "knn", "svm", "forest", "network", "boosting", "logistic"}
        The family.
    preset : {"paper", "recommended"}, default="recommended"
        The settings of the paper's study, or settings that detect much on many public tables at
        one, two and three times the prevalence; see `docs/appendix/detection-study.md`. Boosting
        and the logistic model are not in the paper and have no "paper" preset.
    random_state : int, RandomState instance or None, default=None
        Seed of the families that draw random numbers.

    Returns
    -------
    classifier
        A scikit-learn classifier or pipeline. "boosting" is a :class:`CapacityEnsembleClassifier`
        of boosted trees alone, by LightGBM if the extra `boosting` is installed.

    Notes
    -----
    The paper's forest has R's node size 5, which means that nodes of up to five items are not
    split: ``min_samples_split=6``.

    Examples
    --------
    >>> from shortlist.learners import make_learner
    >>> make_learner("forest", "paper").get_params()["min_samples_split"]
    6
    >>> make_learner("knn", "paper")
    KernelKNeighborsClassifier()
    """
    check_option("name", name, FAMILIES)
    check_option("preset", preset, PRESETS)
    if (name, preset) not in _RECIPES:
        raise ValueError(
            f"The paper has no {name!r}; preset='paper' offers "
            f"{', '.join(repr(known) for known, p in _RECIPES if p == 'paper')}. "
            "Use preset='recommended'."
        )
    return _RECIPES[name, preset](random_state)


def _scaled(model: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), model)


def _kde(random_state: Any) -> Any:
    # Densities can only be estimated in few dimensions; these directions separate the classes.
    return Pipeline(
        [
            ("scale", StandardScaler()),
            ("directions", LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")),
            ("densities", KernelDensityClassifier("scott")),
        ]
    )


def _network(random_state: Any) -> Any:
    # Few units and strong decay: with few rare items, larger networks memorise them. Averaging
    # removes the dependence on the initial weights.
    network = MLPClassifier((5,), activation="tanh", solver="lbfgs", alpha=3, max_iter=1_000)
    ten = BaggingClassifier(network, 10, bootstrap=False, random_state=random_state)
    return Pipeline([("scale", StandardScaler()), ("network", ten)])


_RECIPES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("kde", "paper"): lambda seed: KernelDensityClassifier("scott"),
    ("kde", "recommended"): _kde,
    ("knn", "paper"): lambda seed: KernelKNeighborsClassifier(5),
    ("knn", "recommended"): lambda seed: KernelKNeighborsClassifier(50),
    ("svm", "paper"): lambda seed: _scaled(SVC(C=1, gamma=0.1, random_state=seed)),
    # One over the number of features, which is scikit-learn's "scale" after standardising.
    ("svm", "recommended"): lambda seed: _scaled(SVC(C=1, gamma="auto", random_state=seed)),
    ("forest", "paper"): lambda seed: RandomForestClassifier(
        503, min_samples_split=6, random_state=seed
    ),
    ("forest", "recommended"): lambda seed: RandomForestClassifier(
        300, criterion="entropy", min_samples_leaf=3, max_features=0.5, random_state=seed
    ),
    # The paper asks for one hidden layer, and leaves its size open.
    ("network", "paper"): lambda seed: _scaled(
        MLPClassifier((20,), activation="logistic", max_iter=500, random_state=seed)
    ),
    ("network", "recommended"): _network,
    # The member of the ensemble: it chooses between two forms by their log-loss on unseen items.
    ("boosting", "recommended"): lambda seed: CapacityEnsembleClassifier(
        members=("boosting",), random_state=seed
    ),
    ("logistic", "recommended"): lambda seed: _scaled(LogisticRegression(max_iter=1_000)),
}
#: Names of the families of :func:`make_learner`.
FAMILIES = tuple(dict.fromkeys(name for name, _ in _RECIPES))
