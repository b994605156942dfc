"""Names for the kinds of arrays that functions take and return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Doubles", "Floats", "Ints", "Mask", "Rows"]

#: Scores and features in single or double precision.
Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: Positions of items, as whole numbers.
Rows = NDArray[np.intp]
