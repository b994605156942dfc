"""The functions for data frames of an engine: one piece of code for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from ..capacity import Capacity
from ..thresholds import CalibratedThreshold
from ._engine import Engine, table_schema
from ._evaluate import LargeEvaluation, measure_model
from ._joint import LargeAssignment, find_assignment
from ._models import ModelRows, plan_rows
from ._operations import TIE_KEY, ListedRows, find_list, find_threshold
from ._sampling import plan_sample

__all__ = ["FrameEngine", "FrameFunctions"]


class FrameEngine(Engine, Protocol):
    """An engine whose tables are data frames: plans that every pass computes anew."""

    def computed_once(self, table: Any) -> Any:
        """Return a frame that several passes see alike: itself, or one that is kept."""
        ...

    def listed_rows(self, table: Any, kernel: ListedRows, schema: Any, score: str) -> Any:
        """Return the rows of a list as a frame, with a column `rank`."""
        ...


class FrameFunctions:
    """Lists, thresholds, scores and evaluations of data frames.

    Parameters
    ----------
    engine : FrameEngine
        Calls kernels where the rows are.
    """

    def __init__(self, engine: FrameEngine) -> None:
        self._engine = engine

    def select(
        self,
        df: Any,
        capacity: Capacity | Mapping[Any, Capacity],
        *,
        score: str,
        id: str,
        segment: str | None = None,
        total: Capacity | None = None,
        random_state: Any = None,
    ) -> Any:
        """List the highest scores of a data frame, exactly: the list of :func:`shortlist.select`.

        Sorting and limiting a data frame is wrong where scores are tied, and approximate quantiles
        are wrong everywhere. Here the frame is read three times at most before the listed rows are
        read, and small summaries travel.

        Parameters
        ----------
        df : data frame
            Scored rows. If the frame does more than read files or kept rows, it is kept first:
            cached by Spark, persisted by Dask. A frame of Spark that draws random numbers is
            refused.
        capacity, score, id, segment, total, random_state
            As for :func:`shortlist.distributed.select`.

        Returns
        -------
        data frame
            The listed rows with all their columns, and `rank` from 1 on.
        """
        df = self._engine.computed_once(df)
        options: dict[str, Any] = {"score": score, "id": id, "segment": segment, "total": total}
        kernel = find_list(self._engine, df, capacity, **options, random_state=random_state)
        schema = table_schema(self._engine, df, added={TIE_KEY: "double"})
        return self._engine.listed_rows(df, kernel, schema, score)

    def calibrate(
        self, df: Any, capacity: Capacity, *, score: str, id: str | None = None, **options: Any
    ) -> CalibratedThreshold:
        """Find the lowest threshold that keeps a capacity, from a column of a data frame.

        Parameters
        ----------
        df : data frame
            Calibration scores.
        capacity, score, id
            As for :func:`shortlist.distributed.calibrate`.
        **options
            `prevalence`, `guarantee`, `confidence`, `n_batches` and `random_state`, as there.

        Returns
        -------
        CalibratedThreshold
        """
        df = self._engine.computed_once(df)
        return find_threshold(self._engine, df, capacity, score=score, id=id, **options)

    def score(self, model: Any, df: Any, *, id: str, keep: Collection[str] = ()) -> Any:
        """Score a data frame where its rows are.

        The model is sent to each worker once. Versions of the packages are compared first; Spark
        asks the executors of an application once.

        Parameters
        ----------
        model, id, keep
            As for :func:`shortlist.distributed.score`.
        df : data frame
            With the columns of the model.

        Returns
        -------
        data frame
            Ids, kept columns and `score`. Write it before you select from it.
        """
        return self._decided(ModelRows(model, id), df, ("score",), [id, *keep])

    def flag(
        self,
        model: Any,
        df: Any,
        *,
        id: str,
        segment: str | None = None,
        keep: Collection[str] = (),
    ) -> Any:
        """Decide about every row of a data frame with the calibrated rule of a model.

        Parameters
        ----------
        model, id, segment, keep
            As for :func:`shortlist.distributed.flag`.
        df : data frame
            With the columns of the model. A streaming frame of Spark is decided row by row as it
            arrives.

        Returns
        -------
        data frame
            Ids, kept columns, `score` and `flagged`.
        """
        said = ("score", "flagged")
        return self._decided(ModelRows(model, id, segment), df, said, [id, *keep])

    def _decided(self, rows: ModelRows, df: Any, said: tuple[str, ...], kept: list[str]) -> Any:
        kernel, schema = plan_rows(self._engine, df, rows, said=said, kept=kept)
        return self._engine.map_rows(df, kernel, schema)

    def evaluate(
        self,
        model: Any,
        df: Any,
        *,
        id: str | None,
        target: str | None = None,
        segment: str | None = None,
    ) -> LargeEvaluation:
        """Measure a model on a labelled data frame.

        Rows are scored once, and their scores are kept while they are counted.

        Parameters
        ----------
        model, id, target, segment
            As for :func:`shortlist.distributed.evaluate`.
        df : data frame
            With the columns of the model, and the labels.

        Returns
        -------
        LargeEvaluation
        """
        df = self._engine.computed_once(df)
        return measure_model(self._engine, model, df, id=id, target=target, segment=segment)

    def sample(
        self,
        df: Any,
        share: float,
        *,
        target: str,
        rare_label: Any,
        id: str,
        random_state: Any = None,
    ) -> Any:
        """Keep all rare rows and a share of the others, with weights, to train on one machine.

        A hash of the ids draws the sample, so the same rows are drawn however they are divided.

        Parameters
        ----------
        df : data frame
            Labelled rows.
        share, target, rare_label, id, random_state
            As for :func:`shortlist.distributed.sample`.

        Returns
        -------
        data frame
            The kept rows with all their columns, and `weight`: 1 for rare rows, 1 / share for
            others.
        """
        options: dict[str, Any] = {"target": target, "rare_label": rare_label, "id": id}
        kernel, schema = plan_sample(self._engine, df, share, **options, random_state=random_state)
        return self._engine.map_rows(df, kernel, schema)

    def assign(
        self, df: Any, capacities: Mapping[str, int | None], *, id: str, **options: Any
    ) -> LargeAssignment:
        """Choose a column for each row of a data frame within joint limits, exactly.

        Parameters
        ----------
        df : data frame
            With a column of values for each choice.
        capacities, id
            As for :func:`shortlist.distributed.assign`.
        **options
            `total`, `segment`, `segment_capacities` and `random_state`, as there.

        Returns
        -------
        LargeAssignment
        """
        df = self._engine.computed_once(df)
        return find_assignment(self._engine, df, capacities, id=id, **options)
