"""The five functions of an engine: one piece of code for files, Spark and Dask."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrow import pa
from .._core.ids import hash_ids
from .._core.labels import ReferencePrevalence
from .._core.ranking import Cut
from .._core.validation import check_seed
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, TableError
from ..tables import TableModel
from ..tables.measure import Evaluation, check_find
from ..thresholds import CalibratedThreshold
from ..thresholds.calibrate import calibrate_counts
from ..thresholds.terms import Terms
from ._models import ModelRows, measure_model, plan_rows
from ._ranks import ALL, Order, Ranks
from .engine import TIE_KEY, Engine, Plan, as_columns, check_columns, table_schema


class Functions:
    """Lists, thresholds, scores and evaluations of the tables of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def select(
        self,
        table: Any,
        capacity: Capacity | Mapping[Any, Capacity],
        *,
        score: str,
        id: str,
        segment: str | None = None,
        random_state: Any = None,
    ) -> Any:
        """List the highest scores of a table that need not fit into memory, exactly.

        The list is that of :func:`shortlist.select` on the whole column, row for row, tied scores
        included. Sorting and limiting a table is wrong where scores are tied, and approximate
        quantiles are wrong everywhere.

        Parameters
        ----------
        table : path, Arrow dataset, Arrow table or data frame
            For `shortlist.distributed`, a Parquet or Feather file, a folder of them, or Arrow; for
            `shortlist.spark` and `shortlist.dask`, a data frame of theirs. A frame that does more
            than read files or kept rows is kept first: cached by Spark, persisted by Dask. A frame
            of Spark that draws random numbers is refused.
        capacity : Capacity or dict from segments to Capacity
            How many rows may be listed: of all rows, or of each segment. Rows of segments that a
            dict does not name are not listed.
        score, id : str
            Columns with the scores and with the ids, by which tied rows are put in order.
        segment : str, default=None
            A column with segments. One capacity then holds in each of them. For a limit on all of
            them together, select again from the list.
        random_state : int, RandomState instance or None, default=None
            Key of the hash that orders tied rows.

        Returns
        -------
        pyarrow.Table or data frame
            The listed rows with all their columns, and `rank` from 1 on.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from shortlist import Capacity
        >>> from shortlist.distributed import select
        >>> table = pa.table({"case": ["a", "b", "c", "d"], "risk": [0.2, 0.9, 0.4, 0.7]})
        >>> select(table, Capacity.count(2), score="risk", id="case").to_pylist()
        [{'case': 'b', 'risk': 0.9, 'rank': 1}, {'case': 'd', 'risk': 0.7, 'rank': 2}]
        """
        table = self._engine.opened(table, passes=3)
        check_columns(self._engine, table, score=score, id=id, segment=segment)
        schema = table_schema(self._engine, table, added={TIE_KEY: "double"}, free=["rank"])
        ranks = Ranks(self._engine, table, Order(score, id, segment, check_seed(random_state)))
        cuts = ranks.cuts(_wanted(capacity, ranks))
        least = min((cut.value for cut in cuts.values()), default=np.inf)
        highest = self._engine.between(table, score, least, np.inf)
        kernel = partial(listed_rows, order=ranks.order, cuts=cuts)
        rows = self._engine.map_rows(Plan(highest, None, kernel, schema))
        return self._engine.in_order(rows, score)

    def calibrate(
        self,
        table: Any,
        capacity: Capacity,
        *,
        score: str,
        id: str | None = None,
        prevalence: Any = None,
        guarantee: str = "expected",
        confidence: float = 0.95,
        n_batches: int = 1,
        random_state: Any = None,
    ) -> CalibratedThreshold:
        """Find the lowest threshold that keeps a capacity, from a column of any length.

        The answer is that of :func:`shortlist.calibrate_threshold` on the whole column.

        Parameters
        ----------
        table
            As for `select`.
        capacity, prevalence, guarantee, confidence, n_batches, random_state
            As for :func:`shortlist.calibrate_threshold`.
        score : str
            The column with the calibration scores.
        id : str, default=None
            The column with the ids, which divide tied scores. Without it, they are left out as a
            block.

        Returns
        -------
        CalibratedThreshold

        Examples
        --------
        >>> import pyarrow as pa
        >>> from shortlist import Capacity
        >>> from shortlist.distributed import calibrate
        >>> calibrate(pa.table({"risk": range(100)}), Capacity.fraction(0.1), score="risk").value
        90.0
        """
        table = self._engine.opened(table, passes=3)
        check_columns(self._engine, table, score=score, id=id)
        ranks = Ranks(self._engine, table, Order(score, id, seed=check_seed(random_state)))
        reference = ReferencePrevalence(prevalence)
        return calibrate_counts(
            ranks.sizes[ALL],
            check_capacity(capacity),
            Terms(guarantee, confidence, reference, ranks.order.seed, n_batches),
            find_cut=ranks.cut_at,
            ties="exclude" if id is None else "hash",
        )

    def score(
        self,
        model: Any,
        table: Any,
        *,
        id: str,
        keep: Collection[str] = (),
        out: Path | None = None,
    ) -> Any:
        """Score a table where its rows are.

        A model is sent to each worker of a cluster once. A worker with other versions of its
        packages raises an error.

        Parameters
        ----------
        model : TableModel or CapacityClassifier
            From a model file, or fitted on a data frame.
        table : path, Arrow dataset, Arrow table or data frame
            With the columns of the model, as for `select`. Text files are read by
            :mod:`shortlist.tables`.
        id : str
            The column with the ids.
        keep : collection of str, default=()
            Other columns to carry along.
        out : Path, default=None
            Where to write the scores as Parquet, in bounded memory; `None` returns them.

        Returns
        -------
        pyarrow.Table, data frame or None
            Ids, kept columns and `score`. Write a data frame before you select from it.

        Examples
        --------
        >>> import pandas as pd
        >>> import pyarrow as pa
        >>> from sklearn.linear_model import LogisticRegression
        >>> from shortlist import Capacity, CapacityClassifier
        >>> from shortlist.datasets import FRAUD_FEATURES, make_fraud
        >>> from shortlist.distributed import score
        >>> X, y = make_fraud(n_samples=2000)
        >>> X = pd.DataFrame(X, columns=list(FRAUD_FEATURES))
        >>> learner = LogisticRegression(max_iter=10_000)
        >>> model = CapacityClassifier(learner, capacity=Capacity.fraction(0.05))
        >>> table = pa.Table.from_pandas(X.assign(case=range(2000)))
        >>> score(model.fit(X, y), table, id="case").column_names
        ['case', 'score']
        """
        return self._decided(ModelRows(model, id), table, ("score",), [id, *keep], out)

    def flag(
        self,
        model: Any,
        table: Any,
        *,
        id: str,
        segment: str | None = None,
        keep: Collection[str] = (),
        out: Path | None = None,
    ) -> Any:
        """Decide about every row of a table with the calibrated rule of a model.

        Each row is decided on its own, so the answer does not depend on how rows are divided. A
        streaming frame of Spark is decided row by row as it arrives.

        Parameters
        ----------
        model, table, id, keep, out
            As for :func:`score`.
        segment : str, default=None
            The column with the segments, if the model has capacities for them.

        Returns
        -------
        pyarrow.Table, data frame or None
            Ids, kept columns, `score` and `flagged`. If several models decide, each row has the
            score of the model that decides about it; rank by :func:`score`.
        """
        rows = ModelRows(model, id, segment)
        return self._decided(rows, table, ("score", "flagged"), [id, *keep], out)

    def _decided(
        self, rows: ModelRows, table: Any, said: tuple[str, ...], kept: list[str], out: Path | None
    ) -> Any:
        table = self._engine.opened(table, passes=1)
        plan = plan_rows(self._engine, table, rows, said=said, kept=kept)
        return self._engine.map_rows(plan) if out is None else self._engine.write_rows(plan, out)

    def evaluate(
        self,
        model: Any,
        table: Any,
        *,
        id: str | None,
        target: str | None = None,
        segment: str | None = None,
        find: float | None = None,
    ) -> Evaluation:
        """Measure a model on a labelled table that need not fit into memory.

        Rows are scored once, and their scores are kept while they are counted: in a temporary file,
        or by the engine. All numbers are those of one machine, at any size.

        Parameters
        ----------
        model, table, id
            As for :func:`score`.
        target : str, default=None
            The column with the labels; `None` takes the target of a table model.
        segment : str, default=None
            The column with the segments, if the model has capacities for them.
        find : float, default=None
            A share of the rare cases to find, such as 0.9; says how many reviews that takes.

        Returns
        -------
        Evaluation
            M and its interval, flag rate, precision and the capacity curve; with `find`, `needed`.
        """
        check_find(find)
        if target is None:
            if not isinstance(model, TableModel):
                raise TableError("Name the column with the labels: target=...")
            target = model.schema.target
        rows = ModelRows(model, id, segment, target)
        return measure_model(self._engine, self._engine.opened(table, passes=2), rows, find)


