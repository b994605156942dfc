"""Drift since calibration: which columns and scores have shifted, and how sure that is.

Tests are valid for any counts. They need no labels, so that reports and checks can share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, hypergeom, ks_2samp

from .._core.arrays import Floats
from .._core.files import to_plain
from .._core.ranking import lift
from ..thresholds import CalibratedThreshold
from .columns import MISSING_CATEGORY, is_missing
from .schema import TableSchema

_N_BINS = 10
_MOST_CATEGORIES = 20
# The usual limits of the index for a moderate and for a large shift.
_MODERATE, _LARGE = 0.1, 0.25
#: A shift is named if its p-value, corrected for the number of tests, is below this level.
SIGNIFICANT = 0.01
_PSEUDO_COUNT = 0.5
# Random divisions of the rows: at least so many, at least so many per column, and in steps of so
# many until so many of them shift as much as the observed one does.
_DIVISIONS, _PER_COLUMN, _STEP, _ENOUGH = 9_999, 500, 250, 20
# Below this level the bound that needs no random divisions decides.
_CERTAIN = 1e-6
# Up to this number of scores, the law of the largest distance is computed exactly.
_MOST_EXACT = 10_000


@dataclass(frozen=True)
class ColumnProfile:
    """Counts of a column by bin: up to ten bins of numbers with about equal counts, or categories.

    Attributes
    ----------
    name, kind : str, str
        Name and kind of the column.
    bins : tuple
        For numbers, the upper ends of all bins but the last, which is open. For categories, the
        most frequent ones; all others share one more bin.
    counts : tuple of int
        Number of rows in each bin, followed by the number of missing values.
    ends : tuple of float
        The lowest and the highest number of the fit; empty for categories, and in older models.

    Examples
    --------
    >>> profile = ColumnProfile.from_values("country", "categorical", ["ar", "ar", "br"])
    >>> profile.bins, profile.counts
    (('ar', 'br'), (2, 1, 0, 0))
    >>> profile.count(["br", "cl"])
    (0, 1, 1, 0)
    """

    name: str
    kind: str
    bins: tuple[Any, ...]
    counts: tuple[int, ...]
    ends: tuple[float, ...] = ()

    @classmethod
    def from_values(
        cls, name: str, kind: str, values: Any, *, bins_from: Any = None
    ) -> ColumnProfile:
        """Choose bins for the values of a column and count them."""
        values = np.asarray(values)
        chosen = values if bins_from is None else np.asarray(bins_from)
        bins = _categories(chosen) if kind == "categorical" else _upper_ends(chosen)
        ends = () if kind == "categorical" else _ends(values, chosen)
        return cls(name, kind, bins, _count(values, kind, bins), ends)

    def count(self, values: Any) -> tuple[int, ...]:
        """Count other values of the same column in the same bins."""
        return _count(np.asarray(values), self.kind, self.bins)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, numbers and texts."""
        return to_plain(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ColumnProfile:
        """Read what :meth:`to_json` wrote."""
        bins, counts = tuple(content["bins"]), tuple(int(n) for n in content["counts"])
        ends = tuple(content.get("ends", ()))
        return cls(str(content["name"]), str(content["kind"]), bins, counts, ends)


def column_profiles(
    X: Any, schema: TableSchema, *, bins_from: Any = None
) -> tuple[ColumnProfile, ...]:
    """Describe all columns of the rows that a model takes, in bins chosen from other rows."""
    bins_from = X if bins_from is None else bins_from
    return tuple(
        ColumnProfile.from_values(f.name, f.kind, X[f.name], bins_from=bins_from[f.name])
        for f in schema.features
    )


def _categories(values: NDArray[Any]) -> tuple[str, ...]:
    names, counts = np.unique(values[values != MISSING_CATEGORY].astype(str), return_counts=True)
    return tuple(names[np.argsort(-counts, kind="stable")][:_MOST_CATEGORIES].tolist())


def _upper_ends(values: NDArray[np.float64]) -> tuple[float, ...]:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return ()
    shares = np.arange(1, _N_BINS) / _N_BINS
    ends = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    return tuple(ends[ends < present.max()].tolist())


def _ends(*parts: NDArray[np.float64]) -> tuple[float, ...]:
    present = np.concatenate([values[~np.isnan(values)] for values in parts])
    return (float(present.min()), float(present.max())) if present.size else ()


def _count(values: NDArray[Any], kind: str, bins: tuple[Any, ...]) -> tuple[int, ...]:
    missing = is_missing(values, kind)
    present = values[~missing]
    if kind == "categorical":
        place = {name: number for number, name in enumerate(bins)}
        places = np.array([place.get(value, len(bins)) for value in present.tolist()], np.intp)
    else:
        places = np.searchsorted(np.array(bins, dtype=np.float64), present, side="left")
    counts = np.bincount(places, minlength=len(bins) + 1).tolist()
    return (*counts, int(missing.sum()))


# --- shifts ---


def stability_index(before: Any, after: Any) -> float:
    """Return the population stability index of two rows of counts.

    This is the sum of (q - p) log(q / p) over the bins. Half a case is added to each count, because
    an empty bin would make the sum infinite. Without a shift it is about (bins - 1)(1/n + 1/m).
    """
    p, q = (np.asarray(counts, dtype=np.float64) + _PSEUDO_COUNT for counts in (before, after))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((q - p) * np.log(q / p)))


