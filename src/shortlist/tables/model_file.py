"""Model files: a zip archive with a manifest in JSON and the model in the format of skops.

Reading a file constructs only the types in :func:`~shortlist.models.trusted_types` and those that
skops trusts by default. The manifest is read first; it tells which version wrote the file, which
columns the model needs, and what it promises.
"""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sklearn

from .. import __version__
from .._core.extras import load_extra
from .._core.files import to_plain, without_user, write_whole
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..exceptions import CapacityError, ModelFileError
from ..models.files import check_unpacked, dump_estimator, load_estimator
from .columns import MISSING_CATEGORY
from .learned_rows import RowFingerprints
from .model import ModelCard, TableModel
from .schema import TableSchema

if TYPE_CHECKING:
    from ..models.onnx_export import OnnxExport

msgspec = load_extra("msgspec", needed_for="Reading model files")

#: The version of model files. It rises if another version of shortlist could misread a file.
FORMAT_VERSION = 5
_FORMAT = "shortlist model"
_MANIFEST, _MODEL, _ROWS = "manifest.json", "model.skops", "rows.bin"
_NEEDED = (
    "schema", "capacity", "guarantee", "reference", "learner", "scikit_learn_version", "card",
    "fingerprints",
)  # fmt: skip


def save_model(model: TableModel, path: Any) -> None:
    """Write a model to a file; an error leaves no unfinished file.

    Parameters
    ----------
    model : TableModel
        Fitted; see :func:`~shortlist.tables.fit_table`.
    path : Path or str
        Where to write.
    """
    if not isinstance(model, TableModel):
        raise ModelFileError(
            f"save_model writes the TableModel of a fit to a table, such as fit_table(...).model; "
            f"got {type(model).__name__}. Save other classifiers with skops.io.dump or joblib.dump."
        )
    manifest = json.dumps(manifest_of(model), indent=1, allow_nan=False).encode()
    parts = {
        _MANIFEST: manifest,
        _MODEL: dump_estimator(model.classifier),
        _ROWS: model.fingerprints.to_bytes(),
    }
    with (
        write_whole(Path(path)) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, content in parts.items():
            archive.writestr(name, content)


def load_model(path: Any) -> TableModel:
    """Read a model from a file, without executing any code in it.

    Parameters
    ----------
    path : Path or str
        A file made by :func:`save_model`.

    Returns
    -------
    TableModel
        The saved model.
    """
    path, name = Path(path), str(path)
    manifest, parts = describe_model(path), _read(path, _MODEL, _ROWS)
    with _reading(name):
        schema, card = as_schema(manifest), as_card(manifest)
        values = {feature.name: manifest["reference"][feature.name] for feature in schema.features}
        prints = RowFingerprints.from_json(manifest["fingerprints"], parts[_ROWS])
    return TableModel(
        _classifier(parts[_MODEL], name),
        schema,
        {name: math.nan if value is None else value for name, value in values.items()},
        str(manifest["learner"]),
        card,
        prints,
    )


def describe_model(path: Path) -> dict[str, Any]:
    """Return the manifest of a model file, without loading the model.

    Parameters
    ----------
    path : Path or str
        A file made by :func:`save_model`.

    Returns
    -------
    dict
        Versions, schema, capacity, guarantee and more, as plain texts and numbers.
    """
    return _checked_manifest(_read(path, _MANIFEST)[_MANIFEST], str(path))


# --- the manifest ---


def manifest_of(model: TableModel) -> dict[str, Any]:
    """Describe a model in plain JSON: versions, the columns it needs, and what it promises."""
    classifier = model.classifier
    return {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "shortlist_version": __version__,
        "scikit_learn_version": sklearn.__version__,
        "learner": model.learner,
        "capacity": classifier.capacity.to_json(),
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "n_batches": classifier.n_batches,
        "n_calibration": sum(each.n_calibration for each in classifier.calibrations_),
        "thresholds": [_or_none(each.value) for each in classifier.calibrations_],
        "schema": to_plain(model.schema),
        "reference": {name: _or_none(value) for name, value in model.reference.items()},
        "card": to_plain(model.card),
        "fingerprints": model.fingerprints.to_json(),
    }


def as_schema(manifest: dict[str, Any]) -> TableSchema:
    """Return the columns that a manifest describes."""
    return msgspec.convert(manifest["schema"], TableSchema)


def as_card(manifest: dict[str, Any]) -> ModelCard:
    """Return the model card in a manifest."""
    return msgspec.convert(manifest["card"], ModelCard)


def _checked_manifest(raw: bytes, name: str) -> dict[str, Any]:
    """Return the manifest of a file that this version can read, or say what to do."""
    with _reading(name):
        content = json.loads(raw)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelFileError(f"{name} is not a model of shortlist. Make one with: shortlist fit")
    version, writer = content.get("format_version"), content.get("shortlist_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{name} has format {version}, written by shortlist {writer}; this is shortlist "
            f"{__version__}, which reads format {FORMAT_VERSION}. Fit the model again, or use the "
            "version of shortlist that wrote it."
        )
    missing = [key for key in _NEEDED if key not in content]
    if missing:
        raise ModelFileError(f"{name} is damaged: its manifest lacks {', '.join(missing)}.")
    with _reading(name):
        Capacity.from_json(content["capacity"])
    # scikit-learn does not promise the same scores across minor versions.
    written_with = str(content["scikit_learn_version"])
    if written_with.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        raise ModelFileError(
            f"{name} was fitted with scikit-learn {written_with}, but this is scikit-learn "
            f"{sklearn.__version__}. Its scores may differ, and its threshold with them. "
            f"Fit the model again, or install scikit-learn {written_with}."
        )
    return content


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    """Say what is wrong with a manifest that cannot be read."""
    try:
        yield
    except (CapacityError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ModelFileError(f"{name} is damaged: its manifest cannot be read: {error}.") from None


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- the archive ---


def _read(path: Path, *names: str) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive, path.stat().st_size, str(path))
            return {name: archive.read(name) for name in names}
    except FileNotFoundError:
        shown = without_user(str(path))
        raise ModelFileError(f"There is no model file {shown}. Check the path.") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path} is a folder, not a model file.") from None
    except (zipfile.BadZipFile, KeyError, EOFError):
        raise ModelFileError(
            f"{path} is not a model of shortlist, or is damaged. Make one with: shortlist fit"
        ) from None


def _classifier(payload: bytes, name: str) -> CapacityClassifier:
    classifier = load_estimator(payload, name)
    if not isinstance(classifier, CapacityClassifier) or not hasattr(classifier, "rule_"):
        raise ModelFileError(f"{name} does not hold a fitted CapacityClassifier.")
    return classifier


# --- graphs in ONNX ---


def export_model(model: TableModel, path: Path) -> OnnxExport:
    """Write the decision of a model to an ONNX file, compared with the model first."""
    from ..models import onnx_export as onnx

    if model.schema.work is not None:
        raise ModelFileError(onnx.WEIGHS_WORK)
    about = {"model": json.dumps(manifest_of(model))}
    content, exported = onnx.build_graph(
        model.classifier, model.probe_rows(), missing=MISSING_CATEGORY, about=about
    )
    with write_whole(path) as file:
        file.write(content)
    return exported
