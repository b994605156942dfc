"""The optimal rule when densities are known, its modified-prior twin, and complexity bounds."""

from ._rules import BayesRule, OptimalRule
from ._samples import (
    KnownDensities,
    deviation_bound,
    empirical_loss,
    log_shatter_bound,
    vc_dimension_bound,
)

__all__ = [
    "BayesRule",
    "KnownDensities",
    "OptimalRule",
    "deviation_bound",
    "empirical_loss",
    "log_shatter_bound",
    "vc_dimension_bound",
]
