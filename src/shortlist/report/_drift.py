"""Drift since calibration: what has shifted, and the bars that show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom, ks_2samp

from .._core.arrays import Floats
from .._core.binomial import proportion_interval
from .._core.ranking import lift
from ..tables import ColumnProfile, TableModel
from ._cases import Cases

__all__ = ["drift_bars", "measure_drift", "stability_index"]

# The usual limits of the index for a moderate and for a large shift.
_MODERATE, _LARGE = 0.1, 0.25
_SIGNIFICANT = 0.01
_PSEUDO_COUNT = 0.5
# Random divisions of the rows: at least so many, at least so many per column, and in steps of so
# many until so many of them shift as much as the observed one does.
_DIVISIONS, _PER_COLUMN, _STEP, _ENOUGH = 9_999, 500, 250, 20
# Below this level the bound that needs no random divisions decides.
_CERTAIN = 1e-6
# Up to this number of scores, the law of the largest distance is computed exactly.
_MOST_EXACT = 10_000
_BIN_WIDTH, _BARS_HEIGHT, _LOWEST_BAR = 10, 23, 0.0001


def measure_drift(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Compare new cases with the calibration cases of a model."""
    score = _scores(model.classifier.calibration_scores_, cases.scores)
    card = model.card
    columns = [] if card is None else _columns(card.profiles, cases.X)
    _judge([score, *columns])
    columns.sort(key=lambda column: -column["psi"])
    calibration = model.classifier.pooled_calibration_
    return {
        "n_calibration": calibration.n_calibration,
        "n_items": cases.is_rare.size,
        "score": score,
        "columns": columns,
        "flag_rate": _rates(
            calibration.flagged_fraction, calibration.n_calibration, cases.n_flagged, cases
        ),
        "prevalence": None
        if card is None
        else _rates(
            card.n_calibration_rare / card.n_calibration,
            card.n_calibration,
            int(cases.is_rare.sum()),
            cases,
        ),
        "verdict": _overall(score, columns),
    }


def stability_index(before: Any, after: Any) -> float:
    """Return the population stability index of two rows of counts.

    This is the sum of (q - p) log(q / p) over the bins. Half a case is added to each count, because
    an empty bin would make the sum infinite. Without a shift it is about (bins - 1)(1/n + 1/m).
    """
    p, q = (np.asarray(counts, dtype=np.float64) + _PSEUDO_COUNT for counts in (before, after))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((q - p) * np.log(q / p)))


def _scores(before: Floats, after: Floats) -> dict[str, Any]:
    # On one grid, in the precision of calibration: otherwise ties would be broken one way.
    after = lift(np.asarray(after, dtype=before.dtype)).astype(np.float64)
    before = lift(before).astype(np.float64)
    profile = ColumnProfile.from_values("score", "numeric", before)
    method = "exact" if max(before.size, after.size) <= _MOST_EXACT else "asymp"
    test = ks_2samp(before, after, method=method)  # with ties the p-value is too large, if anything
    return {
        **_compared(profile, after),
        "ks": float(test.statistic),
        "p_value": float(test.pvalue),
    }


def _columns(profiles: tuple[ColumnProfile, ...], X: Any) -> list[dict[str, Any]]:
    n_divisions = max(_DIVISIONS, _PER_COLUMN * len(profiles))
    compared = [_compared(profile, X[profile.name]) for profile in profiles]
    for place, each in enumerate(compared):
        rng = np.random.default_rng(place)  # the same page for the same cases
        each["p_value"] = _homogeneity(each["before"], each["after"], n_divisions, rng)
    return compared


def _compared(profile: ColumnProfile, values: Any) -> dict[str, Any]:
    before, after = profile.counts, profile.count(values)
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


def _judge(compared: list[dict[str, Any]]) -> None:
    """Name the size of each shift that is significant after Holm's correction for many tests."""
    ranked = sorted(compared, key=lambda each: each["p_value"])
    least = 0.0
    for place, each in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - place) * each["p_value"]))
        each["adjusted_p_value"] = least
        each["shift"] = _size(each["psi"]) if least < _SIGNIFICANT else "none seen"


def _size(psi: float) -> str:
    return "large" if psi >= _LARGE else "moderate" if psi >= _MODERATE else "slight"


def _overall(score: dict[str, Any], columns: list[dict[str, Any]]) -> str:
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


def _rates(share: float, n_before: int, n_after: int, cases: Cases) -> dict[str, Any]:
    n_items = cases.is_rare.size
    return {
        "before": share,
        "before_interval": proportion_interval(round(share * n_before), n_before),
        "after": n_after / n_items,
        "after_interval": proportion_interval(n_after, n_items),
    }


def drift_bars(column: dict[str, Any]) -> dict[str, Any]:
    """Lay out the shares of all bins as pairs of bars, before and after, for one column."""
    shares = {when: np.array(column[when]) / sum(column[when]) for when in ("before", "after")}
    highest = max(*shares["before"], *shares["after"], _LOWEST_BAR)
    return {
        "width": _BIN_WIDTH * len(column["before"]),
        "bars": [
            {
                "when": when,
                "x": _BIN_WIDTH * place + (0 if when == "before" else _BIN_WIDTH * 0.45),
                "y": round(float(_BARS_HEIGHT + 1 - height), 1),
                "height": round(float(height), 1),
            }
            for when in shares
            for place, height in enumerate(_BARS_HEIGHT * shares[when] / highest)
        ],
    }
