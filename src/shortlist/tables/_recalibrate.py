"""Another threshold for a fitted model: from recent rows, for another capacity or guarantee."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..capacity import Capacity
from ..exceptions import TableError
from ..thresholds import check_guarantee
from ._evaluate import labels_of
from ._fingerprints import SeenRows
from ._model import ModelCard, TableModel
from ._profile import ColumnProfile
from ._reading import Reading
from ._schema import TableRows

__all__ = ["Recalibration", "recalibrate_table"]

# Rows that the model knows are left out if fewer rows than this share repeat by chance.
_SELDOM = 0.01


@dataclass(frozen=True)
class Recalibration:
    """A model with a new threshold, and what it was made from.

    Attributes
    ----------
    model : TableModel
        The same model with a new threshold and model card.
    n_rows, n_left_out : int
        Number of rows that set the threshold, and of rows left out because the model knows them.
    flagged_before, flagged_now : int
        How many of the rows the old and the new threshold flag.
    notes : list of str
        What to know about the rows.
    """

    model: TableModel
    n_rows: int
    n_left_out: int
    flagged_before: int
    flagged_now: int
    notes: list[str]


def recalibrate_table(
    model: TableModel,
    path: Path,
    *,
    capacity: Capacity | None = None,
    guarantee: str | None = None,
    confidence: float | None = None,
    n_batches: int | None = None,
    target: str | None = None,
    reading: Reading | None = None,
) -> Recalibration:
    """Set a new threshold from recent rows, without fitting the model again.

    No labels are needed. The promise then rests on these rows: they should be like the rows to
    come. Rows that trained the model are recognised and left out, because the model knows them.

    Parameters
    ----------
    model : TableModel
        Fitted; it is not changed.
    path : Path
        Recent rows.
    capacity : Capacity, default=None
        Another capacity; `None` keeps it.
    guarantee : str, default=None
        Another guarantee; `None` keeps it.
    confidence : float, default=None
        Another confidence; `None` keeps it.
    n_batches : int, default=None
        For "next-batch", the number of batches; `None` keeps it.
    target : str, default=None
        A column with labels, if there is one: their prevalence replaces that of the fit, to which
        a multiple as capacity refers.
    reading : Reading, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    Recalibration
    """
    classifier = copy.copy(model.classifier)
    if guarantee not in (None, "next-batch") and n_batches is None:
        n_batches = 1  # the number of batches belonged to the old guarantee
    for name, value in {
        "capacity": capacity,
        "guarantee": guarantee,
        "confidence": confidence,
        "n_batches": n_batches,
    }.items():
        if value is not None:
            setattr(classifier, name, value)
    if target is not None:  # the prevalence that was stated in the fit is replaced as well
        classifier.prevalence = None
    check_guarantee(classifier.guarantee, classifier.capacity, classifier.n_batches)
    with model.schema.open(path, reading=reading) as source:
        rows = model.schema.read(source, target=target)
    notes = _mixture(classifier)
    unknown = _unknown(model, rows, path, notes)
    labels = None if target is None else labels_of(unknown)
    before = model.decide(unknown).flagged
    fitting = unknown.take(np.flatnonzero(~model.too_large(unknown)))
    classifier.recalibrate(
        fitting.X,
        None if labels is None else labels_of(fitting),
        ids=fitting.ids,
        values=fitting.values,
        efforts=fitting.efforts,
    )
    now = replace(model, classifier=classifier).decide(unknown).flagged
    return Recalibration(
        _renewed(model, classifier, unknown),
        len(unknown.X),
        len(rows.X) - len(unknown.X),
        int(before.sum()),
        int(now.sum()),
        notes,
    )


def _mixture(classifier: Any) -> list[str]:
    """Say that a guarantee about single thresholds is not one about several of them."""
    n_thresholds = len(classifier.calibrations_)
    if n_thresholds == 1 or classifier.guarantee in ("plug-in", "expected"):
        return []
    return [
        f"This model decides with {n_thresholds} thresholds, one for each fold. The guarantee "
        f"{classifier.guarantee!r} holds for each of them, not exactly for all together. For one "
        f"threshold, fit the model with --guarantee {classifier.guarantee}."
    ]


def _unknown(model: TableModel, rows: TableRows, path: Path, notes: list[str]) -> TableRows:
    """Return the rows without those that the model knows, or say why this cannot be done."""
    seen = model.seen_in(rows)
    if model.fingerprints is None or seen is None or not seen.is_surprising:
        return rows
    often_repeat = model.fingerprints.n_repeated > _SELDOM * model.fingerprints.n_rows
    if often_repeat or not model.fingerprints.is_complete:
        raise TableError(_known(seen, path))
    known = model.fingerprints.contains(rows)
    if known.all():
        raise TableError(_known(seen, path))
    notes.append(
        f"{int(known.sum()):,} of {len(known):,} rows of {path} trained or calibrated this model "
        "before. They were left out: a threshold needs rows that the model does not know."
    )
    return rows.take(np.flatnonzero(~known))


def _known(seen: SeenRows, path: Path) -> str:
    return (
        f"{path}: {seen.n_seen:,} of {seen.n_items:,} rows trained or calibrated this model. A "
        "threshold needs rows that the model does not know. Use more recent rows, or leave the "
        "known ones out."
    )


def _renewed(model: TableModel, classifier: Any, rows: TableRows) -> TableModel:
    fingerprints = None if model.fingerprints is None else model.fingerprints.joined(rows)
    card = None if model.card is None else _card(model.card, model, classifier, rows)
    return replace(model, classifier=classifier, card=card, fingerprints=fingerprints)


def _card(card: ModelCard, model: TableModel, classifier: Any, rows: TableRows) -> ModelCard:
    """Describe the new calibration rows; what another capacity found is no longer true."""
    same = classifier.capacity == model.classifier.capacity
    if rows.is_rare is not None:
        n_rare = int(rows.is_rare.sum())
        card = replace(card, n_calibration=len(rows.X), n_calibration_rare=n_rare)
    return replace(
        card,
        recalibrated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        n_recalibration=len(rows.X),
        rules=card.rules if same else (),
        profiles=tuple(_counted_anew(profile, rows) for profile in card.profiles),
    )


def _counted_anew(profile: ColumnProfile, rows: TableRows) -> ColumnProfile:
    return replace(profile, counts=profile.count(rows.X[profile.name]))
