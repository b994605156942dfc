"""From a table of reviews to what the policy in use misses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask
from .._core.formatting import percent
from .._core.probing import PROBE, PROBE_WITHOUT_SLOT
from .._core.validation import name_rows
from ..exceptions import TableError
from ..feedback import MissedEstimate, estimate_missed
from ._column_guesses import guess_column
from ._labels import MOST_LABELS, as_texts, folded
from ._source import INFER_ALL, ReadOptions
from .column_format import MISSING_CATEGORY, PLAIN
from .columns import Feature, RepeatedIds
from .model import TableModel
from .read import open_table, read_whole, table_at
from .rules import AS_LIST


@dataclass(frozen=True)
class MissedResult:
    """What a table of reviews says, compared with what the model card promised.

    Attributes
    ----------
    estimate : MissedEstimate
        Missed cases, detection and prevalence, with intervals.
    expected_detection : float or None
        Detection of the list by the model card.
    has_fallen : bool
        Whether the detection lies below that, with its whole interval.
    verdict : str
        What the two say together, in a sentence or two.
    """

    estimate: MissedEstimate
    expected_detection: float | None
    has_fallen: bool

    @property
    def verdict(self) -> str:
        """What the estimate and the model card say together."""
        if self.expected_detection is None:
            return "The model card has no figures for lists to compare with."
        expected = percent(self.expected_detection)
        if self.has_fallen:
            return (
                f"Alarm: the model card says that the list finds {expected}, and detection has "
                "fallen below that. Fit the model to recent labelled cases."
            )
        if not self.estimate.is_enough:
            return f"It is too early to say whether the list still finds {expected}."
        return f"Nothing contradicts the model card, by which the list finds {expected}."


def missed_in_table(
    model: TableModel,
    path: Path,
    *,
    outcome: str | None = None,
    id: str | None = None,
    period: str | None = None,
    confidence: float = 0.95,
    challenger: TableModel | None = None,
    value: str | None = None,
    reading: ReadOptions | None = None,
) -> MissedResult:
    """Estimate what is missed from a table of reviews, with `value` in values as well.

    A model that was fitted with values takes its column, if the table has it.
    """
    path, outcome = table_at(path), outcome or model.schema.target
    reading = INFER_ALL if reading is None else reading
    with open_table(path, reading=reading) as source:
        others = (name for name in (id, period, value) if name)
        names = [outcome, "selected_by", "inclusion", *others]
        source.require(names, "which a table of reviews needs")
        table = read_whole(source)
        source.notes.extend(_about_reviews(table, model.schema.id, path))

    of_fit = None if model.schema.work is None else model.schema.work.value
    if value is None and of_fit in table.column_names and not table[of_fit].null_count:
        value = of_fit

    def texts(name: str) -> NDArray[Any]:
        return as_texts(table[name], name)

    try:
        estimate = estimate_missed(
            _outcomes(texts(outcome), outcome, model),
            ["not selected" if word == MISSING_CATEGORY else word for word in texts("selected_by")],
            _numbers(table, "inclusion", reading),
            ids=None if id is None else texts(id),
            periods=None if period is None else texts(period),
            confidence=confidence,
            values=None if value is None else _numbers(table, value, reading),
            challenger=None if challenger is None else _flags(challenger, path, reading),
        )
    except ValueError as error:
        raise TableError(f"{path}: {error} Rows are counted from 0 below the heading.") from error
    by_card = (rule.detection for rule in model.card.rules if rule.rule == AS_LIST)
    expected = next(by_card, None)
    fallen = expected is not None and estimate.has_fallen_below(expected)
    return MissedResult(estimate, expected, fallen)


def _flags(model: TableModel, path: Path, reading: ReadOptions | None) -> Mask:
    """Return which rows a model would flag."""
    with model.schema.open(path, reading=reading) as source:
        return model.decide(model.schema.read(source)).flagged


def _outcomes(labels: NDArray[Any], outcome: str, model: TableModel) -> NDArray[Any]:
    """Return which labels are the rare one, None where there is none; refuse unknown labels."""
    is_empty, said = labels == MISSING_CATEGORY, np.array([folded(label) for label in labels])
    known = [folded(label) for label in model.schema.labels]
    unknown = np.flatnonzero(~is_empty & ~np.isin(said, known))
    if unknown.size and 0 < len(known) < MOST_LABELS:
        raise ValueError(
            f"{unknown.size} cases have a label in {outcome!r} that the model was not fitted with, "
            f"such as {labels[unknown[0]]!r}; see {name_rows(unknown)}. Known are "
            f"{', '.join(map(repr, model.schema.labels))}. Leave the label empty while the outcome "
            "is unknown."
        )
    outcomes = (said == folded(model.schema.rare_label)).astype(object)
    outcomes[is_empty] = None
    return outcomes


def _numbers(table: Any, name: str, reading: ReadOptions) -> Doubles:
    """Return probabilities or values, however they are written; NaN where there is none."""
    column = table[name]
    guess = guess_column(column, name, format=PLAIN.adapted(name, reading), numeric=True)
    if guess.kind != "numeric":
        raise ValueError(
            f"The column {name!r} must hold numbers; it holds {column.drop_null()[0].as_py()!r}, "
            "for example."
        )
    return np.asarray(Feature(name, "numeric", guess.format).values(column), dtype=np.float64)


def _about_reviews(table: Any, id: str | None, path: Path) -> list[str]:
    """Say what makes reviews useless or counts them twice."""
    words = {str(word).strip().casefold() for word in table["selected_by"].unique().to_pylist()}
    notes = []
    if not words & {PROBE, PROBE_WITHOUT_SLOT}:
        notes.append(
            f"No row of {path} has {PROBE!r} in 'selected_by': without probes, what is missed "
            "cannot be known. Make lists with probe=0.1"
        )
    if id is not None and id in table.column_names:
        ids, twice = RepeatedIds(), "and count as reviews of their own. If they are the same"
        ids.add(as_texts(table[id], id))
        notes += ids.notes(id, f"{twice} reviews, keep one row of each.")
    return notes
