"""The one place where imbalanced-learn, the extra `smote`, is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["oversample"]

_NEIGHBORS = 5


def oversample(X: Any, y: NDArray[Any], *, rare_label: Any, wanted: int, seed: int) -> Any:
    """Add synthetic rare items until there are `wanted`: each between a rare one and a near one."""
    n_rare = int(np.count_nonzero(y == rare_label))
    if n_rare < 2:
        raise ValueError(f"SMOTE joins two rare items by a line; the sample has {n_rare}.")
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError as error:
        raise ImportError(
            "SMOTE needs imbalanced-learn: pip install 'shortlist[smote]'."
        ) from error
    smote = SMOTE(
        sampling_strategy={rare_label: wanted},
        k_neighbors=min(_NEIGHBORS, n_rare - 1),
        random_state=seed,
    )
    return smote.fit_resample(X, y)
