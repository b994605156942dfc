"""Estimators in files: the types that such files may hold, and how they are read safely."""

from __future__ import annotations

import functools
import inspect
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import joblib
import numpy as np

from .._core.extras import load_extra
from .._core.trees import histogram_tree, is_sound
from ..exceptions import ModelFileError
from ..learners.packed_forest import PackedForest

# Where estimators and what they hold are defined.
_MODULES = (
    *("_core.folds", "_core.ids", "_core.intervals", "_core.labels"),
    *("_core.probing", "_core.ranking", "_core.scoring", "_core.work"),
    *("assignment", "aware", "capacity", "classifier"),
    *("learners", "learners.trained", "multiclass", "thresholds", "worth"),
)
# Types of other packages that learners hold and that skops does not trust by default.
_FOREIGN = (
    "builtins.frozenset",
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
# An archive may unpack to so many bytes, or to so many times its own size. Of the models that were
# looked at, none had more than 40 times.
_MOST_BYTES, _MOST_TIMES = 256 << 20, 50


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
    for name in _MODULES:
        import_module(f"shortlist.{name}")
    return _trusted_so_far()


def _trusted_so_far() -> list[str]:
    """Return the names of trusted types, of our own as far as their modules are imported."""
    own = {
        f"{cls.__module__}.{cls.__qualname__}"
        for loaded, module in list(sys.modules.items())
        if loaded.startswith(tuple(f"shortlist.{name}" for name in _MODULES))
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__ == loaded
    }
    return sorted({*own, *_FOREIGN})


# Few models need modules that are not imported yet, and fewer any estimator of scikit-learn.
_FEW_TO_ALL = ((_trusted_so_far, False), (trusted_types, False), (trusted_types, True))


# --- what is not read ----------------------------------------------------------------------------


def check_unpacked(archive: zipfile.ZipFile, size: int, name: str) -> None:
    """Raise an error for an archive that unpacks to more than a model needs, before it does."""
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > max(_MOST_BYTES, _MOST_TIMES * size):
        raise ModelFileError(
            f"{name} was not loaded: {size:,} bytes of it unpack to {unpacked:,}, which no model "
            f"needs. At most {_MOST_TIMES} times the size, or {_MOST_BYTES:,} bytes, are unpacked."
        )


def _check_payload(payload: bytes, name: str) -> None:
    """Check an archive of skops, and the archives of sparse matrices in it."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        check_unpacked(archive, len(payload), name)
        for entry in archive.namelist():
            if entry.endswith(".npz"):
                _check_payload(archive.read(entry), name)


def _check_trees(estimator: Any, name: str, *, trust: bool) -> None:
    """Raise an error for trees that would lead compiled code out of their arrays."""
    for each in _parts(estimator):
        n_features = getattr(each, "n_features_in_", 0)
        tree: Any = getattr(each, "tree_", None)
        sound = not hasattr(tree, "children_left") or (
            tree.n_features == n_features
            and is_sound(tree.children_left, tree.children_right, tree.feature, n_features)
        )
        for grown in np.ravel(getattr(each, "_predictors", [])):
            sound = sound and is_sound(*histogram_tree(grown.nodes)[:3], n_features)
            # Sets of categories are not checked; a model that has them is only read if trusted.
            sound = sound and (trust or not grown.nodes["is_categorical"].any())
        sound = sound and (not isinstance(each, PackedForest) or each.is_sound)
        sound = sound and (type(each).__name__ != "KDTree" or _is_sound_search(each))
        if not sound:
            raise ModelFileError(
                f"{name} is damaged: a tree of its model leads nowhere. Fit the model again."
            )


def _is_sound_search(tree: Any) -> bool:
    """Whether a tree of neighbours only leads to items, and to parts of itself, that exist."""
    items, order, nodes, bounds, _, _, n_nodes = tree.__getstate__()[:7]
    places = np.concatenate([order, nodes["idx_start"], nodes["idx_end"] - 1])
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    exist = places.min() >= 0 and places.max() < len(items) and np.all(2 * inner + 2 < n_nodes)
    shapes = order.shape, nodes.shape, bounds.shape
    return bool(exist) and shapes == ((len(items),), (n_nodes,), (2, n_nodes, items.shape[1]))


def _parts(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and all objects within it, each once."""
    seen: set[int] = set()
    waiting = [estimator]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, (str, bytes, int, float, type)):
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, (list, tuple)):
            waiting += each
        elif isinstance(each, np.ndarray):
            waiting += each.ravel().tolist() if each.dtype == object else []
        else:
            waiting += getattr(each, "__dict__", {}).values()


