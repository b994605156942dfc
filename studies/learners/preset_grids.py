"""The settings that were tried for the recommended presets."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, StandardScaler


def _by_adam(activation: str, units: int, *, alpha: float, max_iter: int) -> MLPClassifier:
    """Return a network that learns from a few items at a time."""
    return MLPClassifier((units,), activation=activation, alpha=alpha, max_iter=max_iter)


def _by_lbfgs(activation: str, units: int, *, alpha: float) -> MLPClassifier:
    """Return a network that learns from all items at once, to a minimum of its loss."""
    return MLPClassifier((units,), activation=activation, solver="lbfgs", alpha=alpha, max_iter=500)


def _ten(network: MLPClassifier, **sampling: Any) -> BaggingClassifier:
    """Average ten networks, on the same data unless `sampling` says otherwise."""
    return BaggingClassifier(network, 10, **{"bootstrap": False, **sampling})


#: The settings that were compared, as parameters of the recommended preset.
GRIDS: dict[str, Any] = {
    "kde": {
        "directions": [
            PCA(3, whiten=True),
            SelectKBest(k=3),
            SelectKBest(k=6),
            LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
        ],
        "densities__factor": [1.0, 2.0],
    },
    "knn": {"n_neighbors": [50, 100, 200, 400]},
    "svm": {"svc__C": [0.1, 1], "svc__gamma": [0.003, 0.01]},
    "forest": {"min_samples_leaf": [10, 20, 40]},
    "network": [
        {
            "scale": [StandardScaler()],
            "network": [
                *(  # fewer than three units could not enclose a region
                    _ten(_by_lbfgs("tanh", units, alpha=alpha))
                    for units in (3, 5, 10)
                    for alpha in (5, 10, 20)
                ),
                _ten(_by_lbfgs("logistic", 10, alpha=3)),
                _ten(_by_lbfgs("tanh", 5, alpha=10), bootstrap=True),
                _ten(_by_lbfgs("tanh", 5, alpha=5), max_features=0.5),
                _by_adam("relu", 16, alpha=1.0, max_iter=100),
                _ten(_by_adam("relu", 16, alpha=1.0, max_iter=100)),
                _by_adam("logistic", 20, alpha=0.01, max_iter=500),
                _ten(_by_adam("logistic", 20, alpha=0.01, max_iter=500)),
            ],
        },
        {
            "scale": [PowerTransformer(), QuantileTransformer(output_distribution="normal")],
            "network": [_ten(_by_lbfgs("tanh", 5, alpha=10))],
        },
    ],
    "boosting": {"num_leaves": [3, 4, 8]},
    "logistic": {"logisticregression__C": [0.001, 0.01, 0.1, 1.0]},
}


#: Settings that a table of a few hundred rows could not use; they are compared but not chosen.
TOO_LARGE = ("n_neighbors=400", "min_samples_leaf=40")
