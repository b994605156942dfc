"""The nearest training rows of an item: found by scikit-learn, SciPy or faiss, and sorted exactly.

scikit-learn compares all rows by a matrix product, whose rounding errors can reorder near ties;
SciPy's tree takes any of several rows at the same distance; the graph of faiss is approximate. The
distances of their candidates are therefore computed again, term by term. Equal distances go by row
number: an item has the same neighbours in every batch, and fewer neighbours are the first of more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import csr_array, issparse
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._core.arrays import Doubles, Rows
from .._core.extras import load_extra

__all__ = ["ALGORITHMS", "NeighborSearch", "check_enough_rows"]

ALGORITHMS = ("auto", "brute", "tree", "approximate")

_MOST_TREE_FEATURES = 8  # beyond that, a tree visits most of its leaves
_SPARE = 4  # candidates beyond those requested; with them, few items need a scan of all rows
_GRAPH_LINKS = 32  # of each row in the graph of the approximate search
_LEAST_BREADTH = 64  # of a walk through the graph
_ROUNDING = 1e-9  # far above the relative error of a distance computed by a tree


class NeighborSearch:
    """Nearest rows of a training matrix by Euclidean distance.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Training rows.
    scale : bool, default=False
        Divide each feature by its standard deviation, and leave constant features out.
    algorithm : {"auto", "brute", "tree", "approximate"}, default="auto"
        As for :class:`~shortlist.learners.KernelKNeighborsClassifier`.
    """

    def __init__(self, X: Any, *, scale: bool = False, algorithm: str = "auto") -> None:
        self.factors = _scale_factors(X) if scale else None
        self.X, self.algorithm = self._scaled(X), algorithm
        self._find = self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        # Trees and graphs are built again: file formats cannot describe their memory.
        return {"X": self.X, "factors": self.factors, "algorithm": self.algorithm}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find = self._prepare()

    def query(self, X: Any, k: int) -> tuple[Doubles, Rows]:
        """Return distances and rows of the `k` nearest training rows, the nearest first."""
        return self._find(self._scaled(X), k)

    def query_training(self, k: int) -> tuple[Doubles, Rows]:
        """Return the `k` nearest neighbours of every training row among the others."""
        distances, rows = self._find(self.X, k + 1)
        keep = rows != np.arange(len(rows))[:, np.newaxis]
        # Among many copies a row may not find itself: its last neighbour makes room instead.
        keep[keep.all(axis=1), -1] = False
        return distances[keep].reshape(-1, k), rows[keep].reshape(-1, k)

    def _scaled(self, X: Any) -> Any:
        if self.factors is None:
            return X
        return csr_array(X.multiply(self.factors)) if issparse(X) else X * self.factors

    def _prepare(self) -> Any:
        """Return the function that finds neighbours."""
        if self.algorithm == "approximate":
            return self._prepare_graph()
        if issparse(self.X):
            return NearestNeighbors(algorithm="brute").fit(self.X).kneighbors
        few_features = self.X.shape[1] <= _MOST_TREE_FEATURES
        if self.algorithm == "tree" or (self.algorithm == "auto" and few_features):
            self._tree = cKDTree(self.X)
            return self._find_in_tree
        # Distances do not change when all points move; rounding errors shrink near the origin.
        self._center = self.X.mean(axis=0)
        self._brute = NearestNeighbors(algorithm="brute").fit(self.X - self._center)
        return self._find_by_brute_force

    def _prepare_graph(self) -> Any:
        if issparse(self.X):
            raise ValueError(
                "algorithm='approximate' takes dense arrays only; got a sparse matrix. Reduce it, "
                "for example with TruncatedSVD, or use algorithm='brute'."
            )
        faiss = load_extra(
            "faiss",
            needed_for="algorithm='approximate'",
            otherwise="algorithm='auto' needs no extra package.",
        )
        self._graph = faiss.IndexHNSWFlat(self.X.shape[1], _GRAPH_LINKS)
        self._graph.add(self.X.astype(np.float32))
        return self._find_in_graph

    def _find_in_tree(self, Q: Doubles, k: int) -> tuple[Doubles, Rows]:
        wanted = min(k + 1, len(self.X))
        distances, candidates = (found.reshape(-1, wanted) for found in self._tree.query(Q, wanted))
        # Every other row is as far away as the last candidate, up to rounding, or farther.
        with np.errstate(over="ignore"):
            bounds = distances[:, -1] ** 2 * (1 - _ROUNDING)

        def all_near(item: int, square: float) -> Any:
            radius = np.sqrt(square) * (1 + _ROUNDING)
            return np.sort(self._tree.query_ball_point(Q[item], radius))

        return _nearest_first(Q, self.X, candidates, bounds, k, all_near)

    def _find_by_brute_force(self, Q: Doubles, k: int) -> tuple[Doubles, Rows]:
        moved = Q - self._center
        distances, candidates = self._brute.kneighbors(moved, min(k + _SPARE, len(self.X)))
        farthest = distances[:, -1]
        with np.errstate(over="ignore", invalid="ignore"):
            # Rows nearer than the last candidate are no farther from the origin than this.
            lengths = np.sqrt(np.einsum("ij,ij->i", moved, moved)) + farthest
            # Bounds the errors of the matrix product and of moving the points.
            error = (Q.shape[1] + 8) * 2.0**-52 * (2 * lengths) ** 2
            bounds = farthest**2 - error
        return _nearest_first(Q, self.X, candidates, bounds, k)

    def _find_in_graph(self, Q: Doubles, k: int) -> tuple[Doubles, Rows]:
        self._graph.hnsw.efSearch = max(_LEAST_BREADTH, 2 * k)
        candidates = self._graph.search(Q.astype(np.float32), k)[1].astype(np.intp)
        return _nearest_first(Q, self.X, candidates, np.full(len(Q), np.inf), k)


def _scale_factors(X: Any) -> Doubles:
    """Return 1 / standard deviation (n - 1 in its denominator), and 0 for a constant feature."""
    if issparse(X):
        variances = mean_variance_axis(X, axis=0)[1] * X.shape[0] / max(X.shape[0] - 1, 1)
    else:
        variances = np.var(X, axis=0, ddof=min(1, len(X) - 1))
    deviations = np.sqrt(variances)
    # Rounding leaves a constant feature with a tiny deviation, which must not become a huge factor.
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if issparse(largest) else np.asarray(largest).ravel()
    constant = deviations <= 1e-12 * largest
    return np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviations))


def check_enough_rows(k: int, n_rows: int) -> None:
    """Raise an error when there is no neighbour k + 1, whose distance scales the others."""
    if k + 1 > n_rows:
        raise ValueError(
            f"n_neighbors={k} needs at least {k + 1} training rows, because the distance of "
            f"neighbour k + 1 scales weights; got n_samples = {n_rows}. Use a smaller n_neighbors."
        )


def _nearest_first(
    Q: Doubles,
    X: Doubles,
    candidates: Rows,
    bounds: Doubles,
    k: int,
    all_near: Callable[[int, float], Rows] | None = None,
) -> tuple[Doubles, Rows]:
    """Return the `k` nearest rows by exact distance; equal distances go by row number.

    Squared distances below `bounds` belong to candidates only. Where the k-th candidate is not
    below, `all_near` returns all rows up to its squared distance; by default all rows are compared.
    """
    Q, X, n = np.ascontiguousarray(Q), np.ascontiguousarray(X), len(X)
    squares, rows = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.intp)
    # A graph may find too few; where squares overflow, candidates may be missing or repeated.
    usable = ((candidates >= 0) & (candidates < n)).all(axis=1) & (bounds > -np.inf)
    candidates = np.where(usable[:, np.newaxis], candidates, 0)
    _sort_candidates(Q, X, candidates, squares, rows)
    # Where all rows are candidates, no other can be nearer.
    is_sure = usable & ((squares[:, -1] < bounds) | (candidates.shape[1] == n))
    for item in np.flatnonzero(~is_sure).tolist():
        square = squares[item, -1]
        near = np.arange(n)
        if all_near is not None and usable[item] and np.isfinite(square):
            near = all_near(item, float(square))
        _keep_nearest(Q[item], X, near, squares[item], rows[item])
    return np.sqrt(squares), rows


@njit(cache=True, nogil=True)
def _sort_candidates(queries, train, candidates, squares, rows):
    for i in range(len(queries)):
        _keep_nearest(queries[i], train, np.sort(candidates[i]), squares[i], rows[i])


@njit(cache=True, nogil=True)
def _keep_nearest(query, train, candidates, squares, rows):
    """Write the nearest of candidates, given in order of rows; equal distances go by row."""
    exact = np.empty(candidates.size)
    for place in range(candidates.size):
        exact[place] = _square(query, train[candidates[place]])
    if candidates.size > 2 * squares.size:  # sorting a few is quicker than sorting all
        near = np.flatnonzero(exact <= np.partition(exact, squares.size - 1)[squares.size - 1])
        candidates, exact = candidates[near], exact[near]
    order = np.argsort(exact, kind="mergesort")[: squares.size]
    squares[:] = exact[order]
    rows[:] = candidates[order]


@njit(cache=True, nogil=True)
def _square(a, b):
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total