# --- skops, which writes and reads estimators -----------------------------------------------------


def load_skops(*, whole: bool = False) -> Any:
    """Import the reader and writer of model files.

    skops trusts all estimators of scikit-learn and all functions of SciPy. To list them it imports
    all modules of the one and searches all modules for the other, which takes longer than a small
    fit. Unless the `whole` list is needed, this is a copy apart from the one that others import: it
    trusts the estimators that are imported already.
    """
    if whole or "skops.io" in sys.modules:
        return load_extra("skops.io", needed_for="Reading or writing model files")
    return _skops_apart()


@functools.cache
def _skops_apart() -> Any:
    utils: Any = import_module("sklearn.utils")
    scipy: Any = import_module("scipy")
    whole = utils.all_estimators, scipy.special
    unlisted = ModuleType("scipy.special")  # has all names, and lists none
    vars(unlisted).update(__getattr__=functools.partial(getattr, scipy.special), __dir__=list)
    utils.all_estimators, scipy.special = _imported_estimators, unlisted
    try:
        skops = load_skops(whole=True)
        # Indented lines take longer to write than the rest of a file.
        plain = SimpleNamespace(loads=json.loads, dumps=lambda state, **_: json.dumps(state))
        sys.modules["skops.io._persist"].json = plain  # type: ignore[attr-defined]
        return skops
    finally:
        utils.all_estimators, scipy.special = whole
        for name in [name for name in sys.modules if name.partition(".")[0] == "skops"]:
            del sys.modules[name]


def _imported_estimators() -> list[tuple[str, type]]:
    classes = [import_module("sklearn.base").BaseEstimator]
    for each in classes:  # subclasses of subclasses, too
        classes += each.__subclasses__()
    public = {each for each in classes[1:] if not each.__name__.startswith(("_", "Base"))}
    return [(each.__name__, each) for each in public if not inspect.isabstract(each)]


# --- estimators of shortlist ---------------------------------------------------------------------


def dump_estimator(estimator: Any) -> bytes:
    """Return an estimator in the format of skops."""
    return load_skops().dumps(estimator)


def load_estimator(payload: bytes, name: str, *, trust: bool = False) -> Any:
    """Read what skops wrote; other types than the trusted ones are only constructed on demand."""
    try:
        _check_payload(payload, name)
        for known, whole in _FEW_TO_ALL:
            trusted, skops = known(), load_skops(whole=whole)
            foreign = sorted(set(skops.get_untrusted_types(data=payload)) - set(trusted))
            if not foreign:
                break
        if foreign and not trust:
            raise ModelFileError(
                f"{name} was not loaded, because it contains types that a model does not need and "
                f"that may execute code ({', '.join(foreign[:3])}). Only load files that you made "
                "yourself; a model of your own is then read with trust=True."
            )
        loaded = skops.loads(payload, trusted=[*trusted, *foreign])
        _check_trees(loaded, name, trust=trust)
        return loaded
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
        kept = load_skops(whole=True).get_untrusted_types(data=dump_estimator(model))
        problem = ", ".join(sorted(set(kept) - set(trusted_types()))[:3])
    except Exception as error:  # a type that skops cannot write
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise ModelFileError(
            f"The model in {path} cannot be kept in a model file of shortlist, which holds only "
            f"types that are safe to read ({problem}). Use a model of scikit-learn or LightGBM, or "
            "CapacityClassifier in Python."
        )
