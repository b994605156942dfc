"""The scores of parsed lines: by compiled functions, or by the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Floats
from .._core.ranking import lift
from .._core.validation import check_option
from .._core.work import weigh
from ..tables import TableModel
from ..tables.row_parser import RowParser
from ._lines import Item

__all__ = ["SCORERS", "ItemScorer", "scorer_identity"]

#: How lines are scored: by compiled functions where that is possible, or by the model itself.
SCORERS = ("auto", "model")


class ItemScorer:
    """Scores parsed lines of JSON, each as if it were alone.

    Two ways to compute a score may differ in the last digit, which can change a tie. A stream
    therefore takes one of them for all of its lines.

    Parameters
    ----------
    model : TableModel
        The model.
    parser : RowParser
        Has parsed the lines.
    scorer : {"auto", "model"}, default="auto"
        "auto" takes :attr:`TableModel.row_scorer <shortlist.tables.TableModel>`, "model" the
        classifier and a data frame, which takes milliseconds for a line.
    """

    def __init__(self, model: TableModel, parser: RowParser, *, scorer: str = "auto") -> None:
        self._classifier, self._parser = model.classifier, parser
        self._compiled = None if _kind(model, scorer) == "model" else model.row_scorer

    def scores(self, items: list[Item]) -> Floats:
        """Score valid lines; a line that the model cannot score raises a ValueError.

        Parameters
        ----------
        items : list of Item
            As :meth:`LineReader.read` returns them, without errors.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores in the precision in which they are compared; with values or efforts, value *
            probability / effort.
        """
        if not items:
            return np.empty(0)
        scores = np.asarray(self._raw(items), dtype=np.float64)
        scores = np.asarray(_weighed(scores, items), dtype=np.float64)
        if not np.isfinite(scores).all():
            raise ValueError("The model returned a score that is not a finite number.")
        return np.asarray(lift(scores), dtype=np.float64)

    def _raw(self, items: list[Item]) -> Floats:
        rows = [item.values for item in items]
        if self._compiled is None:
            return self._classifier.score_samples(self._parser.frame(rows))
        return self._compiled.score_rows(rows)


def _weighed(scores: Floats, items: list[Item]) -> Floats:
    first = items[0]
    values = None if first.value is None else np.array([item.value for item in items], np.float64)
    efforts = None
    if first.effort is not None:
        efforts = np.array([item.effort for item in items], np.float64)
    return weigh(scores, values, efforts)


def scorer_identity(model: TableModel, scorer: str = "auto") -> dict[str, Any]:
    """Return what the state of a stream remembers about the scores of its lines.

    Parameters
    ----------
    model : TableModel
        The model.
    scorer : {"auto", "model"}, default="auto"
        As for :class:`ItemScorer`.

    Returns
    -------
    dict
        Empty if the scores are those of the model itself: a stream can then be resumed with either.
    """
    return {"scorer": "bounded"} if _kind(model, scorer) == "bounded" else {}


def _kind(model: TableModel, scorer: str) -> str:
    check_option("scorer", scorer, SCORERS)
    return "model" if scorer == "model" else model.row_scorer.kind
