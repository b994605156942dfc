"""Another threshold for a fitted model: from recent rows, for another capacity or guarantee."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.drawing import is_drawn
from .._core.hashing import tie_keys_of
from .._core.ranking import Cut, flag_above, lift
from .._core.work import weigh
from ..capacity import Capacity
from ..exceptions import TableError
from ..thresholds import CalibratedThreshold
from ..thresholds.promise import check_guarantee
from ._passing import Columns, RowsRead, RowStream
from .drift import ColumnProfile
from .fingerprints import SeenRows
from .model import ModelCard, TableModel
from .monitor import Finding
from .options import ReadOptions
from .schema import TableRows

# Rows that the model knows are left out if fewer rows than this share repeat by chance.
_SELDOM = 0.01
_PART_BITS = 5  # hashes are joined in 32 parts


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
    path: Path,
    *,
    capacity: Capacity | None = None,
    guarantee: str | None = None,
    confidence: float | None = None,
    n_batches: int | None = None,
    target: str | None = None,
    reading: ReadOptions | None = None,
    on_progress: RowsRead | None = None,
) -> Recalibration:
    """Set a new threshold from recent rows, without fitting the model again.

    No labels are needed. The promise then rests on these rows: they should be like the rows to
    come. Rows that trained the model are recognised and left out, because the model knows them.

    Parameters
    ----------
    model : TableModel
        Fitted; it is not changed.
    path : Path
        Recent rows: a table, or a folder of them. Beyond a million rows, scores and a few other
        numbers go to temporary files, and about a million rows, drawn at random, set the threshold.
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
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

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
    passing = RowStream(model, path, target=target, reading=reading, on_progress=on_progress)
    with _Gathered(model, passing) as gathered:
        for rows in passing:
            gathered.add(rows)
        notes = _mixture(classifier)
        leaves_known = _leaves_known(model, gathered, path, notes)
        kept = _Kept(gathered, leaves_known)
        _set_threshold(classifier, kept, keyed_by_ids=model.schema.id is not None)
        (found,) = classifier.calibrations_
        return Recalibration(
            _renewed(model, classifier, gathered, kept),
            kept.n_rows,
            passing.n_rows - kept.n_rows,
            kept.counts["before"],
            _n_flagged(found, kept),
            notes,
            passing.monitor.findings(),
        )


def _set_threshold(classifier: Any, kept: _Kept, *, keyed_by_ids: bool) -> None:
    """Set the threshold from the rows, or if there are many, from those drawn."""
    classifier.recalibrate_scores(
        kept["scores"],
        kept["keys"],
        keyed_by_ids=keyed_by_ids,
        **{name: kept[name] for name in ("is_rare", "values", "efforts") if name in kept},
    )


def _n_flagged(found: CalibratedThreshold, kept: _Kept) -> int:
    """Count the rows that a threshold flags, of all that are kept."""
    names = ["scores", "keys", *(name for name in ("values", "efforts") if name in kept)]
    n_flagged, cut = 0, Cut(found.value, found.tie_key)
    for block in kept.blocks(*names):
        scores, keys, *weights = block
        work = dict(zip(names[2:], weights, strict=True))
        flagged = flag_above(
            lift(weigh(scores, work.get("values"), work.get("efforts"))), cut, keys.__getitem__
        )
        n_flagged += int(np.count_nonzero(flagged))
    return n_flagged


