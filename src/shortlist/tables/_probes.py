"""Artificial rows that look like those of a table, to compare two ways of scoring."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.extras import load_extra
from .columns import MISSING_CATEGORY
from .profile import ColumnProfile
from .schema import Feature

pd = load_extra("pandas", needed_for="Reading tables")

__all__ = ["probe_rows"]

_N_PROBES = 200
_MISSING = 0.1  # share of missing values in each column
_AT_ENDS = 0.3  # share of numbers that lie exactly at the end of a bin


def probe_rows(
    features: tuple[Feature, ...], profiles: tuple[ColumnProfile, ...], reference: dict[str, Any]
) -> Any:
    """Draw rows with the distributions of the columns, missing values and unknown categories.

    Parameters
    ----------
    features : tuple of Feature
        The columns.
    profiles : tuple of ColumnProfile
        Their distributions, where they are known.
    reference : dict
        The usual value of each column, for the others.

    Returns
    -------
    data frame
    """
    rng = np.random.default_rng(0)
    bins = {profile.name: profile.bins for profile in profiles}
    return pd.DataFrame(
        {
            feature.name: _drawn(feature, bins.get(feature.name, ()), reference[feature.name], rng)
            for feature in features
        }
    )


def _drawn(feature: Feature, bins: tuple[Any, ...], usual: Any, rng: np.random.Generator) -> Any:
    if feature.kind == "categorical":
        choices = np.array([*bins, usual, MISSING_CATEGORY, "?"], dtype=object)
        return pd.Series(rng.choice(choices, _N_PROBES), dtype=object)
    if feature.kind == "boolean":
        return rng.choice([0.0, 1.0, np.nan], _N_PROBES)
    ends = np.array(bins or (np.nan_to_num(usual),), dtype=np.float64)
    spread = float(np.ptp(ends)) or max(1.0, float(np.abs(ends).max()))
    noise = np.where(rng.random(_N_PROBES) < _AT_ENDS, 0.0, rng.standard_t(3, _N_PROBES))
    drawn = rng.choice(ends, _N_PROBES) + spread / len(ends) * noise
    drawn[rng.random(_N_PROBES) < _MISSING] = np.nan
    return drawn
