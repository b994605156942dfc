"""The types that a saved model may contain."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

__all__ = ["trusted_types"]

# Where estimators and what they hold are defined.
_MODULES = (
    "_core",
    "_wrapping",
    "assignment",
    "aware",
    "capacity",
    "classifier",
    "learners",
    "multiclass",
    "thresholds",
    "worth",
)
# Types of other packages that learners hold and that skops does not trust by default.
_FOREIGN = (
    "collections.OrderedDict",
    "fractions.Fraction",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)


def trusted_types() -> list[str]:
    """Return the names of all types that an estimator of shortlist may contain.

    skops refuses to load types that it does not know. Pass this list to ``skops.io.load`` as
    `trusted`, or to ``mlflow.sklearn.save_model`` as `skops_trusted_types`. None of these types
    executes code when it is loaded.

    Returns
    -------
    list of str
        Names with their modules, besides the types that skops trusts by default.

    Examples
    --------
    >>> from shortlist.persistence import trusted_types
    >>> "shortlist.capacity.Capacity" in trusted_types()
    True
    """
    own = {
        f"{cls.__module__}.{cls.__qualname__}"
        for name in _MODULES
        for module in _loaded(import_module(f"shortlist.{name}").__name__)
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__ == module.__name__
    }
    return sorted({*own, *_FOREIGN})


def _loaded(name: str) -> list[ModuleType]:
    """Return a module and its loaded submodules."""
    return [
        module
        for loaded, module in list(sys.modules.items())
        if loaded == name or loaded.startswith(f"{name}.")
    ]
