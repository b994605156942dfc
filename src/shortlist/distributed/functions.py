"""The seven functions of an engine: one piece of code for files, Spark and Dask."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from sys import maxsize
from typing import Any, NamedTuple

import numpy as np

from .._core.extras import load_extra
from .._core.validation import check_number, check_seed
from ..assignment.assigned import Assignment, check_limit, solve_assignment
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError, TableError
from ..tables import TableModel
from ..tables.measure import Evaluation
from ..thresholds import CalibratedThreshold
from ..thresholds.calibrate import calibrate_counts
from ..thresholds.samples import ReferencePrevalence
from ..thresholds.terms import Terms
from ._lists import WEIGHT, find_candidates, find_list, sampled_rows
from ._models import ModelRows, measure_model, plan_rows
from ._ranks import ALL, Ranks
from .engine import TIE_KEY, Engine, Plan, as_columns, check_columns, check_present, table_schema


class LargeAssignment(NamedTuple):
    """The rows of a table that get a column, and the assignment that was solved for them."""

    rows: Any
    solved: Assignment


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
        total: Capacity | None = None,
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
            A column with segments. One capacity then holds in each of them.
        total : Capacity, default=None
            With segments: how many rows may be listed in total.
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
        ranks = Ranks(self._engine, table, score, id, segment, check_seed(random_state))
        schema = table_schema(self._engine, table, added={TIE_KEY: "double"}, free=["rank"])
        kernel = find_list(ranks, capacity, total)
        highest = self._engine.between(table, score, kernel.least, np.inf)
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
        ranks = Ranks(self._engine, table, score, id, seed=check_seed(random_state))
        reference = ReferencePrevalence(prevalence)
        return calibrate_counts(
            ranks.sizes[ALL],
            check_capacity(capacity),
            Terms(guarantee, confidence, reference, ranks.seed, n_batches),
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

        Returns
        -------
        Evaluation
            M and its interval, flag rate, precision and the capacity curve.
        """
        if target is None:
            if not isinstance(model, TableModel):
                raise TableError("Name the column with the labels: target=...")
            target = model.schema.target
        rows = ModelRows(model, id, segment, target)
        return measure_model(self._engine, self._engine.opened(table, passes=2), rows)

    def sample(
        self,
        table: Any,
        share: float,
        *,
        target: str,
        rare_label: Any,
        id: str,
        random_state: Any = None,
    ) -> Any:
        """Keep all rare rows and a share of the others, with weights, to train in memory.

        A hash of the ids draws the sample, so the same rows are drawn however they are divided.

        Parameters
        ----------
        table
            As for `select`.
        share : float
            Share of the other rows to keep, above 0 and at most 1.
        target, rare_label : str, label
            The column with the labels, and the label of which all rows are kept.
        id : str
            The column with the ids.
        random_state : int, RandomState instance or None, default=None
            Key of the hash.

        Returns
        -------
        pyarrow.Table or data frame
            The kept rows with all their columns, and `weight`: 1 for rare rows, 1 / share for
            others.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from shortlist.distributed import sample
        >>> table = pa.table({"case": range(1000), "fraud": [i % 100 == 0 for i in range(1000)]})
        >>> drawn = sample(table, 0.1, target="fraud", rare_label=True, id="case")
        >>> sum(drawn["fraud"].to_pylist()), drawn.num_rows
        (10, 109)
        """
        share = float(check_number("share", share))
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {share:g}.")
        table = self._engine.opened(table, passes=1)
        check_present(self._engine.column_types(table), [target])
        check_columns(self._engine, table, id=id)
        # Another key than that of the ties: which rows are learned from says nothing about them.
        seed = (check_seed(random_state) + 1) % 2**64
        options = {"target": target, "rare_label": rare_label, "id": id, "share": share}
        kernel = partial(sampled_rows, **options, seed=seed)
        schema = table_schema(self._engine, table, added={WEIGHT: "double"})
        return self._engine.map_rows(Plan(table, None, kernel, schema))

    def assign(
        self,
        table: Any,
        capacities: Mapping[str, int | None],
        *,
        id: str,
        total: int | None = None,
        segment: str | None = None,
        segment_capacities: Mapping[Any, int | None] | None = None,
        random_state: Any = None,
    ) -> LargeAssignment:
        """Choose a column for each row within joint limits, exactly: :func:`shortlist.assign`.

        If at most C rows get a column in all, only the C highest of each column can; within a
        segment with room for K rows, only the K highest. These are solved for in memory, with one
        row more of each, which sets the prices. So the answer and its proof hold for all rows. The
        scale that values are rounded to is that of the rows solved for.

        Parameters
        ----------
        table
            As for `select`.
        capacities : dict from columns to int or None
            How many rows may get each column; `None` means no limit. The columns hold what a row is
            worth there, compared with leaving it; rows that are worth nothing are left.
        id : str
            The column with the ids.
        total : int, default=None
            How many rows may get any column.
        segment : str, default=None
            A column with the segment of each row.
        segment_capacities : dict from segments to int or None, default=None
            How many rows of each segment may get any column; rows of other segments are left.
        random_state : int, RandomState instance or None, default=None
            Key of the hash that orders rows of equal worth.

        Returns
        -------
        LargeAssignment
            `rows` get a column: an Arrow table of ids, segments, values and `column`. `solved` is
            what :func:`shortlist.assignment.solve_assignment` found: `value`, `bound` and prices.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from shortlist.distributed import assign
        >>> table = pa.table({"case": ["a", "b", "c"], "call": [5, 6, 3], "visit": [1, 4, 0]})
        >>> found = assign(table, {"call": 1, "visit": 1}, id="case")
        >>> found.rows.select(["case", "column"]).to_pylist()
        [{'case': 'a', 'column': 'call'}, {'case': 'b', 'column': 'visit'}]
        >>> found.solved.value, found.solved.bound
        (9.0, 9.0)
        """
        if (segment is None) != (segment_capacities is None):
            raise CapacityError(
                "segment=... and segment_capacities=... belong together; pass both, or neither."
            )
        limits = _joint_limits(capacities, total, segment_capacities)
        table = self._engine.opened(table, passes=3)
        ranks = Ranks(self._engine, table, "", id, segment, check_seed(random_state))
        rows = find_candidates(ranks, list(capacities), limits)
        columns = as_columns(rows, rows.column_names)
        solved = solve_assignment(
            np.column_stack([np.zeros(rows.num_rows), *(columns[name] for name in capacities)]),
            list(capacities.values()),
            total=total,
            segments=None if segment is None else columns[segment],
            segment_capacities=segment_capacities,
            ids=columns[id],
            random_state=ranks.seed,
        )
        pa = load_extra("pyarrow", needed_for="Large assignments")
        labels = pa.array(np.array([None, *capacities])[solved.columns], pa.string())
        rows = rows.append_column("column", labels).filter(labels.is_valid())
        return LargeAssignment(rows, solved)


def _joint_limits(
    capacities: Mapping[str, Any], total: Any, by_segment: Mapping[Any, Any] | None
) -> Capacity | dict[Any, Capacity]:
    """Return how many of the highest rows of a column, or of its segments, can matter."""
    columns = [check_limit(f"capacities[{name!r}]", k, maxsize) for name, k in capacities.items()]
    rooms = {
        name: check_limit(f"segment_capacities[{name!r}]", k, maxsize)
        for name, k in ({ALL: None} if by_segment is None else by_segment).items()
    }
    most = min(check_limit("total", total, maxsize), sum(columns), sum(rooms.values()))
    if not columns or most == maxsize:
        raise CapacityError(
            "Nothing limits how many rows get a column. Give each column a capacity, or a total."
        )
    # The one row more is left: prices at which it is worth nothing leave lower rows nothing, too.
    limits = {name: Capacity.count(min(k, most) + 1) for name, k in rooms.items()}
    return limits if by_segment is not None else limits[ALL]
