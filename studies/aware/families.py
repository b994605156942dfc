"""The families of models in the studies of capacity-aware learning, each in all its versions.

A version makes a model from a capacity and a seed. All versions see the same items, hold out the
same share for the threshold unless stated otherwise, and have the same capacity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareNetworkClassifier,
    CapacityAwareSVC,
)
from shortlist.learners import make_learner
from studies.aware.convex_losses import PatMatClassifier, TopPushClassifier
from studies.harness import plain_boosting

Maker = Callable[[Capacity, int], Any]


#: The rule of the paper, which all versions share: the threshold of the calibration sample itself.
PAPERS_RULE = {"guarantee": "plug-in", "ties": "exclude"}


@dataclass(frozen=True)
class Family:
    """Versions of one family, and the comparisons between them.

    `post_hoc` versions are fitted once and get a threshold for each capacity; `aware` ones are
    fitted for each capacity. A comparison names the version that should win and the one to beat.
    """

    post_hoc: dict[str, Maker]
    aware: dict[str, Maker]
    comparisons: list[tuple[str, str]] = field(default_factory=list)


def post_hoc(model: Any, *, cv: Any) -> Maker:
    """Return a maker of the model with a threshold at the capacity."""
    return lambda capacity, seed: CapacityClassifier(
        _seeded(model, seed),
        capacity=capacity,
        cv=cv,
        rare_label=1,
        random_state=seed,
        **PAPERS_RULE,
    )


def aware(kind: Callable[..., Any], *, cv: Any, **options: Any) -> Maker:
    """Return a maker of a capacity-aware model with a threshold at the same capacity."""
    return lambda capacity, seed: post_hoc(kind(**options), cv=cv)(capacity, seed)


def _seeded(model: Any, seed: int) -> Any:
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def svm(gamma: Any = 0.1) -> Family:
    """Return the paper's g, g_b and g_b*, and the default of this project."""
    machine = {"C": 1, "gamma": gamma}
    return Family(
        post_hoc={
            "g": lambda capacity, seed: SVC(**machine),
            "g_b": post_hoc(SVC(**machine), cv=0.5),
            "g_b, a quarter held out": post_hoc(SVC(**machine), cv=0.25),
        },
        aware={
            "g_b*": aware(
                CapacityAwareSVC, cv="oob", selection="paper", tie_break="first", **machine
            ),
            "aware, few only": aware(CapacityAwareSVC, cv=0.25, fall_back=False, **machine),
            "aware": aware(CapacityAwareSVC, cv=0.25, **machine),
        },
        comparisons=[
            ("g_b", "g"),
            ("g_b*", "g_b"),
            ("aware, few only", "g_b"),
            ("aware", "g_b"),
            ("aware", "g_b, a quarter held out"),
            ("aware", "g_b*"),
        ],
    )


def linear() -> Family:
    """Return logistic regression, and linear scores learned for the capacity by three losses."""
    logistic = LogisticRegression(max_iter=1000)
    losses = {
        "detection": CapacityAwareLinearClassifier,
        "pat-mat": PatMatClassifier,
        "top-push": TopPushClassifier,
    }
    return Family(
        post_hoc={
            "logistic": post_hoc(logistic, cv=0.5),
            # As good a penalty as any on the credit data; the default is 1.
            "logistic, C=0.01": post_hoc(LogisticRegression(max_iter=1000, C=0.01), cv=0.5),
        },
        aware={loss: aware(kind, cv=0.5) for loss, kind in losses.items()},
        comparisons=[
            *((loss, "logistic") for loss in losses),
            ("detection", "logistic, C=0.01"),
        ],
    )


def network() -> Family:
    """Return scikit-learn's network, and networks of the same size learned for the capacity.

    A third version lies between them: it learns the log loss only, with the weight decay and the
    ensemble of the aware one. Its difference to the aware one is the effect of the capacity.
    """
    return Family(
        post_hoc={
            "MLPClassifier": post_hoc(MLPClassifier(hidden_layer_sizes=(16,)), cv=0.5),
            "log loss only": aware(CapacityAwareNetworkClassifier, cv=0.5, max_iter=0),
        },
        aware={"lagrangian": aware(CapacityAwareNetworkClassifier, cv=0.5)},
        comparisons=[("lagrangian", "MLPClassifier"), ("lagrangian", "log loss only")],
    )


def forest() -> Family:
    """Return the recommended forest with a threshold from out-of-bag scores, and the aware one.

    All are fitted once, for the smallest capacity, which decides which leaves are used.
    """
    return Family(
        post_hoc={
            "forest": post_hoc(make_learner("forest"), cv="oob"),
            "aware, large leaves": aware(CapacityAwareForestClassifier, cv="oob", fall_back=False),
            "aware": aware(CapacityAwareForestClassifier, cv="oob"),
        },
        aware={},
        comparisons=[("aware, large leaves", "forest"), ("aware", "forest")],
    )


def boosting() -> Family:
    """Return recommended boosting with a threshold from out-of-fold scores, and the aware one."""
    return Family(
        post_hoc={"boosting": post_hoc(plain_boosting(), cv=5)},
        aware={"aware": aware(CapacityAwareBoostingClassifier, cv="oob")},
        comparisons=[("aware", "boosting")],
    )


#: By name; a maker imports its optional package only when its family is run.
FAMILIES: dict[str, Callable[[], Family]] = {
    "svm": svm,
    "linear": linear,
    "network": network,
    "forest": forest,
    "boosting": boosting,
}
