"""Loaders and simulators of data; each returns `X, y` and documents the source of the data."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["FRAUD_FEATURES", "load_credit_default", "make_fraud"]

#: Names of the columns that :func:`make_fraud` returns.
FRAUD_FEATURES = (
    "amount",
    "hour",
    "km_from_home",
    "payments_last_day",
    "card_age_days",
    "merchant_risk",
    "new_device",
    "abroad",
)


def make_fraud(
    n_samples: int = 40_000, *, prevalence: float = 0.01, random_state: Any = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Simulate card payments of which a small share is fraudulent.

    Some frauds are obvious (large, at night, far away, from a new device), others look almost like
    ordinary payments, and most lie in between. The simulation is not based on real data.

    Parameters
    ----------
    n_samples : int, default=40_000
        Number of payments.
    prevalence : float, default=0.01
        Share of frauds, rounded to whole payments.
    random_state : int, RandomState instance or None, default=0
        The same number gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 8)
        Columns as in `FRAUD_FEATURES`.
    y : ndarray of shape (n_samples,)
        1 for a fraud, 0 for an ordinary payment.

    Examples
    --------
    >>> from shortlist.datasets import make_fraud
    >>> X, y = make_fraud(10_000)
    >>> X.shape, int(y.sum())
    ((10000, 8), 100)
    """
    rng = check_random_state(random_state)
    y = np.zeros(n_samples, dtype=np.int64)
    y[: round(prevalence * n_samples)] = 1
    rng.shuffle(y)
    # How far a payment departs from ordinary ones: from 0, not at all, to 1, blatantly.
    oddity = np.where(y == 1, rng.beta(1.3, 1.0, size=n_samples), 0.0)
    X = np.column_stack(
        [
            rng.lognormal(3.2 + 1.5 * oddity, 1.0),
            (rng.normal(15 - 11 * oddity, 4.5) % 24).round(1),
            rng.lognormal(1.5 + 2.0 * oddity, 1.4),
            rng.poisson(2 + 4 * oddity),
            rng.gamma(2.0, 500 / (1 + 2 * oddity)).round(),
            rng.beta(2 + 2 * oddity, 8),
            rng.uniform(size=n_samples) < 0.05 + 0.45 * oddity,
            rng.uniform(size=n_samples) < 0.04 + 0.30 * oddity,
        ]
    )
    return X, y


# --- default of credit card clients, the data of the paper ---

#: Names of the columns that :func:`load_credit_default` returns.
CREDIT_FEATURES = (
    "LIMIT_BAL",
    "SEX",
    "EDUCATION",
    "MARRIAGE",
    "AGE",
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
)
FILE_NAME = "taiwan_credit_default.csv.gz"
VARIABLE = "SHORTLIST_DATA"
OPENML_ID = 42477

_SHAPE = (30_000, 24)
# Of the table as 64-bit integers, row by row: it is the same for every source.
_CHECKSUM = "9dc981540a6e93a868c943fd1b08dea87a123132108396c6bc5c7b0590f125a4"


def load_credit_default(
    path: Any = None, *, rows: int = 30_000
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Load 30,000 credit card clients of a Taiwanese bank; 22 % did not pay the next month.

    The table is read from `path`. Without `path` it is read from the file or folder that the
    environment variable `SHORTLIST_DATA` names. Without either it is downloaded from OpenML and
    kept in scikit-learn's cache. Shape and checksum are verified for every source.

    Parameters
    ----------
    path : path-like, default=None
        A CSV file with a header, plain or compressed by gzip, or the folder that holds
        ``taiwan_credit_default.csv.gz``.
    rows : int, default=30_000
        Keep the last `rows` clients. The paper uses the last 25,000.

    Returns
    -------
    X : ndarray of shape (rows, 23)
        Columns as in `CREDIT_FEATURES`.
    y : ndarray of shape (rows,)
        1 for a default, 0 otherwise.

    Notes
    -----
    I-Cheng Yeh (2016), Default of Credit Card Clients, UCI Machine Learning Repository,
    doi 10.24432/C55S3H, CC BY 4.0.

    Examples
    --------
    >>> from shortlist.datasets import load_credit_default
    >>> X, y = load_credit_default()  # doctest: +SKIP
    >>> X.shape, int(y.sum())  # doctest: +SKIP
    ((30000, 23), 6636)
    """
    if not 1 <= rows <= _SHAPE[0]:
        raise ValueError(f"rows must lie between 1 and {_SHAPE[0]:,}; got {rows!r}.")
    file = _find(path)
    table = _fetch() if file is None else _read(file)
    _verify(table, "OpenML" if file is None else str(file))
    kept = table[-rows:]
    return kept[:, :-1].astype(np.float64), kept[:, -1].copy()


def _find(path: Any) -> Path | None:
    """Return the file to read, or None if neither the path nor the variable names one."""
    named = os.environ.get(VARIABLE) if path is None else path
    if not named:
        return None
    file = Path(named) / FILE_NAME if Path(named).is_dir() else Path(named)
    if not file.is_file():
        raise FileNotFoundError(
            f"path=... or the environment variable {VARIABLE} leads to {file}, which does not "
            f"exist. Name the file, or the folder that holds {FILE_NAME}. Without both, the table "
            f"is downloaded from OpenML (data set {OPENML_ID})."
        )
    return file


def _read(file: Path) -> NDArray[np.int64]:
    content = file.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    lines = content.decode().splitlines()[1:]
    try:
        table = np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError as error:
        raise ValueError(f"{file} is not a table of numbers below a header: {error}") from error
    # A leading column numbers the clients.
    return table[:, -_SHAPE[1] :].astype(np.int64)


def _fetch() -> NDArray[np.int64]:
    from sklearn.datasets import fetch_openml

    try:
        data = fetch_openml(data_id=OPENML_ID, as_frame=False, parser="liac-arff")
    except OSError as error:
        raise OSError(
            f"The credit data cannot be downloaded: OpenML could not be reached ({error}). "
            f"Download data set {OPENML_ID} from openml.org as a CSV file on another machine, put "
            f"it into a folder as {FILE_NAME} (or as plain CSV under any name), and "
            f"name the file: path=..., or the environment variable {VARIABLE}."
        ) from error
    X = np.asarray(data.data, dtype=np.float64)[:, -(_SHAPE[1] - 1) :]
    return np.column_stack([X, np.asarray(data.target, dtype=np.float64)]).astype(np.int64)


def _verify(table: NDArray[np.int64], source: str) -> None:
    if table.shape != _SHAPE or _checksum(table) != _CHECKSUM:
        raise ValueError(
            f"The credit data from {source} are not the published table of shape {_SHAPE}: got "
            f"shape {table.shape}, and the checksum differs. Use an unchanged copy."
        )


def _checksum(table: NDArray[np.int64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(table, dtype="<i8").tobytes()).hexdigest()
