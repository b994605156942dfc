"""Side by side with scikit-learn's `TunedThresholdClassifierCV` and MAPIE's controller.

Every system gets the same fitted model and the same calibration data, and is judged on the same
fresh test data. "Use" is the flagged share divided by the capacity: 1.00 is right, more is an
overrun. A rate measured on 40,000 test items has a relative standard error of about 4 %, so
"clearly over" counts the seeds whose use exceeds 1 beyond chance at the 5 % level (1.07).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from mapie.risk_control import BinaryClassificationController
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from _measure import table
from shortlist import Capacity, CapacityClassifier, adjusted_detection_score

N_TRAIN, N_CALIBRATION, N_TEST = 20_000, 10_000, 40_000
CAPACITY = Capacity.fraction(0.0135)
CONFIDENCE = 0.95
OVER = 1 + 1.645 * np.sqrt((1 - 0.0135) / (0.0135 * N_TEST))
MODELS = {
    "logistic": LogisticRegression(max_iter=1000),
    "forest": RandomForestClassifier(60, random_state=0),
    "5-NN": KNeighborsClassifier(),
}


def ours(**options: Any) -> Any:
    """Return a system: calibrate our classifier on a trained model."""

    def calibrate(model: Any, X: Any, y: Any) -> Any:
        classifier = CapacityClassifier(FrozenEstimator(model), capacity=CAPACITY, **options)
        return classifier.fit(X, y).predict

    return calibrate


def tuned_threshold(thresholds: int) -> Any:
    """Return a system: tune the threshold for M with scikit-learn."""

    def calibrate(model: Any, X: Any, y: Any) -> Any:
        scoring = make_scorer(adjusted_detection_score, capacity=CAPACITY, rare_label=1)
        tuner = TunedThresholdClassifierCV(
            FrozenEstimator(model), scoring=scoring, thresholds=thresholds, cv="prefit", refit=False
        )
        return tuner.fit(X, y).predict

    return calibrate


def mapie(*, quantile_grid: bool) -> Any:
    """Return a system: control the flagged fraction with MAPIE, on its grid or on a better one."""

    def calibrate(model: Any, X: Any, y: Any) -> Any:
        options: dict[str, Any] = {}
        if quantile_grid:
            levels = np.linspace(1.0, 1 - 3 * CAPACITY.as_fraction(), 100)
            grid = np.quantile(model.predict_proba(X)[:, 1], levels)
            options = {
                "list_predict_params": np.unique(grid)[::-1],
                "fwer_method": "fixed_sequence",
            }
        controller = BinaryClassificationController(
            model.predict_proba,
            risk="predicted_positive_fraction",
            target_level=CAPACITY.as_fraction(),
            confidence_level=CONFIDENCE,
            best_predict_param_choice="recall",
            **options,
        ).calibrate(X, y)
        if controller.best_predict_param is None:
            return lambda X: np.zeros(len(X), dtype=int)
        return controller.predict

    return calibrate


SYSTEMS = {
    "shortlist plug-in, hash": ours(ties="hash", guarantee="plug-in"),
    "shortlist expected, hash": ours(ties="hash", guarantee="expected"),
    "shortlist confident, hash": ours(ties="hash", guarantee="confident", confidence=CONFIDENCE),
    "shortlist confident, exclude": ours(
        ties="exclude", guarantee="confident", confidence=CONFIDENCE
    ),
    "TunedThresholdClassifierCV, 100": tuned_threshold(100),
    "TunedThresholdClassifierCV, 1000": tuned_threshold(1000),
    "MAPIE, default grid": mapie(quantile_grid=False),
    "MAPIE, quantile grid, fixed sequence": mapie(quantile_grid=True),
}


def one_seed(seed: int) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return use, M and calibration time of every system with every model."""
    X, y = make_classification(
        N_TRAIN + N_CALIBRATION + N_TEST,
        n_features=10,
        n_informative=5,
        weights=[0.9975],
        random_state=seed,
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=N_TEST, stratify=y, random_state=seed)
    X_train, X_cal, y_train, y_cal = train_test_split(
        X, y, test_size=N_CALIBRATION, stratify=y, random_state=seed
    )
    results = {}
    for model_name, model in MODELS.items():
        model.fit(X_train, y_train)
        scored = _Remembered(model, X_cal, X_test)
        for system_name, system in SYSTEMS.items():
            start = time.perf_counter()
            predict = system(scored, X_cal, y_cal)
            elapsed = time.perf_counter() - start
            flags = predict(X_test)
            use = float(np.mean(flags == 1)) / CAPACITY.as_fraction()
            m = adjusted_detection_score(y_test, flags, capacity=CAPACITY, rare_label=1)
            results[model_name, system_name] = use, m, elapsed
    return results


class _Remembered:
    """A fitted model with stored probabilities for known data: only the thresholds differ."""

    _estimator_type = "classifier"

    def __init__(self, model: Any, *tables: Any) -> None:
        self.model, self.classes_ = model, model.classes_
        self._known = {id(X): (X, model.predict_proba(X)) for X in tables}

    def fit(self, X: Any, y: Any) -> _Remembered:
        """Do nothing: the model is trained."""
        return self

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Any:
        """Look the probabilities up, or compute them."""
        return self._known[id(X)][1] if id(X) in self._known else self.model.predict_proba(X)


def main(seeds: int = 60) -> str:
    """Average over seeds, with standard errors."""
    collected = defaultdict(list)
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key, value in one_seed(seed).items():
                collected[key].append(value)
        print(f"seed {seed + 1} of {seeds}", flush=True)
    rows = []
    for (model, system), values in collected.items():
        use, m, elapsed = np.transpose(values)
        error = 1 / np.sqrt(len(values))
        baseline = np.median([v[2] for v in collected[model, "shortlist confident, hash"]])
        rows.append(
            [
                model,
                system,
                f"{use.mean():.2f} ± {use.std(ddof=1) * error:.2f}",
                f"{np.mean(use > OVER):.0%}",
                f"{m.mean():.3f} ± {m.std(ddof=1) * error:.3f}",
                f"{np.median(elapsed) / baseline:.1f}",
            ]
        )
    headings = ["scores", "system", "use of capacity", "clearly over", "M", "time / ours"]
    return table(headings, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=60)
    print(main(parser.parse_args().seeds))
