"""The models beside which `shortlist fit` is put: what a user would write in a few lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline as make_imbalanced_pipeline
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

__all__ = ["PEERS", "automl_scores", "codes", "peer_scores"]

TREES = 300
#: The three best single peers on the tables that choose; their log-odds are averaged.
BEST_THREE = ("forest", "extremely randomised trees", "LightGBM, gentle")


def _gentle(seed: int) -> Any:
    return LGBMClassifier(
        n_estimators=300,
        learning_rate=0.03,
        num_leaves=15,
        min_child_samples=10,
        colsample_bytree=0.5,
        subsample=0.7,
        subsample_freq=1,
        random_state=seed,
        n_jobs=1,
        verbose=-1,
    )


def _after_smote(seed: int) -> Any:
    few = SMOTE(k_neighbors=4, random_state=seed)
    return make_imbalanced_pipeline(few, RandomForestClassifier(TREES, random_state=seed))


def _balanced(seed: int) -> Any:
    return BalancedRandomForestClassifier(
        TREES, sampling_strategy="all", replacement=True, bootstrap=False, random_state=seed
    )


#: Unfitted models by name; each takes a seed.
PEERS: dict[str, Callable[[int], Any]] = {
    "forest": lambda seed: RandomForestClassifier(TREES, random_state=seed),
    "forest, leaves of 5": lambda seed: RandomForestClassifier(
        TREES, min_samples_leaf=5, random_state=seed
    ),
    "extremely randomised trees": lambda seed: ExtraTreesClassifier(TREES, random_state=seed),
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "LightGBM": lambda seed: LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1),
    "LightGBM, gentle": _gentle,
    "balanced forest": _balanced,
    "SMOTE and forest": _after_smote,
}


def codes() -> Any:
    """Return a preparation of columns: gaps filled, categories numbered."""
    number = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    numbers, texts = (make_column_selector(dtype_include=kind) for kind in (float, object))
    return ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), numbers),
            ("categories", number, texts),
        ]
    )


def peer_scores(X: Any, is_rare: Any, X_test: Any, seed: int) -> dict[str, Any]:
    """Return the scores of the test rows by every peer, and by the average of the best three."""
    prepare = codes().fit(X)
    learn, test = prepare.transform(X), prepare.transform(X_test)
    scores = {
        name: make_pipeline(make(seed)).fit(learn, is_rare).predict_proba(test)[:, 1]
        for name, make in PEERS.items()
    }
    scores["average of the best three"] = np.mean(
        [_log_odds(scores[name]) for name in BEST_THREE], axis=0
    )
    return scores


def _log_odds(shares: Any) -> Any:
    kept = (TREES * shares + 0.5) / (TREES + 1)
    return np.log(kept / (1 - kept))


def automl_scores(X: Any, is_rare: Any, X_test: Any, seed: int, seconds: float) -> Any:
    """Return the scores by FLAML, given the same time."""
    from flaml import AutoML

    automl = AutoML()
    automl.fit(
        X,
        is_rare.astype(int),
        task="classification",
        metric="ap",
        time_budget=max(seconds, 5.0),
        n_jobs=1,
        seed=seed,
        verbose=0,
        estimator_list=["lgbm", "rf", "extra_tree", "lrl1"],
    )
    return automl.predict_proba(X_test)[:, 1]
