"""Under which prior, or which class weights, a threshold on probabilities is the rule of Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._decisions import CapacityDecisionMixin

__all__ = ["BayesRuleMixin"]


class BayesRuleMixin(CapacityDecisionMixin):
    """What the threshold of a fitted classifier stands for, where its scores are probabilities."""

    estimators_: list[Any]
    _method: str

    @property
    def likelihood_ratio_threshold_(self) -> float:
        r"""The level :math:`\gamma^*` of rare to common density that the threshold stands for."""
        odds = self._threshold_odds("likelihood_ratio_threshold_")
        return odds * (1 - self.prevalence_) / self.prevalence_

    @property
    def modified_prior_(self) -> float:
        r"""The prior :math:`\pi_0'` under which the rule of Bayes is this rule."""
        return 1 / (1 + self.likelihood_ratio_threshold_)

    @property
    def class_weight_(self) -> dict[Any, float]:
        """Class weights under which the rule of Bayes is this rule, for two classes."""
        odds = self._threshold_odds("class_weight_")
        if self.classes_.size > 2:
            raise AttributeError(
                "class_weight_ is defined for two classes: the threshold compares the rare class "
                "with all others together, weights compare it with each of them."
            )
        common, rare = self.classes_[[1 - self._rare_index, self._rare_index]].tolist()
        return {common: 1.0, rare: 1 / odds if odds > 0 else np.inf}

    def _threshold_odds(self, name: str) -> float:
        """Return t / (1 - t) for a threshold t on probabilities."""
        self._check_fitted()
        several = len(self.estimators_) > 1 or hasattr(self, "segment_calibrations_")
        if self._method != "predict_proba" or several:
            raise AttributeError(f"{name} is defined for a single threshold on probabilities.")
        threshold = float(np.clip(self.threshold_, 0, 1))
        return threshold / (1 - threshold) if threshold < 1 else np.inf