def compare_scores(before: Floats, after: Floats) -> dict[str, Any]:
    """Compare scores with those of the calibration, by the largest distance of their laws."""
    # On one grid, in the precision of calibration: otherwise ties would be broken one way.
    after = lift(np.asarray(after, dtype=before.dtype)).astype(np.float64)
    before = lift(before).astype(np.float64)
    profile = ColumnProfile.from_values("score", "numeric", before)
    method = "exact" if max(before.size, after.size) <= _MOST_EXACT else "asymp"
    test = ks_2samp(before, after, method=method)  # with ties the p-value is too large, if anything
    return {
        **_compared(profile, profile.count(after)),
        "ks": float(test.statistic),
        "p_value": float(test.pvalue),
    }


def count_columns(profiles: tuple[ColumnProfile, ...], X: Any) -> list[tuple[int, ...]]:
    """Count the values of other rows in the bins of each column."""
    return [profile.count(X[profile.name]) for profile in profiles]


def compare_columns(
    profiles: tuple[ColumnProfile, ...], counts: list[tuple[int, ...]]
) -> list[dict[str, Any]]:
    """Compare the columns of other rows with those of the calibration rows."""
    n_divisions = max(_DIVISIONS, _PER_COLUMN * len(profiles))
    compared = [_compared(*each) for each in zip(profiles, counts, strict=True)]
    for place, each in enumerate(compared):
        rng = np.random.default_rng(place)  # the same page for the same cases
        each["p_value"] = _homogeneity(each["before"], each["after"], n_divisions, rng)
    return compared


def _compared(profile: ColumnProfile, after: tuple[int, ...]) -> dict[str, Any]:
    before = profile.counts
    return {
        "name": profile.name,
        "kind": profile.kind,
        "bins": list(profile.bins),
        "before": list(before),
        "after": list(after),
        "missing_before": before[-1] / sum(before),
        "missing_after": after[-1] / sum(after),
        "psi": stability_index(before, after),
    }


# --- p-values ---


def _homogeneity(before: Any, after: Any, n_divisions: int, rng: np.random.Generator) -> float:
    """Return a p-value for the hypothesis that both counts have the same distribution.

    If they have, and the bins were chosen without these rows, every division of all rows into as
    many before and after is equally likely. A bound from single bins decides where it is far below
    any level. Otherwise the chi-squared statistic is compared with that of random divisions; the
    error of the bound is added. The p-value is valid for any counts: it is at most x with
    probability at most x.
    """
    counts = np.array([before, after])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2 or not counts.sum(axis=1).all():
        return 1.0
    bound = _bound_of_bins(counts)
    if bound < _CERTAIN:
        return bound
    return min(1.0, _CERTAIN + _permutation_p_value(counts, n_divisions, rng))


