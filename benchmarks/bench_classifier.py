"""What `CapacityClassifier` adds to the model inside, in `fit` and in `predict`.

In one thread: others would spin while they wait, and processor time would count that.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from _measure import paired_ratio, table
from shortlist import Capacity, CapacityClassifier
from shortlist._core.folds import random_parts
from shortlist.datasets import make_fraud

MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest, 100 trees": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
    "5 nearest neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
}
# Enough to see the trend: the slower models would only take longer to show the same.
LARGEST = {"random forest, 100 trees": 40_000, "5 nearest neighbours": 40_000}


@threadpool_limits.wrap(limits=1)
def main(sizes: tuple[int, ...] = (10_000, 40_000, 160_000, 640_000)) -> str:
    """Compare with fitting on the same half and scoring the other, and with `predict_proba`."""
    rows = []
    for name, model in MODELS.items():
        for n in sizes:
            if n > LARGEST.get(name, n):
                continue
            X, y = make_fraud(n)
            # The same halves as inside: a solver then takes the same number of steps.
            ((train, unseen),) = random_parts(y, 0.5, np.random.default_rng(0))
            wrapper = CapacityClassifier(
                model, capacity=Capacity.multiple(2), random_state=0, cv=0.5
            )

            def by_hand(model=model, X=X, y=y, train=train, unseen=unseen):
                return clone(model).fit(X[train], y[train]).predict_proba(X[unseen])

            fit_ratio, _ = paired_ratio(lambda w=wrapper, X=X, y=y: w.fit(X, y), by_hand)
            fitted = wrapper.fit(X, y)
            predict_ratio, _ = paired_ratio(
                lambda f=fitted, X=X: f.predict(X),
                lambda f=fitted, X=X: f.estimator_.predict_proba(X),
            )
            rows.append([name, f"{n:,}", f"{fit_ratio:.3f}", f"{predict_ratio:.3f}"])
    return table(["model", "rows", "fit / model's own calls", "predict / predict_proba"], rows)


if __name__ == "__main__":
    print(main())
