"""One file per model: a zip archive with a manifest in JSON and the model in skops' format.

Reading a file constructs only the types listed here and those that skops knows to be harmless;
anything else in the file, such as a reference to a function of the operating system, is refused
before anything is constructed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from .._core.atomic import write_whole
from ..classifier import CapacityClassifier
from ..exceptions import ModelFileError
from ..tables import TableModel
from ._extra import skops
from ._manifest import card_of, check_versions, make_manifest, parts_of

__all__ = ["TRUSTED", "describe_model", "load_model", "save_model"]

#: Types that a model file may hold besides those that skops trusts by itself.
TRUSTED = (
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "numpy.dtype",
    "shortlist._core.binomial.Interval",
    "shortlist.classifier._wrapper.CapacityClassifier",
    "shortlist.thresholds._rules.FoldRule",
    "shortlist.thresholds._rules.SegmentRule",
    "shortlist.thresholds._rules.ThresholdRule",
    "shortlist.thresholds._sample.CalibrationSample",
    "shortlist.thresholds._terms.ReferencePrevalence",
    "shortlist.thresholds._terms.Terms",
    "shortlist._wrapping.segments.SegmentCapacities",
    "shortlist.aware._boosting.CapacityAwareBoostingClassifier",
    "shortlist.aware._forest.CapacityAwareForestClassifier",
    "shortlist.aware._linear.CapacityAwareLinearClassifier",
    "shortlist.aware._network.CapacityAwareNetworkClassifier",
    "shortlist.aware._svc.CapacityAwareSVC",
    "shortlist.capacity.Capacity",
    "shortlist.learners._kde.KernelDensityClassifier",
    "shortlist.learners._kernel_knn.KernelKNeighborsClassifier",
    "shortlist.learners._kde.LogDensity",
    "shortlist.learners._neighbors.NeighborSearch",
    "shortlist.thresholds._calibrated.CalibratedThreshold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
)
_MANIFEST, _MODEL, _TWIN = "manifest.json", "model.skops", "twin.skops"


def save_model(model: TableModel, path: Path) -> None:
    """Write a model to a file: whole, or not at all.

    Parameters
    ----------
    model : TableModel
        Fitted; see :func:`~shortlist.tables.fit_table`.
    path : Path
        Where to write.
    """
    parts = {_MANIFEST: make_manifest(model), _MODEL: skops.dumps(model.classifier)}
    if model.twin is not None:
        parts[_TWIN] = skops.dumps(model.twin)
    with write_whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def load_model(path: Path, *, with_twin: bool = False) -> TableModel:
    """Read a model from a file, without executing anything that the file brings along.

    Parameters
    ----------
    path : Path
        A file made by :func:`save_model`.
    with_twin : bool, default=False
        Whether to read what was trained for comparison only, which takes as long again.

    Returns
    -------
    TableModel
        As it was saved.
    """
    parts = _read(path, _MANIFEST, _MODEL)
    content = check_versions(parts[_MANIFEST], str(path))
    schema, reference, learner = parts_of(content, str(path))
    return TableModel(
        _classifier(parts[_MODEL], str(path)),
        schema,
        reference,
        learner,
        card=card_of(content, str(path)),
        twin=_twin(path) if with_twin else None,
    )


def describe_model(path: Path) -> dict[str, Any]:
    """Return what a model file says about itself, without loading the model.

    Parameters
    ----------
    path : Path
        A file made by :func:`save_model`.

    Returns
    -------
    dict
        Versions, schema, capacity, guarantee and more, in plain texts and numbers.
    """
    return check_versions(_read(path, _MANIFEST)[_MANIFEST], str(path))


def _read(path: Path, *names: str, optional: str | None = None) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            there = [optional] if optional in archive.namelist() else []
            return {name: archive.read(name) for name in (*names, *there)}
    except FileNotFoundError:
        raise ModelFileError(f"There is no model file {path}. Check the path.") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path} is a folder, not a model file.") from None
    except (zipfile.BadZipFile, KeyError, EOFError):
        raise ModelFileError(
            f"{path} is not a model of shortlist, or is damaged. Make one with: shortlist fit"
        ) from None


def _classifier(payload: bytes, name: str) -> CapacityClassifier:
    classifier = _load(payload, name)
    if not isinstance(classifier, CapacityClassifier) or not hasattr(classifier, "calibrations_"):
        raise ModelFileError(f"{name} does not hold a fitted CapacityClassifier.")
    return classifier


def _twin(path: Path) -> Any:
    payload = _read(path, optional=_TWIN).get(_TWIN)
    twin = None if payload is None else _load(payload, str(path))
    if twin is not None and not isinstance(twin, Pipeline):
        raise ModelFileError(f"{path} is damaged: what it holds for comparison is no model.")
    return twin


def _load(payload: bytes, name: str) -> Any:
    try:
        foreign = sorted(set(skops.get_untrusted_types(data=payload)) - set(TRUSTED))
        if foreign:
            raise ModelFileError(
                f"{name} holds types that a model of shortlist does not need "
                f"({', '.join(foreign[:3])}), and was not loaded. Use files you made yourself."
            )
        return skops.loads(payload, trusted=list(TRUSTED))
    except ModelFileError:
        raise
    except Exception as error:  # a damaged payload can fail anywhere inside skops
        raise ModelFileError(f"{name} is damaged: {type(error).__name__} in its model.") from None
