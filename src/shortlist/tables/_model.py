"""A fitted classifier together with the table it was fitted on: what a model file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..classifier import CapacityClassifier
from ._card import ModelCard
from ._schema import TableSchema

__all__ = ["TableModel"]


@dataclass(frozen=True)
class TableModel:
    """A model for tables.

    Attributes
    ----------
    classifier : CapacityClassifier
        Fitted; its labels are True for the rare rows and False for the others.
    schema : TableSchema
        The columns it needs.
    reference : dict
        What was usual in each column of the training rows: the median, or the most frequent
        category. Reasons for a score are told against it.
    learner : str
        Name of the learner inside.
    card : ModelCard or None
        Where the model comes from; None in model files of older versions.
    twin : fitted pipeline or None
        The same learner trained on SMOTE's rows, for comparison in reports.
    """

    classifier: CapacityClassifier
    schema: TableSchema
    reference: dict[str, Any]
    learner: str
    card: ModelCard | None = None
    twin: Any = None
