"""Names for the kinds of arrays that functions take and return."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

#: Scores and features in single or double precision.
Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: Positions of items, as whole numbers.
Rows = NDArray[np.intp]
#: Gives the tie keys of the items at the given positions. Only tied items are ever asked for.
TieKeys = Callable[[Rows], Doubles]
