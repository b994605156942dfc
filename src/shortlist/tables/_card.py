"""What is known about a fitted model beyond what it decides: its model card."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import numpy
import scipy
import sklearn

from .. import __version__
from .._core.binomial import Interval
from ._measure import RuleResult
from ._profile import ColumnProfile

__all__ = ["ModelCard", "versions_in_use"]

_SIZES = ("n_rows", "n_rare", "n_train", "n_calibration", "n_test", "n_test_rare")


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from.

    Attributes
    ----------
    fitted_at : str
        Moment of the fit, in UTC.
    versions : dict
        Of Python and of the packages that made it.
    n_rows, n_rare, n_train, n_calibration, n_test, n_test_rare : int
        Rows of the table, rare rows among them, and how they were shared out.
    rules : tuple of RuleResult
        What the model and other rules found on the test rows.
    profiles : tuple of ColumnProfile
        How the values of each column were spread over the calibration rows.
    """

    fitted_at: str
    versions: dict[str, str]
    n_rows: int
    n_rare: int
    n_train: int
    n_calibration: int
    n_test: int
    n_test_rare: int
    rules: tuple[RuleResult, ...]
    profiles: tuple[ColumnProfile, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, numbers and texts."""
        return {
            "fitted_at": self.fitted_at,
            "versions": dict(self.versions),
            **{size: getattr(self, size) for size in _SIZES},
            "rules": [_rule_to_json(rule) for rule in self.rules],
            "profiles": [profile.to_json() for profile in self.profiles],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ModelCard:
        """Read what :meth:`to_json` wrote."""
        return cls(
            fitted_at=str(content["fitted_at"]),
            versions={str(name): str(v) for name, v in content["versions"].items()},
            **{size: int(content[size]) for size in _SIZES},
            rules=tuple(_rule_from_json(rule) for rule in content["rules"]),
            profiles=tuple(ColumnProfile.from_json(each) for each in content["profiles"]),
        )


def versions_in_use() -> dict[str, str]:
    """Return the versions of what a model depends on."""
    return {
        "shortlist": __version__,
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def now() -> str:
    """Return the present moment in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _rule_to_json(rule: RuleResult) -> dict[str, Any]:
    nothing_flagged = rule.precision != rule.precision
    return asdict(rule) | {"precision": None if nothing_flagged else rule.precision}


def _rule_from_json(content: dict[str, Any]) -> RuleResult:
    known = {field.name: content[field.name] for field in fields(RuleResult)}
    for name in ("detection_interval", "precision_interval"):
        known[name] = None if known[name] is None else Interval(*known[name])
    if known["precision"] is None:
        known["precision"] = float("nan")
    return RuleResult(**known)