class _Kept:
    """The rows that set the threshold: without those that the model knows, or that are too large.

    Attributes
    ----------
    n_rows : int
        Their number.
    counts : dict from str to int
        How many of them are rare, if they have labels, and how many the old threshold flags.
    """

    def __init__(self, gathered: _Gathered, leaves_known: bool) -> None:
        self._gathered, self._leaves_known = gathered, leaves_known
        names = [name for name in ("is_rare", "before") if name in gathered]
        sums = [[own[0].size, *(int(each.sum()) for each in own)] for own in self.blocks(*names)]
        self.n_rows, *totals = np.sum(sums, axis=0).tolist()
        self.counts = dict(zip(names, totals, strict=True))

    def blocks(self, *names: str) -> Iterator[tuple[NDArray[Any], ...]]:
        """Return some of their columns, block by block."""

        def own(columns: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], ...]:
            left_out = columns["too_large"]
            if self._leaves_known:
                left_out = left_out | columns["known"]
            return tuple(columns[name][~left_out] for name in names)

        return self._gathered.summaries(own, [*names, "too_large", "known"])

    def __contains__(self, name: str) -> bool:
        return name in self._gathered

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column of those that are drawn."""
        parts, start = [], 0
        for (block,) in self.blocks(name):
            positions = np.arange(start, start + block.size)
            parts.append(block[is_drawn(positions, self.n_rows)])
            start += block.size
        return np.concatenate(parts)


class _Gathered(Columns):
    """What is kept of each row: score, tie key, fingerprint, label, and the old decision."""

    def __init__(self, model: TableModel, passing: RowStream) -> None:
        super().__init__()
        self._model, self._passing = model, passing
        self._profiles = () if model.card is None else model.card.profiles
        self._counts = [np.zeros((2, len(each.counts)), np.int64) for each in self._profiles]

    def add(self, rows: TableRows) -> None:  # type: ignore[override]
        classifier, hashes = self._model.classifier, self._passing.hashes
        keys = tie_keys_of(rows.X, rows.ids, seed=classifier.rule_.terms.seed)
        known = np.zeros(len(rows.X), dtype=bool)
        if hashes is not None:
            known = np.isin(hashes, self._model.fingerprints.hashes)  # type: ignore[union-attr]
            super().add(hashes=hashes)
        if rows.is_rare is not None:
            super().add(is_rare=rows.is_rare)
        super().add(
            scores=classifier.score_samples(rows.X),
            keys=keys(np.arange(len(rows.X))),
            before=self._model.decide(rows).flagged,
            known=known,
            too_large=self._model.too_large(rows),
        )
        weighed = zip(("values", "efforts"), self._model.weighed_by(rows), strict=True)
        super().add(**{name: column for name, column in weighed if column is not None})
        for profile, counts in zip(self._profiles, self._counts, strict=True):
            values = rows.X[profile.name]
            counts += [profile.count(values[~known]), profile.count(values[known])]

    @property
    def seen(self) -> SeenRows | None:
        return self._passing.seen

    @property
    def n_rows(self) -> int:
        return self._passing.n_rows

    def profiles(self, *, with_known: bool) -> tuple[ColumnProfile, ...]:
        """Return the profiles of the model card, counted anew."""
        return tuple(
            replace(profile, counts=tuple((counts.sum(0) if with_known else counts[0]).tolist()))
            for profile, counts in zip(self._profiles, self._counts, strict=True)
        )


def _mixture(classifier: Any) -> list[str]:
    """Say that a guarantee about single thresholds is not one about several of them."""
    n_thresholds = len(classifier.calibrations_)
    if n_thresholds == 1 or classifier.guarantee in ("plug-in", "expected"):
        return []
    return [
        f"This model decides with {n_thresholds} thresholds, one for each fold. The guarantee "
        f"{classifier.guarantee!r} holds for each of them, not exactly for all together. For one "
        f"threshold, fit the model with guarantee={classifier.guarantee!r}."
    ]


def _leaves_known(model: TableModel, gathered: _Gathered, path: Path, notes: list[str]) -> bool:
    """Return whether rows that the model knows are left out, or say why this cannot be done."""
    seen = gathered.seen
    if model.fingerprints is None or seen is None or not seen.is_surprising:
        return False
    n_known = sum(gathered.summaries(lambda block: int(block["known"].sum()), ["known"]))
    often_repeat = model.fingerprints.n_repeated > _SELDOM * model.fingerprints.n_rows
    if often_repeat or not model.fingerprints.is_complete or n_known == seen.n_items:
        raise TableError(_known(seen, path))
    notes.append(
        f"{n_known:,} of {seen.n_items:,} rows of {path} trained or calibrated this model "
        "before. They were left out: a threshold needs rows that the model does not know."
    )
    return True


def _known(seen: SeenRows, path: Path) -> str:
    return (
        f"{path}: {seen.n_seen:,} of {seen.n_items:,} rows trained or calibrated this model. A "
        "threshold needs rows that the model does not know. Use more recent rows, or leave the "
        "known ones out."
    )


def _renewed(model: TableModel, classifier: Any, gathered: _Gathered, kept: _Kept) -> TableModel:
    fingerprints = model.fingerprints
    if fingerprints is not None:
        with Columns() as parts:
            for (hashes,) in kept.blocks("hashes"):
                parts.add(**_divided(hashes))
            for name in parts:
                fingerprints = fingerprints.joined_hashes(parts[name])
    card = None if model.card is None else _card(model.card, model, classifier, gathered, kept)
    return replace(model, classifier=classifier, card=card, fingerprints=fingerprints)


def _divided(hashes: NDArray[np.uint64]) -> dict[str, NDArray[np.uint64]]:
    """Divide hashes of 53 bits by their first bits: equal ones are in the same part."""
    first = hashes >> np.uint64(53 - _PART_BITS)
    return {f"{each:02}": hashes[first == each] for each in np.unique(first).tolist()}


def _card(
    card: ModelCard, model: TableModel, classifier: Any, gathered: _Gathered, kept: _Kept
) -> ModelCard:
    """Describe the new calibration rows; what another capacity found is no longer true."""
    same = classifier.capacity == model.classifier.capacity
    if "is_rare" in kept:
        n_rare = kept.counts["is_rare"]
        card = replace(card, n_calibration=kept.n_rows, n_calibration_rare=n_rare)
    is_all = kept.n_rows == gathered.n_rows
    return replace(
        card,
        recalibrated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        n_recalibration=kept.n_rows,
        rules=card.rules if same else (),
        profiles=gathered.profiles(with_known=is_all),
    )
