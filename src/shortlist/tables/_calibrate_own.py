"""A threshold for a trained classifier of the user's own, from the rows of a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from .._core.labels import rare_share
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..learners import TrainedModel
from ..thresholds import check_guarantee
from ._evaluate import (
    labels_of,
)
from ._fit import FitResult, read_to_fit
from ._fit_notes import notes_on
from ._model import ModelCard, RuleResult, TableModel, versions_in_use
from ._money import money_of, weighed_columns
from ._own import own_name
from ._rules import (
    measure_list,
    measure_random,
    measure_rule,
)
from ._work import WorkColumns
from ._work_fit import check_rate, promise_about_work, with_bound
from .columns import MISSING_CATEGORY
from .fingerprints import RowFingerprints
from .options import ReadOptions
from .profile import column_profiles
from .schema import TableRows, TableSchema, reference_values

__all__ = ["calibrate_own"]

_TEST_SHARE = 0.2
_FEWEST_RARE = 5


def calibrate_own(
    estimator: Any,
    path: Path,
    *,
    target: str,
    capacity: Capacity,
    rare: str | None = None,
    id: str | None = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    random_state: int = 0,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
) -> FitResult:
    """Set a threshold for a trained classifier from the rows of a table.

    Four fifths of the rows set the threshold, and a fifth measures it. The classifier must not have
    been trained on any of them. It gets the columns it was trained on: numbers, days since 1970 for
    dates, and texts.

    Parameters
    ----------
    estimator : classifier
        Trained.
    path : Path
        A labelled table.
    target, rare, id
        The column with the labels, the label to look for, and the column that identifies a row.
    capacity : Capacity
        How many rows can be followed up.
    guarantee, confidence, n_batches
        The promise about future flags; see :func:`~shortlist.calibrate_threshold`.
    random_state : int, default=0
        Seed of the split, and key of the hash.
    reading : ReadOptions, default=None
        What to know about this file.
    work : WorkColumns, default=None
        As for :func:`fit_table`.

    Returns
    -------
    FitResult
        Without learners that were tried.
    """
    check_guarantee(guarantee, capacity, n_batches)
    rows, schema, notes = read_to_fit(path, reading, target=target, id=id, rare=rare, work=work)
    schema, order = _for_model(schema, estimator, str(path))
    rows = rows.of_columns(schema.features)
    schema, capped = with_bound(schema, rows, capacity, guarantee)
    notes += [*order, *capped, *notes_on(rows, schema)]
    is_rare = labels_of(rows)
    _check_enough(rows, schema, capacity)
    calibration, test = train_test_split(
        np.arange(is_rare.size), test_size=_TEST_SHARE, stratify=is_rare, random_state=random_state
    )
    unseen, held_out = rows.take(np.sort(calibration)), rows.take(np.sort(test))
    classifier = CapacityClassifier(
        _adapted(estimator, schema),
        capacity=capacity,
        rare_label=True,
        cv="prefit",
        guarantee=guarantee,
        confidence=confidence,
        n_batches=n_batches,
        ties="hash",
        random_state=random_state,
        **promise_about_work(schema, capacity),
    ).fit(unseen.X, unseen.is_rare, ids=unseen.ids, values=unseen.values, efforts=unseen.efforts)
    model = TableModel(classifier, schema, reference_values(unseen.X, schema), own_name(estimator))
    measured = _measure(model, held_out)
    model = replace(
        model,
        card=replace(_card(rows, unseen, held_out, schema, measured), notes=tuple(notes)),
        fingerprints=RowFingerprints.of(unseen, key=random_state),
    )
    sizes = (0, len(unseen.X), len(held_out.X), int(labels_of(held_out).sum()))
    known = {"is_rare": labels_of(held_out), "flagged": model.decide(held_out).flagged}
    money = money_of(model, known | weighed_columns(model, held_out))
    return FitResult(model, [], measured, *sizes, measured_on="held-out", notes=notes, money=money)


def _for_model(schema: TableSchema, estimator: Any, name: str) -> tuple[TableSchema, list[str]]:
    """Return the schema with the columns that a trained model knows, and a note on them."""
    known = getattr(estimator, "feature_names_in_", None)
    have = {feature.name: feature for feature in schema.features}
    if known is None:
        n_known = getattr(estimator, "n_features_in_", len(have))
        if n_known != len(have):
            raise TableError(
                f"The model was trained on {n_known} columns without names, and {name} has "
                f"{len(have)} besides target and id. Leave the others out with --drop, or train "
                "the model on a data frame."
            )
        order = ", ".join(repr(column) for column in have)
        return schema, [f"The model was trained without column names. It gets {order}."]
    missing = [str(column) for column in known if column not in have]
    if missing:
        shown = ", ".join(repr(column) for column in missing[:5])
        raise TableError(f"{name} has no column {shown}, which the model was trained on.")
    return replace(schema, features=tuple(have[str(column)] for column in known)), []


def _adapted(estimator: Any, schema: TableSchema) -> TrainedModel:
    has_names = hasattr(estimator, "feature_names_in_")
    return TrainedModel(
        estimator,
        _own_label(estimator, schema),
        columns=[feature.name for feature in schema.features] if has_names else None,
        as_array=not has_names,
        missing=MISSING_CATEGORY,
    )


def _own_label(estimator: Any, schema: TableSchema) -> Any:
    """Return the class of the model that is written as the rare label in the table."""
    wanted = schema.rare_label.casefold()
    for label in np.asarray(estimator.classes_).tolist():
        whole = isinstance(label, float) and label.is_integer()
        if str(int(label) if whole else label).strip().casefold() == wanted:
            return label
    shown = ", ".join(repr(label) for label in np.asarray(estimator.classes_).tolist()[:8])
    raise TableError(
        f"The model was trained to tell {shown} apart, and the rare label of {schema.target!r} is "
        f"{schema.rare_label!r}. Name one of the model's labels with --rare."
    )


def _check_enough(rows: TableRows, schema: TableSchema, capacity: Capacity) -> None:
    is_rare = labels_of(rows)
    if min(int(is_rare.sum()), int((~is_rare).sum())) < _FEWEST_RARE:
        raise TableError(
            f"{int(is_rare.sum())} of {is_rare.size} rows have the rare label "
            f"{schema.rare_label!r}; at least {_FEWEST_RARE} rare and {_FEWEST_RARE} other rows "
            "are needed to calibrate and test."
        )
    check_rate(capacity, rare_share(is_rare))  # a count without `per` raises an error here


def _measure(model: TableModel, test: TableRows) -> list[RuleResult]:
    is_rare, capacity = labels_of(test), model.flag_capacity
    flagged = model.decide(test).flagged
    order = model.rank(test.X, test.ids, model.list_scores(test))
    return [
        measure_rule("this model, row by row", is_rare, flagged, capacity),
        measure_list("this model, as a list", is_rare, order, capacity),
        measure_random(is_rare, capacity),
    ]


def _card(
    rows: TableRows,
    unseen: TableRows,
    test: TableRows,
    schema: TableSchema,
    measured: list[RuleResult],
) -> ModelCard:
    return ModelCard(
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions_in_use(),
        n_rows=len(rows.X),
        n_rare=int(labels_of(rows).sum()),
        n_train=0,
        n_calibration=len(unseen.X),
        n_calibration_rare=int(labels_of(unseen).sum()),
        n_test=len(test.X),
        n_test_rare=int(labels_of(test).sum()),
        rules=tuple(measured),
        profiles=column_profiles(unseen.X, schema, bins_from=test.X),
    )
