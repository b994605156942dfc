"""Another threshold for a fitted model: from recent rows, for another capacity or guarantee."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._core.ranking import lift, weigh
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..thresholds import CalibratedThreshold
from ..thresholds.promise import check_guarantee, guarantee_of
from ..thresholds.samples import RowFacts
from ._source import ReadOptions
from .cases import CaseReader, Columns, RowsRead
from .learned_rows import ColumnProfile, RowFingerprints, SeenRows
from .model import ModelCard, TableModel
from .monitor import Finding
from .schema import TableRows

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
    findings : list of Finding
        Columns of the rows that do not fit the model card, such as one in another unit.
    """

    model: TableModel
    n_rows: int
    n_left_out: int
    flagged_before: int
    flagged_now: int
    notes: list[str]
    findings: list[Finding]


def recalibrate_table(
    model: TableModel,
    path: Any,
    *,
    capacity: Capacity | None = None,
    guarantee: str | None = None,
    confidence: float | None = None,
    target: str | None = None,
    reading: ReadOptions | None = None,
    on_progress: RowsRead | None = None,
) -> Recalibration:
    """Set a new threshold from recent rows, without fitting the model again.

    No labels are needed. The promise then rests on these rows: they should be like the rows to
    come. Rows that trained the model are recognised and left out, because the model knows them. So
    are those of an earlier call, except with the guarantee "anytime", which needs all rows so far.

    Parameters
    ----------
    model : TableModel
        Fitted; it is not changed.
    path : Path, str or data frame
        Recent rows: a table, or a folder of them. Beyond a million rows, scores and a few other
        numbers go to temporary files, and about a million rows, drawn at random, set the threshold.
    capacity : Capacity, default=None
        Another capacity; `None` keeps it.
    guarantee : str, default=None
        Another guarantee; `None` keeps it.
    confidence : float, default=None
        Another confidence; `None` keeps it.
    target : str, default=None
        A column with labels, if there is one: their prevalence replaces that of the fit, to which
        a multiple as capacity refers.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

    Returns
    -------
    Recalibration
    """
    classifier = _with_promise(
        model, target, capacity=capacity, guarantee=guarantee, confidence=confidence
    )
    read = CaseReader(model, path, target=target, reading=reading, on_progress=on_progress)
    with Columns() as every, Columns() as kept:
        for rows in read:
            every.add(**_facts(model, rows))
        notes = about_known(model.fingerprints, model.fingerprints.seen_in(every), read.path)
        n_kept = n_before = 0
        for block in every.blocks():
            own = ~block["too_large"] & ~(block["known"] & bool(notes))
            kept.add(**{name: column[own] for name, column in block.items()})
            n_kept += int(own.sum())
            n_before += int(block["before"][own].sum())
        drawn = kept.drawn(n_kept)
        keys, is_rare = drawn["keys"], drawn.get("is_rare")
        about: Any = {name: drawn[name] for name in ("values", "efforts") if name in drawn}
        row_facts = RowFacts(keys, ids=None if model.schema.id is None else keys, **about)
        classifier.recalibrate_scores(drawn["scores"], row_facts, keys.__getitem__, is_rare)
        (found,) = classifier.calibrations_
        n_now = sum(kept.summaries(lambda block: _n_flagged(found, block)))
        n_rare = sum(kept.summaries(lambda block: block["is_rare"].sum())) if target else None
    fingerprints = model.fingerprints
    if not guarantee_of(classifier.guarantee).over_time:  # else these rows are to come again
        fingerprints = fingerprints.joined(drawn["hashes"])
    counted = zip(model.card.profiles, read.monitor.counts, strict=True)
    profiles = tuple(replace(each, counts=counts) for each, counts in counted)
    renewed = replace(
        model,
        classifier=classifier,
        card=_card(model, classifier, n_kept, n_rare, profiles),
        fingerprints=fingerprints,
    )
    n_left_out, findings = read.n_read - n_kept, read.monitor.findings()
    return Recalibration(renewed, n_kept, n_left_out, n_before, n_now, notes, findings)


def _with_promise(model: TableModel, target: str | None, **promise: Any) -> CapacityClassifier:
    """Return a copy of the classifier with what is new about the promise."""
    classifier = copy.copy(model.classifier)
    for name, value in promise.items():
        if value is not None:
            setattr(classifier, name, value)
    if target is not None or guarantee_of(classifier.guarantee).surely:
        classifier.prevalence = None  # it was counted: others replace it, or its error is covered
    check_guarantee(classifier.guarantee, classifier.capacity, classifier.n_batches)
    return classifier


def _facts(model: TableModel, rows: TableRows) -> dict[str, Any]:
    """Return what a threshold needs to know about rows, and whether the model knows them."""
    values, efforts = model.weighed_by(rows)
    hashes = model.fingerprints.hashes_of(rows)
    return {
        "scores": model.classifier.score_samples(rows.X),
        "keys": model.tie_keys(rows.X, rows.ids),
        "before": model.decide(rows).flagged,
        "too_large": model.too_large(rows),
        "known": np.isin(hashes, model.fingerprints.hashes),
        "hashes": hashes,
        "is_rare": rows.is_rare,
        "values": values,
        "efforts": efforts,
    }


def _n_flagged(found: CalibratedThreshold, block: dict[str, Any]) -> int:
    """Count the rows that a threshold flags."""
    scores = lift(weigh(block["scores"], block.get("values"), block.get("efforts")))
    flagged = found.flag_with_keys(scores, block["keys"].__getitem__)
    return int(np.count_nonzero(flagged))


def about_known(prints: RowFingerprints, seen: SeenRows, path: Any) -> list[str]:
    """Say that rows that a model knows are left out; raise an error if that cannot be done."""
    if not seen.is_surprising:
        return []
    about = f"{seen.n_seen:,} of {seen.n_items:,} rows of {path} trained or calibrated this model"
    often_repeat = prints.n_repeated > _SELDOM * prints.n_rows
    if often_repeat or not prints.is_complete or seen.n_seen == seen.n_items:
        raise TableError(
            f"{about}. A threshold needs rows that the model does not know. Use more recent rows, "
            "or leave the known ones out."
        )
    return [f"{about}. They were left out: a threshold needs rows that the model does not know."]


def _card(
    model: TableModel,
    classifier: CapacityClassifier,
    n_rows: int,
    n_rare: int | None,
    profiles: tuple[ColumnProfile, ...],
) -> ModelCard:
    """Describe the new calibration rows; what another capacity found is no longer true."""
    card = replace(
        model.card,
        recalibrated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        n_recalibration=n_rows,
        rules=model.card.rules if classifier.capacity == model.classifier.capacity else (),
        profiles=profiles,
    )
    if n_rare is None:
        return card
    return replace(card, n_calibration=n_rows, n_calibration_rare=int(n_rare))
