"""What a rule found, as numbers with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._core.binomial import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.labels import rare_share
from ..capacity import Capacity
from ..metrics import adjusted_detection_interval, adjusted_detection_score
from ._candidates import AWARE

if TYPE_CHECKING:
    from ._model import TableModel

__all__ = ["RuleResult", "measure_default", "measure_random", "measure_rule", "proportion"]

_ERROR = 0.05


@dataclass(frozen=True)
class RuleResult:
    """What one rule did on rows it had not seen.

    `detection` is M, the share of the rare cases found once the capacity has been paid for; the
    intervals hold at 95 %, and are None where a value is known rather than estimated.
    """

    rule: str
    flagged: float
    found: float
    detection: float
    detection_interval: Interval | None
    precision: float
    precision_interval: Interval | None


def measure_rule(
    rule: str, is_rare: NDArray[np.bool_], flagged: NDArray[np.bool_], capacity: Capacity
) -> RuleResult:
    """Count what a rule flagged and found."""
    options: dict[str, Any] = {"capacity": capacity, "rare_label": True}
    n_flagged, n_found = int(flagged.sum()), int((flagged & is_rare).sum())
    return RuleResult(
        rule,
        n_flagged,
        n_found,
        adjusted_detection_score(is_rare, flagged, **options),
        adjusted_detection_interval(is_rare, flagged, **options),
        n_found / n_flagged if n_flagged else float("nan"),
        proportion(n_found, n_flagged),
    )


def measure_default(model: TableModel, X: Any, is_rare: NDArray[np.bool_]) -> RuleResult:
    """Count what the model inside would flag by itself.

    Most take the likelier label; a learner that knows the capacity has a threshold of its own.
    """
    name = "its own threshold" if model.learner in AWARE else "default threshold"
    flagged = np.asarray(model.classifier.estimator_.predict(X), dtype=bool)
    return measure_rule(name, is_rare, flagged, model.classifier.capacity)


def measure_random(is_rare: NDArray[np.bool_], capacity: Capacity) -> RuleResult:
    """Say what as many cases drawn at random find on average; this needs no estimate."""
    share = rare_share(is_rare)
    n_flagged = capacity.max_flags(is_rare.size, share)
    detection = n_flagged / is_rare.size
    found = detection * int(is_rare.sum())
    return RuleResult("random", n_flagged, found, detection, None, float(share), None)


def proportion(successes: int, trials: int) -> Interval:
    """Return the interval of Clopper and Pearson at 95 %; everything is possible after no trial."""
    if trials == 0:
        return Interval(0.0, 1.0)
    return Interval(
        float(clopper_pearson_lower(successes, trials, error=_ERROR / 2)),
        float(clopper_pearson_upper(successes, trials, error=_ERROR / 2)),
    )
