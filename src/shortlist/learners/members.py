"""The members of an ensemble: which models, in which size, on which form of the columns."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from .._core.arrays import Doubles, Rows


@dataclass(frozen=True)
class Size:
    """How much an ensemble may cost.

    Attributes
    ----------
    rounds : int
        How often the members that draw random numbers are fitted, each time with other numbers.
    trees : int
        Trees of each forest in one round.
    stages : int
        Boosted trees in one round.
    tree_rows : int
        Most rows that one tree of a forest is grown on; longer tables are sampled for each tree.
    network_rows : int
        Most rows that a network is fitted to; of longer tables a sample.
    weighs : bool
        Whether members are scored out of sample, to weigh them; it costs about as much again.
    """

    rounds: int
    trees: int
    stages: int
    tree_rows: int
    network_rows: int
    weighs: bool


#: The values of `size`, and what they stand for.
SIZES = {
    "quick": Size(1, 20, stages=60, tree_rows=10_000, network_rows=5_000, weighs=False),
    "default": Size(1, 60, stages=150, tree_rows=20_000, network_rows=10_000, weighs=True),
    "thorough": Size(4, 100, stages=200, tree_rows=50_000, network_rows=20_000, weighs=True),
}


#: Longer tables hold rows out for the weights; shorter ones score each row out of sample.
LONG = 50_000

#: The forms of each member; the first one is for tables with little noise.
FORMS = ("flexible", "smooth")


@dataclass(frozen=True)
class Member:
    """A kind of model: how it is made, and the form of its columns.

    `make` takes the size, the number of rows, a seed, the number of threads, and whether the model
    is to be smooth: large leaves, few splits or strong penalties, for tables with much noise. It
    may draw random numbers, and learn from a sample of a long table only. `work` is about what a
    fit costs, in a unit of its own; to choose a form takes `judged` times as much.
    """

    make: Callable[[Size, int, int, int | None, bool], Any]
    view: str
    work: Callable[[Size, int], float]
    judged: float = 5.0  # two forms, in three folds and then on all rows
    is_random: bool = True
    is_sampled: bool = False

    def expected_work(self, size: Size, n_rows: int, *, is_first: bool = True) -> float:
        """Return about how much work a member of an ensemble is, in the unit of its kind."""
        judges = is_first and size.weighs and n_rows <= LONG
        return self.work(size, n_rows) * (self.judged if judges else 1.0)


def _trees(
    size: Size,
    n_rows: int,
    seed: int,
    n_jobs: int | None,
    smooth: bool,
    *,
    kind: Any,
    leaf: tuple[float, int],
    max_features: float,
) -> Any:
    """Make a forest; the leaves of a smooth one hold a share of the rows of a tree, at least."""
    settings: dict[str, Any] = {}
    if smooth:
        share, least = leaf
        smallest = max(least, round(share * min(n_rows, size.tree_rows)))
        settings = {"min_samples_leaf": smallest, "max_features": max_features}
    return kind(
        size.trees,
        bootstrap=True,
        max_samples=size.tree_rows if n_rows > size.tree_rows else None,
        random_state=seed,
        n_jobs=n_jobs,
        **settings,
    )


def _boosting(size: Size, n_rows: int, seed: int, n_jobs: int | None, smooth: bool) -> Any:
    rate = 0.05 if size.stages > 100 else 0.1
    leaves, penalty, least = (4, 5.0, 20) if smooth else (15, 0.0, 10)
    if not has_lightgbm():
        return HistGradientBoostingClassifier(
            learning_rate=rate,
            max_iter=size.stages,
            max_leaf_nodes=leaves,
            l2_regularization=penalty,
            max_features=0.5,
            early_stopping=False,
            random_state=seed,
        )
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=size.stages,
        learning_rate=rate,
        num_leaves=leaves,
        min_child_samples=least,
        reg_lambda=penalty,
        colsample_bytree=0.5,
        subsample=0.7,
        subsample_freq=1,
        random_state=seed,
        n_jobs=n_jobs or 1,
        verbose=-1,
        deterministic=True,
        force_row_wise=True,
    )


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed, which the extra `boosting` brings."""
    return importlib.util.find_spec("lightgbm") is not None


def _network(size: Size, n_rows: int, seed: int, n_jobs: int | None, smooth: bool) -> Any:
    units, alpha = ("tanh", 10.0) if smooth else ("relu", 3.0)
    return MLPClassifier(
        (10,), activation=units, solver="lbfgs", alpha=alpha, max_iter=100, random_state=seed
    )


def _logistic(size: Size, n_rows: int, seed: int, n_jobs: int | None, smooth: bool) -> Any:
    return LogisticRegression(C=0.05 if smooth else 1.0, max_iter=1_000)


def _rows_in_trees(size: Size, n_rows: int) -> float:
    in_a_tree = min(n_rows, size.tree_rows)
    return size.trees * in_a_tree * math.log(in_a_tree)


#: The members of an ensemble, in the order in which they are fitted.
MEMBERS = {
    "boosting": Member(_boosting, "codes", lambda size, n_rows: size.stages * n_rows),
    "extra-trees": Member(
        partial(_trees, kind=ExtraTreesClassifier, leaf=(0.003, 3), max_features=0.5),
        "codes",
        _rows_in_trees,
        judged=2.0,
    ),
    "forest": Member(
        partial(_trees, kind=RandomForestClassifier, leaf=(0.02, 5), max_features=0.8),
        "codes",
        _rows_in_trees,
        judged=2.0,
    ),
    "logistic": Member(_logistic, "scaled", lambda size, n_rows: n_rows, is_random=False),
    "network": Member(
        _network, "scaled", lambda size, n_rows: min(n_rows, size.network_rows), is_sampled=True
    ),
}


def rows_for(member: Member, size: Size, codes: Rows, rng: np.random.Generator) -> Rows | None:
    """Return the rows to fit a member to, a small class whole; None stands for all rows."""
    most = size.network_rows
    if not member.is_sampled or codes.size <= most:
        return None
    small, large = (np.flatnonzero(codes == code) for code in np.argsort(np.bincount(codes)))
    some = rng.permutation(small)[: most // 2]
    return np.sort(np.concatenate([some, rng.permutation(large)[: most - some.size]]))


def weights_for(rows: Rows, codes: Rows, weights: Doubles | None) -> Doubles:
    """Return weights that give each class of a sample the weight it has in all rows."""
    weights = np.ones(codes.size) if weights is None else weights
    whole = np.bincount(codes, weights)
    sampled = np.bincount(codes[rows], weights[rows], minlength=whole.size)
    factors = whole / np.where(sampled > 0, sampled, 1.0)
    return weights[rows] * factors[codes[rows]]


# --- progress -----------------------------------------------------------------------------------

_watcher: ContextVar[Callable[[str, float], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watching_members(on_member: Callable[[str, float], None]) -> Iterator[None]:
    """Call a function before each member of an ensemble is fitted, in this thread.

    It gets the name of the member, and the work to expect.
    """
    token = _watcher.set(on_member)
    try:
        yield
    finally:
        _watcher.reset(token)


def announce_member(name: str, work: float) -> None:
    """Report that a member is fitted next, and how much work that is."""
    if (watcher := _watcher.get()) is not None:
        watcher(name, work)
