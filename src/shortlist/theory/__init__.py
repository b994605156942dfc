"""The optimal rule when densities are known, its modified-prior twin, and complexity bounds."""

from ._bounds import deviation_bound, empirical_loss, log_shatter_bound, vc_dimension_bound
from ._known import KnownDensities
from ._rules import BayesRule, OptimalRule

__all__ = [
    "BayesRule",
    "KnownDensities",
    "OptimalRule",
    "deviation_bound",
    "empirical_loss",
    "log_shatter_bound",
    "vc_dimension_bound",
]
