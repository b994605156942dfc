"""Fitted classifiers as compiled functions: one row of plain values is scored in microseconds."""

from ._scorer import SCORER_KINDS, RowScorer, compile_scorer

__all__ = ["SCORER_KINDS", "RowScorer", "compile_scorer"]
