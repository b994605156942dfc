"""Nearest neighbours: exact by a certified search in single precision or a tree, or approximate.

Single precision halves the cost of the matrix product that finds candidates. Their distances are
then computed anew in double precision, and a bound on the rounding errors certifies that no row was
missed; queries without a certificate are searched again, slowly and exactly.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from .._core.scoring import n_threads

__all__ = ["ALGORITHMS", "NeighborSearch"]

ALGORITHMS = ("auto", "brute", "tree", "approximate")
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_MOST_TREE_FEATURES = 8  # beyond that, a tree visits most of its leaves
_BLOCK = 64  # queries at a time, so that their products stay in the cache
_SPARE = 4  # candidates beyond those asked for, so that few queries stay without a certificate
_GROUPS = 4  # of rows for each neighbour asked for, whose nearest members bound the farthest one
_WIDEST_GROUP = 32  # rows
_LINKS = 32  # of each row in the graph of the approximate search
_LEAST_BREADTH = 64  # of a walk through it
_LARGEST = 1e15  # squares of larger numbers leave single precision


class NeighborSearch:
    """Nearest rows of a training matrix by Euclidean distance; equal distances go by row number."""

    def __init__(self, X: Any, *, algorithm: str = "auto") -> None:
        self.X, self._algorithm = X, algorithm
        self._query = self._prepare(algorithm)

    def __getstate__(self) -> dict[str, Any]:
        # Trees and graphs are built again: they hold memory that file formats cannot describe.
        return {"X": self.X, "algorithm": self._algorithm}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def query(self, Q: Any, k: int) -> tuple[Floats, Rows]:
        """Return distances and rows of the `k` nearest neighbours, the nearest first."""
        return self._query(Q, k)

    def query_training(self, k: int) -> tuple[Floats, Rows]:
        """Return the `k` nearest neighbours of every training row among the others."""
        distances, rows = self._query(self.X, k + 1)
        keep = rows != np.arange(len(rows))[:, np.newaxis]
        # Among many copies a row may not find itself: its last neighbour makes room instead.
        keep[keep.all(axis=1), -1] = False
        return distances[keep].reshape(-1, k), rows[keep].reshape(-1, k)

    def _prepare(self, algorithm: str) -> Any:
        if algorithm == "approximate":
            return self._prepare_approximate()
        if issparse(self.X):
            return NearestNeighbors(algorithm="brute").fit(self.X).kneighbors
        few_features = self.X.shape[1] <= _MOST_TREE_FEATURES
        if algorithm == "tree" or (algorithm == "auto" and few_features):
            self._tree = cKDTree(self.X)
            return self._query_tree
        # Distances do not change when all points move; rounding errors shrink near the origin.
        self._center = self.X.mean(axis=0)
        self._moved = np.ascontiguousarray(self.X - self._center)
        squares = np.einsum("ij,ij->i", self._moved, self._moved)
        # One product gives |t|^2 - 2 q.t, which orders like the distance.
        self._largest = _largest(self._moved)
        if self._largest <= _LARGEST:
            single = np.vstack([-2 * self._moved.T, squares])
            self._single = np.ascontiguousarray(single, dtype=np.float32)
        return self._query_brute

    def _prepare_approximate(self) -> Any:
        if issparse(self.X):
            raise ValueError(
                "algorithm='approximate' takes dense arrays only; got a sparse matrix. Reduce it, "
                "for example with TruncatedSVD, or use algorithm='brute'."
            )
        self._graph = _faiss().IndexHNSWFlat(self.X.shape[1], _LINKS)
        self._graph.add(self.X.astype(np.float32))
        return self._query_graph

    def _query_graph(self, Q: Floats, k: int) -> tuple[Floats, Rows]:
        self._graph.hnsw.efSearch = max(_LEAST_BREADTH, 2 * k)
        rows = self._graph.search(Q.astype(np.float32), k)[1].astype(np.intp)
        squares = np.empty(rows.shape)
        _sort_found(np.ascontiguousarray(Q), self.X, squares, rows)
        return np.sqrt(squares), rows

    def _query_tree(self, Q: Floats, k: int) -> tuple[Floats, Rows]:
        distances, rows = self._tree.query(Q, k)
        return distances.reshape(-1, k), rows.reshape(-1, k)

    def _query_brute(self, Q: Floats, k: int) -> tuple[Floats, Rows]:
        Q = np.ascontiguousarray(Q - self._center)
        squares, rows = np.empty((len(Q), k)), np.empty((len(Q), k), dtype=np.intp)
        if max(_largest(Q), self._largest) > _LARGEST:
            _nearest_exact(Q, self._moved, squares, rows)
            return np.sqrt(squares), rows
        single = np.column_stack([Q, np.ones(len(Q))]).astype(np.float32)

        def search(start: int, stop: int) -> None:
            buffer = np.empty((_BLOCK, len(self._moved)), dtype=np.float32)
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                product = np.matmul(single[block], self._single, out=buffer[: len(Q[block])])
                _nearest_certified(product, Q[block], self._moved, squares[block], rows[block])

        # Products this small are done before a second thread of theirs has woken up.
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads()) as pool:
            edges = np.linspace(0, len(Q), min(n_threads(), 1 + len(Q) // _BLOCK) + 1).astype(int)
            list(pool.map(search, edges[:-1].tolist(), edges[1:].tolist()))
        return np.sqrt(squares), rows


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            "algorithm='approximate' needs faiss: pip install 'shortlist[neighbors]'."
        ) from error
    return faiss


@njit(cache=True, nogil=True)
def _square(a, b):
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@njit(cache=True, nogil=True)
def _level(values, k, minima):
    """Return a number that at least k values do not exceed, and seldom many more.

    It is the k-th smallest minimum of as many groups as there is room for in `minima`: k groups
    have a value at or below it. Few minima are selected from much faster than all values.
    """
    minima[:] = values[: minima.size]
    for start in range(minima.size, values.size, minima.size):
        group = values[start : start + minima.size]
        for g in range(group.size):
            minima[g] = group[g] if group[g] < minima[g] else minima[g]
    return np.partition(minima, k - 1)[k - 1]


@njit(cache=True, nogil=True)
def _keep_nearest(candidate_squares, candidates, squares, rows):
    """Keep the nearest of candidates in order of rows, sorted; equal distances go by row."""
    order = np.argsort(candidate_squares, kind="mergesort")[: squares.size]
    squares[:] = candidate_squares[order]
    rows[:] = candidates[order]


@njit(cache=True, nogil=True)
def _scan(query, train, squares, rows):
    """Find the nearest training rows of one query by looking at all of them."""
    every = np.empty(len(train))
    for i in range(len(train)):
        every[i] = _square(query, train[i])
    candidates = np.flatnonzero(every <= np.partition(every, squares.size - 1)[squares.size - 1])
    _keep_nearest(every[candidates], candidates, squares, rows)


@njit(cache=True, nogil=True)
def _nearest_exact(queries, train, squares, rows):
    for i in range(len(queries)):
        _scan(queries[i], train, squares[i], rows[i])


@njit(cache=True, nogil=True)
def _sort_found(queries, train, squares, rows):
    """Sort what was found by exact distance; scan everything where the graph fell apart."""
    for i in range(len(queries)):
        candidates = np.sort(rows[i])
        if candidates[0] < 0:
            _scan(queries[i], train, squares[i], rows[i])
            continue
        exact = np.empty(candidates.size)
        for c in range(candidates.size):
            exact[c] = _square(queries[i], train[candidates[c]])
        _keep_nearest(exact, candidates, squares[i], rows[i])


@njit(cache=True, nogil=True)
def _nearest_certified(product, queries, train, squares, rows):
    """Sort the best candidates by exact distance; scan everything where one may be missing."""
    k, n_features, n = squares.shape[1], queries.shape[1], len(train)
    unit = (n_features + 4) * 2.0**-23  # bounds the relative error of a product in single precision
    wanted = min(k + _SPARE, n)
    minima = np.empty(n // max(1, min(n // (_GROUPS * wanted), _WIDEST_GROUP)), dtype=np.float32)
    candidates, exact = np.empty(n, dtype=np.intp), np.empty(n)
    for i in range(len(queries)):
        level, found = _level(product[i], wanted, minima), 0
        for j in range(n):
            if product[i, j] <= level:
                candidates[found] = j
                exact[found] = _square(queries[i], train[j])
                found += 1
        _keep_nearest(exact[:found], candidates[:found], squares[i], rows[i])
        if found == n:
            continue
        # A row farther from the origin than this is farther from the query than the k-th.
        length = np.sqrt(_square(queries[i], np.zeros(n_features)))
        farthest = length + np.sqrt(squares[i, k - 1])
        error = unit * (length + farthest) ** 2
        if not squares[i, k - 1] < level + length**2 - error:
            _scan(queries[i], train, squares[i], rows[i])