def _bound_of_bins(counts: NDArray[np.int64]) -> float:
    """Return the smallest exact p-value of a single bin, corrected for the number of bins."""
    totals, n_after = counts.sum(axis=0), int(counts[1].sum())
    law = (int(totals.sum()), totals, n_after)
    one_sided = np.minimum(hypergeom.cdf(counts[1], *law), hypergeom.sf(counts[1] - 1, *law))
    return float(min(1.0, 2 * totals.size * one_sided.min()))


def _permutation_p_value(
    counts: NDArray[np.int64], n_divisions: int, rng: np.random.Generator
) -> float:
    """Compare the chi-squared statistic with random divisions until the answer is clear enough.

    Besag and Clifford (1991): the h-th division that shifts as much, found in draw l, gives h / l.
    If there are fewer in all draws, the observed division counts as one of them.
    """
    totals, n_after = counts.sum(axis=0), int(counts[1].sum())
    expected = totals * (n_after / totals.sum())

    def statistic(after: Any) -> Any:
        # With these totals, the chi-squared statistic is a multiple of this sum.
        return np.sum((after - expected) ** 2 / totals, axis=-1)

    least = statistic(counts[1]) * (1 - 1e-9)
    n_drawn = n_as_far = 0
    while n_drawn < n_divisions:
        size = min(max(_STEP, n_drawn), n_divisions - n_drawn)
        as_far = statistic(rng.multivariate_hypergeometric(totals, n_after, size)) >= least
        if n_as_far + as_far.sum() >= _ENOUGH:
            last = int(np.flatnonzero(as_far)[_ENOUGH - n_as_far - 1])
            return _ENOUGH / (n_drawn + last + 1)
        n_drawn, n_as_far = n_drawn + size, n_as_far + int(as_far.sum())
    return (n_as_far + 1) / (n_drawn + 1)


# --- verdicts ---


def judge_shifts(compared: list[dict[str, Any]]) -> None:
    """Name the size of each shift that is significant after Holm's correction for many tests."""
    ranked = sorted(compared, key=lambda each: each["p_value"])
    least = 0.0
    for place, each in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - place) * each["p_value"]))
        each["adjusted_p_value"] = least
        each["shift"] = _size(each["psi"]) if least < SIGNIFICANT else "none seen"


def _size(psi: float) -> str:
    return "large" if psi >= _LARGE else "moderate" if psi >= _MODERATE else "slight"


def verdict_on(score: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    """Say in a sentence or two what has shifted."""
    if score["shift"] in ("moderate", "large"):
        return "The scores have shifted. Recalibrate the threshold on recent cases."
    moved = [each["name"] for each in columns if each["shift"] in ("moderate", "large")]
    if moved:
        return (
            f"The scores have hardly shifted, but {len(moved)} of {len(columns)} columns have. "
            "Watch these columns."
        )
    if score["shift"] == "slight" or any(each["shift"] == "slight" for each in columns):
        return "There are significant shifts, but only slight ones."
    return "No drift detected since calibration."


# --- flags ---


def chances_of_flags(
    calibrations: list[CalibratedThreshold], n_items: int, n_flagged: int
) -> tuple[float, float]:
    """Return the chances of as many flags or more, and of as few or fewer.

    If new cases are like calibration cases, the flag rate of a threshold at the (k + 1)-th largest
    of n scores follows Beta(k + 1, n - k), and the number of flags among N cases follows a
    beta-binomial distribution. It covers the randomness of calibration and of the new cases. A
    share s between this place and the next counts as k + s. (This is an approximation, as it is for
    a confident multiple, where k depends on the labels, and for several thresholds, one for each
    fold, which are taken as one from all their scores.)
    """
    above = sum(each.k + 1 + each.share for each in calibrations)
    below = sum(each.n_calibration - each.k - each.share for each in calibrations)
    if above == 0 or below <= 0:  # certainly nothing or everything is flagged
        return 1.0, 1.0
    law = betabinom(n_items, above, below)
    return float(law.sf(n_flagged - 1)), float(law.cdf(n_flagged))
