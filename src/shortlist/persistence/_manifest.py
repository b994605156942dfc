"""What a model file says about itself, in plain JSON that is read before anything else."""

from __future__ import annotations

import json
import math
from typing import Any

import sklearn

from .. import __version__
from ..capacity import Capacity
from ..exceptions import ModelFileError
from ..tables import ModelCard, TableModel, TableSchema

__all__ = ["FORMAT_VERSION", "card_of", "check_versions", "make_manifest", "parts_of"]

#: Rises when a reader of this version could misread a file of that version.
FORMAT_VERSION = 1
_FORMAT = "shortlist model"
_NEEDED = ("schema", "capacity", "guarantee", "reference", "learner", "scikit_learn_version")


def make_manifest(model: TableModel) -> bytes:
    """Describe a model: versions, the columns it needs, and what it promises."""
    classifier = model.classifier
    content = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "shortlist_version": __version__,
        "scikit_learn_version": sklearn.__version__,
        "learner": model.learner,
        "capacity": _capacity_to_json(classifier.capacity),
        "capacity_fraction": classifier.capacity_fraction_,
        "guarantee": classifier.guarantee,
        "confidence": classifier.confidence,
        "n_calibration": classifier.calibration_.n_calibration,
        "schema": model.schema.to_json(),
        "reference": {name: _or_none(value) for name, value in model.reference.items()},
        "card": None if model.card is None else model.card.to_json(),
    }
    return json.dumps(content, indent=1, allow_nan=False).encode()


def check_versions(raw: bytes, name: str) -> dict[str, Any]:
    """Return the manifest of a file that this version can read, or say which version can."""
    try:
        content = json.loads(raw)
    except ValueError:
        raise ModelFileError(f"{name} is damaged: its manifest cannot be read.") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelFileError(f"{name} is not a model of shortlist. Make one with: shortlist fit")
    version, writer = content.get("format_version"), content.get("shortlist_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{name} has format {version}, written by shortlist {writer}; this is shortlist "
            f"{__version__}, which reads format {FORMAT_VERSION}. Fit the model again, or install "
            f"shortlist {writer}."
        )
    missing = [key for key in _NEEDED if key not in content]
    if missing:
        raise ModelFileError(f"{name} is damaged: its manifest lacks {', '.join(missing)}.")
    _check_scikit_learn(str(content["scikit_learn_version"]), name)
    return content


def _check_scikit_learn(written_with: str, name: str) -> None:
    """Refuse another minor version: scikit-learn does not promise the same scores across them."""
    if written_with.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        raise ModelFileError(
            f"{name} was fitted with scikit-learn {written_with}, and this is "
            f"{sklearn.__version__}; its scores, and with them its threshold, may not carry over. "
            f"Fit the model again, or install scikit-learn {written_with}."
        )


def parts_of(content: dict[str, Any], name: str) -> tuple[TableSchema, dict[str, Any], str]:
    """Return the schema, the reference values and the learner of a checked manifest."""
    try:
        schema = TableSchema.from_json(content["schema"])
        reference = {
            feature.name: _or_nan(content["reference"][feature.name]) for feature in schema.features
        }
    except (KeyError, TypeError):
        raise ModelFileError(f"{name} is damaged: its schema cannot be read.") from None
    return schema, reference, str(content["learner"])


def card_of(content: dict[str, Any], name: str) -> ModelCard | None:
    """Return the model card of a checked manifest; files of older versions have none."""
    card = content.get("card")
    try:
        return None if card is None else ModelCard.from_json(card)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ModelFileError(f"{name} is damaged: its model card cannot be read.") from None


def _capacity_to_json(capacity: Capacity) -> dict[str, Any]:
    value = capacity.value if isinstance(capacity.value, int) else float(capacity.value)
    return {"kind": capacity.kind, "value": value, "per": capacity.per}


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _or_nan(value: Any) -> Any:
    return math.nan if value is None else value
