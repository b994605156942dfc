"""Draws tables that others computed; never computes a statistic itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import ArrayLike

from ._core.arrays import Floats
from ._core.extras import load_extra
from ._core.formatting import stated_percent
from ._core.labels import find_rare
from ._core.scoring import rare_label_of, rare_scores
from ._core.validation import check_option
from .capacity import Capacity, check_capacity
from .metrics import CapacityCurve, capacity_curve

__all__ = ["CapacityCurveDisplay"]

#: For each unit of capacity: the column of the curve, and its name on the axis.
_X_AXES = {
    "fraction": ("fraction", "Share of items flagged"),
    "multiple": ("multiple", "Flags per rare item (b)"),
    "flags": ("n_flagged", "Items flagged"),
}
_PLOT_OPTIONS = {
    *("ax", "x", "max_fraction", "band", "marginal", "curve_kwargs", "plot_chance_level"),
}


class CapacityCurveDisplay:
    """A plot of detection against capacity. Needs the extra `plots` (matplotlib).

    Use one of the class methods to make it: :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    curve : CapacityCurve
        What :func:`~shortlist.capacity_curve` returned.
    name : str, default=None
        Name for the legend.
    capacity : Capacity, default=None
        Marked in the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the detection.
    marginal_ax_ : matplotlib Axes or None
        Axes with the detections per extra flag.
    figure_ : matplotlib Figure
        The figure.
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from shortlist import Capacity, CapacityCurveDisplay
    >>> y_true, scores = [1, 0, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    >>> display = CapacityCurveDisplay.from_predictions(
    ...     y_true, scores, capacity=Capacity.count(3), marginal=True
    ... )
    >>> display.ax_.get_ylabel()
    'Share of rare items found'
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        curve: CapacityCurve,
        *,
        name: str | None = None,
        capacity: Capacity | None = None,
    ) -> None:
        self.curve = curve
        self.name = name
        self.capacity = None if capacity is None else check_capacity(capacity)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        capacity: Capacity | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw from true labels and scores.

        Parameters
        ----------
        y_true, scores
            As for :func:`~shortlist.capacity_curve`.
        capacity : Capacity, default=None
            Marked in the picture.
        name : str, default=None
            Name for the legend.
        **options : dict
            As for :func:`~shortlist.capacity_curve` (such as `rare_label`) and for :meth:`plot`.

        Returns
        -------
        CapacityCurveDisplay
        """
        of_plot = {name: options.pop(name) for name in _PLOT_OPTIONS & options.keys()}
        curve = capacity_curve(y_true, scores, **options)
        return cls(curve, name=name, capacity=capacity).plot(**of_plot)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        response_method: str = "auto",
        rare_label: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw from a fitted classifier and test data.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array-like, data frame or sparse matrix of shape (n_items, n_features)
            Test items.
        y : array-like of shape (n_items,)
            Their labels.
        response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
            Which output of the classifier is the score.
        rare_label : label, default=None
            `None` takes that of the estimator where it has a `rare_label_`, or the rarest in `y`.
        name : str, default=None
            Name for the legend; `None` takes the name of the class.
        **options : dict
            As for :meth:`from_predictions`.

        Returns
        -------
        CapacityCurveDisplay
        """
        label = rare_label_of(estimator) if rare_label is None else rare_label
        _, rare_label = find_rare(y, label)
        scores = rare_scores(estimator, X, rare_label=rare_label, response_method=response_method)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, rare_label=rare_label, name=name, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "fraction",
        max_fraction: float = 1,
        band: bool = True,
        marginal: bool = False,
        curve_kwargs: Mapping[str, Any] | None = None,
        plot_chance_level: bool = True,
    ) -> Self:
        """Draw the curve. Several displays can share axes: pass the `ax_` of the first.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; `None` makes a new figure.
        x : {"fraction", "multiple", "flags"}, default="fraction"
            Unit of the capacity axis.
        max_fraction : float, default=1
            Where the capacity axis ends: the largest share of the items.
        band : bool, default=True
            Draw the confidence interval of the detection at each capacity.
        marginal : bool, default=False
            Add the detections per extra flag, on an axis of their own: what would one more
            reviewer find?
        curve_kwargs : dict, default=None
            For matplotlib's `plot`.
        plot_chance_level : bool, default=True
            Draw what flagging at random would find.

        Returns
        -------
        CapacityCurveDisplay
        """
        check_option("x", x, tuple(_X_AXES))
        shown = Capacity.fraction(max_fraction).as_fraction()
        plt = load_extra("matplotlib.pyplot", needed_for="Drawing a capacity curve")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        column = _X_AXES[x][0]
        xs, options = getattr(self.curve, column), {"label": self.name, **(curve_kwargs or {})}
        (self.line_,) = self.ax_.plot(xs, self.curve.detection, **options)
        if band:
            self._draw_band(xs)
        if plot_chance_level:
            ends = [0, self.curve.fraction[-1]]
            label = self._unless_there("At random")
            self.ax_.plot([0, xs[-1]], ends, color="0.4", ls="--", linewidth=1, label=label)
        if self.capacity is not None:
            row = self.curve.at(self.capacity)
            self._mark_capacity(row, row[column], row["detection"])
        self.marginal_ax_ = self._draw_marginal(xs) if marginal else None
        self._finish(_X_AXES[x][1], shown * xs[-1])
        return self

    def _draw_band(self, xs: Floats) -> None:
        label = f"{stated_percent(self.curve.confidence)} interval at each capacity"
        self.ax_.fill_between(
            xs,
            self.curve.detection_low,
            self.curve.detection_high,
            color=self.line_.get_color(),
            alpha=0.15,
            linewidth=0,
            label=self._unless_there(label),
        )

    def _mark_capacity(self, row: Mapping[str, float], where: float, height: float) -> None:
        words = f"{row['n_found']} found\nwith {row['n_flagged']} flags"
        place = {"textcoords": "offset points", "xytext": (8, -4), "va": "top"}
        self.ax_.axvline(where, color="0.2", linestyle=":", linewidth=1)
        self.ax_.plot([where], [height], "o", color="0.2", markersize=5)
        self.ax_.annotate(words, (where, height), **place)

    def _draw_marginal(self, xs: Floats) -> Any:
        axis, color = self.ax_.twinx(), self.line_.get_color()
        axis.step(
            xs, self.curve.marginal, where="post", color=color, ls="-.", linewidth=1, alpha=0.7
        )
        axis.set_ylim(0, None)
        axis.set_ylabel("Rare items found by one more flag (dash-dotted)")
        return axis

    def _unless_there(self, label: str) -> str | None:
        """Return the label, or None if the legend has it already: displays can share axes."""
        return None if label in self.ax_.get_legend_handles_labels()[1] else label

    def _finish(self, unit: str, end: float) -> None:
        self.ax_.set(xlabel=unit, ylabel="Share of rare items found", ylim=(0, 1.02))
        self.ax_.set_xlim(0, end)
        if self.ax_.get_legend_handles_labels()[1]:
            # The marginal line is at the bottom.
            self.ax_.legend(loc="lower right" if self.marginal_ax_ is None else "center right")
