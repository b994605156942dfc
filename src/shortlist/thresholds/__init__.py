"""From scores to decisions: exact selection in a batch, thresholds with a guarantee, and rules."""

from ._bands import simultaneous_k, simultaneous_sample_size
from ._calibrate import TIES, calibrate_threshold
from ._calibrate_scores import calibrate_scores
from ._calibrator import Calibrator, make_rule
from ._choosing import Selection, describe_list, expected_gains, with_probes
from ._decisions import CalibratedThreshold, Decisions, Items
from ._described import calibrate_counts
from ._folds import FOLD_GUARANTEES
from ._guarantees import (
    confident_k,
    confident_sample_size,
    expected_k,
    expected_sample_size,
    next_batch_k,
    next_batch_sample_size,
    plug_in_k,
)
from ._promise import GUARANTEES, check_guarantee
from ._rules import FoldRule, Rule, ThresholdRule
from ._segments import SegmentRule
from ._select import select
from ._terms import CalibrationSample, ReferencePrevalence, Terms

__all__ = [
    "FOLD_GUARANTEES",
    "GUARANTEES",
    "TIES",
    "CalibratedThreshold",
    "CalibrationSample",
    "Calibrator",
    "Decisions",
    "FoldRule",
    "Items",
    "ReferencePrevalence",
    "Rule",
    "SegmentRule",
    "Selection",
    "Terms",
    "ThresholdRule",
    "calibrate_counts",
    "calibrate_scores",
    "calibrate_threshold",
    "check_guarantee",
    "confident_k",
    "confident_sample_size",
    "describe_list",
    "expected_gains",
    "expected_k",
    "expected_sample_size",
    "make_rule",
    "next_batch_k",
    "next_batch_sample_size",
    "plug_in_k",
    "select",
    "simultaneous_k",
    "simultaneous_sample_size",
    "with_probes",
]
