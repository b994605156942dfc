"""Estimators in files: the types that such files may hold, and how they are read safely."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib

from .._core.extras import load_skops
from ..exceptions import ModelFileError

# Where estimators and what they hold are defined.
_MODULES = (
    "_core",
    "assignment",
    "aware",
    "capacity",
    "classifier",
    "learners",
    "learners.trained",
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
_PICKLES = (".joblib", ".pkl", ".pickle")


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
    >>> from shortlist.models import trusted_types
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


# --- estimators of shortlist ---------------------------------------------------------------------


def dump_estimator(estimator: Any) -> bytes:
    """Return an estimator in the format of skops."""
    return load_skops().dumps(estimator)


def load_estimator(payload: bytes, name: str, *, trust: bool = False) -> Any:
    """Read what skops wrote; other types than the trusted ones are only constructed on demand."""
    skops, trusted = load_skops(), trusted_types()
    try:
        foreign = sorted(set(skops.get_untrusted_types(data=payload)) - set(trusted))
        if foreign and not trust:
            raise ModelFileError(
                f"{name} was not loaded, because it contains types that a model does not need and "
                f"that may execute code ({', '.join(foreign[:3])}). Only load files that you made "
                "yourself; a model of your own is then read with trust=True."
            )
        return skops.loads(payload, trusted=[*trusted, *foreign])
    except ModelFileError:
        raise
    except Exception as error:  # a damaged payload can raise any error inside skops
        raise ModelFileError(
            f"{name} is damaged, or was made with other versions: {type(error).__name__} in its "
            "model."
        ) from None


# --- classifiers of the user's own ---------------------------------------------------------------


def load_own_model(path: Path, *, trust: bool = False) -> Any:
    """Read a classifier of the user's own, trained or not, from a file of skops or joblib.

    Files of joblib and pickle can execute any code when they are read, and are refused unless they
    are trusted. A file of skops is refused if it contains types that skops does not know.
    """
    extension = path.suffix.lower()
    if extension not in (".skops", *_PICKLES):
        raise ModelFileError(
            f"{path} has no known extension of a model. Use .skops (skops.io.dump), or .joblib "
            "(joblib.dump)."
        )
    if not path.is_file():
        raise ModelFileError(f"There is no model file {path}. Check the path.")
    if extension == ".skops":
        model = load_estimator(path.read_bytes(), str(path), trust=trust)
    else:
        model = _read_pickle(path, trust)
    _check_classifier(model, path)
    _check_can_be_kept(model, path)
    return model


def _read_pickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise ModelFileError(
            f"{path} was not loaded: a file of joblib or pickle can execute any code when it is "
            "read. If you made it yourself, use trust=True; or save the model with "
            "skops.io.dump to a .skops file."
        )
    try:
        return joblib.load(path)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # what reading a damaged or foreign file raises is not known
        raise ModelFileError(
            f"{path} cannot be read: {type(error).__name__}: {error}. Was it made with other "
            "versions, or with code that is not installed here?"
        ) from None


def _check_classifier(model: Any, path: Path) -> None:
    scores = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    if not (hasattr(model, "fit") and hasattr(model, "predict") and scores):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}. A classifier of scikit-learn is needed, with "
            "predict_proba or decision_function."
        )


def _check_can_be_kept(model: Any, path: Path) -> None:
    """Raise an error for a model that a model file could not hold without trusting it again."""
    try:
        kept = load_skops().get_untrusted_types(data=dump_estimator(model))
        problem = ", ".join(sorted(set(kept) - set(trusted_types()))[:3])
    except Exception as error:  # a type that skops cannot write
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise ModelFileError(
            f"The model in {path} cannot be kept in a model file of shortlist, which holds only "
            f"types that are safe to read ({problem}). Use a model of scikit-learn or LightGBM, or "
            "CapacityClassifier in Python."
        )
