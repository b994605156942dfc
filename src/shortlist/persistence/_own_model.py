"""Classifiers of the user's own, in files of skops, joblib or pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib

from .._core.extras import load_skops
from ..exceptions import ModelFileError
from ._trusted_types import trusted_types

skops = load_skops()

__all__ = ["load_own_model"]

_PICKLES = (".joblib", ".pkl", ".pickle")


def load_own_model(path: Path, *, trust: bool = False) -> Any:
    """Read a classifier of your own, trained or not, to calibrate it or to fit it.

    Files of joblib and pickle can execute any code when they are read, and are refused unless they
    are trusted. A file of skops is refused if it contains types that skops does not know.

    Parameters
    ----------
    path : Path
        A file that ends in .skops, .joblib, .pkl or .pickle.
    trust : bool, default=False
        Whether you trust the maker of the file to execute code on this machine.

    Returns
    -------
    classifier
        With `fit`, and `predict_proba` or `decision_function`.
    """
    readers = {".skops": _read_skops, **dict.fromkeys(_PICKLES, _read_pickle)}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ModelFileError(
            f"{path} has no known extension of a model. Use .skops (skops.io.dump), or .joblib "
            "(joblib.dump)."
        )
    if not path.is_file():
        raise ModelFileError(f"There is no model file {path}. Check the path.")
    model = reader(path, trust)
    _check_classifier(model, path)
    _check_can_be_kept(model, path)
    return model


def _read_skops(path: Path, trust: bool) -> Any:
    try:
        foreign = sorted(set(skops.get_untrusted_types(file=path)) - set(trusted_types()))
    except Exception as error:  # a damaged file can raise any error inside skops
        raise ModelFileError(f"{path} is not a file of skops: {type(error).__name__}.") from None
    if foreign and not trust:
        raise ModelFileError(
            f"{path} was not loaded, because it contains types that skops does not know "
            f"({', '.join(foreign[:3])}), which may execute code. If you made the file yourself, "
            "use --trust-model."
        )
    return _read(path, lambda: skops.load(path, trusted=[*trusted_types(), *foreign]))


def _read_pickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise ModelFileError(
            f"{path} was not loaded: a file of joblib or pickle can execute any code when it is "
            "read. If you made it yourself, use --trust-model; or save the model with "
            "skops.io.dump to a .skops file."
        )
    return _read(path, lambda: joblib.load(path))


def _read(path: Path, load: Any) -> Any:
    try:
        return load()
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
        kept = skops.dumps(model)
        foreign = sorted(set(skops.get_untrusted_types(data=kept)) - set(trusted_types()))
    except Exception as error:  # a type that skops cannot write
        raise ModelFileError(_not_kept(path, f"{type(error).__name__}: {error}")) from None
    if foreign:
        raise ModelFileError(_not_kept(path, ", ".join(foreign[:3])))


def _not_kept(path: Path, what: str) -> str:
    return (
        f"The model in {path} cannot be kept in a model file of shortlist, which holds only types "
        f"that are safe to read ({what}). Use a model of scikit-learn or LightGBM, or "
        "CapacityClassifier in Python."
    )
