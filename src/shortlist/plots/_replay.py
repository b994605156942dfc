"""A picture of a replayed stream: flags and detections, period by period."""

from __future__ import annotations

from typing import Any, Self

from .._core.extras import load_extra
from ..online import Replay

__all__ = ["ReplayDisplay"]


class ReplayDisplay:
    """Draw flags beside the capacity, and detections beside those of the oracle, over time.

    Parameters
    ----------
    table : Replay
        The result of :func:`~shortlist.online.replay`.
    name : str, default="controller"
        Name for the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_flags_, ax_detections_ : matplotlib Axes
        Its two panels.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from shortlist import Capacity
    >>> from shortlist.online import QuantileTracker, replay, simulate_stream
    >>> from shortlist.plots import ReplayDisplay
    >>> stream = simulate_stream("jump", days=6)
    >>> tracker = QuantileTracker(
    ...     Capacity.fraction(0.01), calibration_scores=stream.calibration_scores
    ... )
    >>> table = replay(stream.scores, stream.y, stream.times, tracker)
    >>> display = ReplayDisplay(table).plot()
    >>> display.ax_flags_.get_ylabel()
    'Flags'
    >>> plt.close(display.figure_)
    """

    def __init__(self, table: Replay, *, name: str = "controller") -> None:
        self.table = table
        self.name = name

    def plot(self, *, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : pair of matplotlib Axes, default=None
            The panels for flags and detections; `None` makes a new figure.

        Returns
        -------
        self
        """
        if axes is None:
            plt = load_extra("matplotlib.pyplot", needed_for="Drawing")
            _, axes = plt.subplots(2, sharex=True, figsize=(8, 5), layout="constrained")
        self.ax_flags_, self.ax_detections_ = axes
        self.figure_ = self.ax_flags_.figure
        self._draw_flags()
        self._draw_detections()
        return self

    def _draw_flags(self) -> None:
        table, ax = self.table, self.ax_flags_
        ax.step(table.periods, table.capacity, where="mid", color="black", label="capacity")
        ax.plot(table.periods, table.fixed_flags, ":", color="gray", label="fixed threshold")
        ax.plot(table.periods, table.flags, "o-", markersize=3, label=self.name)
        # A fixed threshold may flag ten times as much, and would flatten everything else.
        ax.set_ylim(0, 1.1 * max(3 * int(table.capacity.max()), int(table.flags.max()), 1))
        ax.set_ylabel("Flags")
        ax.legend(frameon=False, ncols=3)

    def _draw_detections(self) -> None:
        table, ax = self.table, self.ax_detections_
        oracle = table.oracle_detections
        ax.step(table.periods, oracle, where="mid", color="black", label="oracle")
        fixed = table.fixed_adjusted_detections
        ax.plot(table.periods, fixed, ":", color="gray", label="fixed threshold")
        ax.plot(table.periods, table.adjusted_detections, "o-", markersize=3, label=self.name)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("Period")
        ax.set_ylabel("Found within capacity")
        ax.legend(frameon=False, ncols=3)
