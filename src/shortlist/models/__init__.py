"""Fitted models as compiled functions of single rows, and the types that model files may hold."""

from .files import trusted_types
from .scorer import compile_scorer

__all__ = ["compile_scorer", "trusted_types"]
