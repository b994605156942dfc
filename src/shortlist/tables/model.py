"""A fitted model for tables, and the model card that describes where it comes from."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from .. import __version__
from .._core.arrays import Doubles, Floats, Mask
from .._core.arrow import pd
from .._core.ids import tie_keys_of
from .._core.intervals import Interval
from .._core.work import reaches
from ..capacity import Capacity
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..thresholds import Decisions
from ..worth import expected_worth
from .columns import MISSING_CATEGORY, Feature
from .learned_rows import ColumnProfile, RowFingerprints
from .schema import TableRows, TableSchema, WorkColumns

if TYPE_CHECKING:
    from ..models.scorer import RowScorer


@dataclass(frozen=True)
class RuleResult:
    """What one rule flagged and found on rows that it had not seen.

    Attributes
    ----------
    rule : str
        Name of the rule.
    flagged, found : float
        Number of rows flagged, and of rare rows among them.
    detection : float
        The adjusted detection score M: the share of rare rows that the capacity finds.
    precision : float or None
        The share of rare rows among the flagged; None if nothing was flagged.
    detection_interval, precision_interval : Interval or None
        Confidence intervals at 95 %; None if the value is known and not estimated. For a rule with
        a threshold they hold for this threshold, and for a list for other lists of this capacity.
    """

    rule: str
    flagged: float
    found: float
    detection: float
    detection_interval: Interval | None
    precision: float | None
    precision_interval: Interval | None


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from.

    Attributes
    ----------
    fitted_at : str
        Time of the fit, in UTC.
    versions : dict
        Versions of Python and of the packages used.
    n_rows, n_rare : int
        Number of rows in the table, and of rare rows among them.
    n_train, n_calibration, n_calibration_rare, n_test, n_test_rare : int
        Number of rows in each part, and of rare rows among them.
    rules : tuple of RuleResult
        What the model and other rules found on rows that they had not seen.
    profiles : tuple of ColumnProfile
        Distribution of each column over the calibration rows.
    measured_on : {"out-of-fold", "calibration", "latest"}
        The rows that the rules were measured on: every row, by models that have not seen it; the
        rows that set the threshold of a single model; or the latest rows.
    recalibrated_at : str or None
        Time at which a new threshold was set, in UTC; `None` if it is that of the fit.
    n_recalibration : int
        Number of rows that set the new threshold. The profiles are then of these rows.
    notes : tuple of str
        What was decided about the table when it was read, and what looked odd in it.
    """

    fitted_at: str
    versions: dict[str, str]
    n_rows: int
    n_rare: int
    n_train: int
    n_calibration: int
    n_calibration_rare: int
    profiles: tuple[ColumnProfile, ...]
    rules: tuple[RuleResult, ...] = ()
    n_test: int = 0
    n_test_rare: int = 0
    measured_on: str = "out-of-fold"
    recalibrated_at: str | None = None
    n_recalibration: int = 0
    notes: tuple[str, ...] = ()


