"""Exact answers about files and folders that do not fit into memory."""

from .engine import LocalEngine
from .functions import Functions

__all__ = ["calibrate", "evaluate", "flag", "score", "select"]

_functions = Functions(LocalEngine())
select, calibrate = _functions.select, _functions.calibrate
score, flag, evaluate = _functions.score, _functions.flag, _functions.evaluate