# --- kernels ---


def listed_rows(block: Any, *, order: Order, cuts: dict[Any, Cut]) -> Any:
    """Keep the rows of an Arrow table before cuts, and add the key that orders tied rows."""
    columns = as_columns(block, order.columns)
    listed = order.before(columns, cuts)
    keys = hash_ids(columns[str(order.id)][listed], seed=order.seed)
    return block.filter(pa.array(listed)).append_column(TIE_KEY, pa.array(keys, pa.float64()))


def _wanted(limits: Capacity | Mapping[Any, Capacity], ranks: Ranks) -> dict[Any, int]:
    """Return how many rows of each segment are wanted."""
    if not isinstance(limits, Mapping):
        limit = check_capacity(limits)
        return {name: limit.max_flags(n) for name, n in ranks.sizes.items()}
    if ranks.order.segment is None:
        raise CapacityError("A dict of capacities needs segment=..., the column with the segments.")
    unknown = [name for name in limits if name not in ranks.sizes]
    if unknown:
        raise TableError(
            f"The column {ranks.order.segment!r} has no rows with "
            f"{', '.join(map(repr, unknown))}; it has "
            f"{', '.join(map(repr, sorted(ranks.sizes, key=str)))}."
        )
    return {
        name: check_capacity(limit).max_flags(ranks.sizes[name]) for name, limit in limits.items()
    }
