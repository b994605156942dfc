"""Loaders and simulators of data; each returns `X, y` and documents the source of the data."""

from ._credit import load_credit_default
from ._fraud import FRAUD_FEATURES, make_fraud

__all__ = ["FRAUD_FEATURES", "load_credit_default", "make_fraud"]
