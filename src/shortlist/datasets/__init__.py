"""Loaders and simulators; each returns `X, y` and says where the data come from."""

from ._fraud import FRAUD_FEATURES, make_fraud

__all__ = ["FRAUD_FEATURES", "make_fraud"]
