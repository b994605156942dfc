"""Exact answers about files and folders that do not fit into memory."""

from ._local import LocalEngine
from .functions import Functions

__all__ = ["calibrate", "evaluate", "flag", "sample", "score", "select"]

_functions = Functions(LocalEngine())
select, calibrate, sample = _functions.select, _functions.calibrate, _functions.sample
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
