"""The optimal rule when densities are known, its modified-prior twin, and complexity bounds."""

from ._rules import BayesRule, OptimalRule, vc_dimension_bound

__all__ = ["BayesRule", "OptimalRule", "vc_dimension_bound"]