def versions_in_use() -> dict[str, str]:
    """Return the versions of the packages that a model depends on."""
    return {
        "shortlist": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


@dataclass(frozen=True)
class TableModel:
    """A fitted classifier together with the columns it needs: the content of a model file.

    Attributes
    ----------
    classifier : CapacityClassifier
        Fitted; its labels are True for rare rows and False for others.
    schema : TableSchema
        The columns it needs.
    reference : dict
        The usual value of each column in the training rows: the median, or the most frequent
        category. Reasons for a score compare with it.
    learner : str
        Name of the learner.
    card : ModelCard
        Where the model comes from.
    fingerprints : RowFingerprints
        Of the rows that trained or calibrated the model.
    """

    classifier: CapacityClassifier
    schema: TableSchema
    reference: dict[str, Any]
    learner: str
    card: ModelCard
    fingerprints: RowFingerprints

    @property
    def flag_capacity(self) -> Capacity:
        """The capacity as a number of flags; of a budget of work, what it flags in calibration."""
        capacity, calibrations = self.classifier.capacity, self.classifier.calibrations_
        if capacity.kind != "effort":
            return capacity
        return Capacity.fraction(float(np.mean([each.flagged_fraction for each in calibrations])))

    @property
    def unit(self) -> str:
        """What efforts are counted in."""
        return (self.schema.work or WorkColumns()).unit

    def limit_for(self, efforts: Doubles | None) -> tuple[Capacity, Doubles | None]:
        """Return what flags of rows are counted against, and the work of each row.

        That is the budget, if the model has one and the work of the rows is known; otherwise a
        number of flags, and None.
        """
        if efforts is None or self.classifier.capacity.kind != "effort":
            return self.flag_capacity, None
        return self.classifier.capacity, efforts

    def decide(
        self, rows: TableRows, *, worth: float | None = None, act: float | None = None
    ) -> Decisions:
        """Decide about each row on its own; one that takes more work than was promised is left out.

        Parameters
        ----------
        rows : TableRows
            Rows of a table, as the schema of the model reads them.
        worth : float, default=None
            Leave out flags of less expected value per unit of effort.
        act : float, default=None
            Divide the rows into tiers; see :meth:`shortlist.CapacityClassifier.decide`.

        Returns
        -------
        Decisions
        """
        values, efforts = self.weighed_by(rows)
        if efforts is not None and self.classifier.max_effort is not None:
            efforts = np.minimum(efforts, self.classifier.max_effort)
        known = {"ids": rows.ids, "values": values, "efforts": efforts}
        decided, fits = self.classifier.decide(rows.X, act=act, **known), ~self.too_large(rows)
        flagged = decided.flagged & fits
        if worth is not None:
            flagged &= self.are_worth(decided, worth)
        acted = None if decided.acted is None else decided.acted & fits
        return replace(decided, flagged=flagged, acted=acted)

    def are_worth(self, decided: Decisions, least: float) -> Mask:
        """Tell which rows have at least this expected value per unit of effort."""
        self._check_probabilities()
        return reaches(decided.scores, least)

    def weighed_by(self, rows: TableRows) -> tuple[Doubles | None, Doubles | None]:
        """Return the values and efforts of rows, as far as the model was fitted with such."""
        sample = self.classifier.rule_.samples[0]
        values = rows.values if sample.has_values else None
        return values, None if sample.efforts is None else rows.efforts

    def too_large(self, rows: TableRows) -> Mask:
        """Tell which rows take more work than any case may take, by the fit."""
        most = self.classifier.max_effort
        if rows.efforts is None or most is None:
            return np.zeros(len(rows.X), dtype=bool)
        return rows.efforts > most

    def list_scores(self, rows: TableRows) -> Floats:
        """Return what lists rank by: scores, or value * probability / effort."""
        scores = self.classifier.score_samples(rows.X)
        values, efforts = self.weighed_by(rows)
        if values is None and efforts is None:
            return scores
        return expected_worth(scores, values=values, efforts=efforts)

    def reading_work(self, work: WorkColumns | None) -> TableModel:
        """Return this model for a table whose values and efforts are in columns of other names.

        Columns that the model was not fitted with are read as well, to measure what rules find; its
        own rule does not weigh them.
        """
        merged = (work or WorkColumns()).after(self.schema.work)
        return replace(self, schema=replace(self.schema, work=merged if merged.columns else None))

    def check_budget(self, budget: float | None) -> None:
        """Raise an error for a budget of work if the rule of this model does not weigh work."""
        if budget is not None and (self.schema.work or WorkColumns()).effort is None:
            raise TableError(
                "budget=... was given, and the model was fitted without effort=..., which its "
                "threshold does not weigh. Fit with effort=..., or make a list: shortlist select."
            )

    def predict(self, X: Any) -> Mask:
        """Return what the model of lists predicts uncalibrated; of several models, the majority.

        Parameters
        ----------
        X : data frame
            The rows.

        Returns
        -------
        ndarray of bool
            True where the rare label is predicted.
        """
        models = self.classifier.list_estimators_
        votes = [np.asarray(model.predict(X), dtype=bool) for model in models]
        return np.mean(votes, axis=0) > 0.5

    @property
    def gives_probabilities(self) -> bool:
        """Whether the learner gives probabilities."""
        return self.classifier.response_method_ == "predict_proba"

    def _check_probabilities(self) -> None:
        if not self.gives_probabilities:
            raise TableError(
                "value=..., effort=... and worth=... need probabilities, and this model gives "
                "none. Fit one whose learner has them."
            )

    def probabilities(self, X: Any) -> Doubles:
        """Return the probability of each row to be rare; a model without any raises an error."""
        self._check_probabilities()
        p = self.classifier.predict_proba(X)[:, 1]  # the labels are False and True
        return np.clip(np.asarray(p, dtype=np.float64), 0, 1)

    @cached_property
    def row_scorer(self) -> RowScorer:
        """Scores rows of plain values in microseconds; compiled when it is first asked for.

        It takes the values of a row in the order of the columns. On artificial rows with the
        distributions of the columns it has been compared with the classifier: see
        :func:`~shortlist.models.compile_scorer`.
        """
        from ..models.scorer import compile_scorer

        return compile_scorer(self.classifier, self.probe_rows())

    def probe_rows(self) -> Any:
        """Draw artificial rows: the distributions of the columns, gaps and unknown categories."""
        rng = np.random.default_rng(0)
        bins = {each.name: each.bins for each in self.card.profiles}
        return pd.DataFrame(
            {
                each.name: _drawn(each, bins.get(each.name, ()), self.reference[each.name], rng)
                for each in self.schema.features
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        # Compiled functions are made anew where they are needed.
        return {name: value for name, value in vars(self).items() if name != "row_scorer"}

    def tie_keys(self, X: Any, ids: NDArray[Any] | None) -> Floats:
        """Return what orders rows with equal scores: hashes of their ids, or of their own values.

        Parameters
        ----------
        X : data frame
            The rows.
        ids : ndarray or None
            Their ids.

        Returns
        -------
        ndarray
            Numbers from 0 to 1.
        """
        seed = self.classifier.rule_.terms.seed
        return np.asarray(tie_keys_of(X, ids, seed=seed)(np.arange(len(X))))


_N_PROBES = 200
_MISSING = 0.1  # share of missing values in each column
_AT_ENDS = 0.3  # share of numbers that lie exactly at the end of a bin


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


def labels_of(rows: TableRows) -> Mask:
    """Return the labels of rows that were read with labels."""
    assert rows.is_rare is not None
    return rows.is_rare
