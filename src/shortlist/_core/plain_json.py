"""Results as plain JSON."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["flattened", "to_plain"]


def to_plain(content: Any) -> Any:
    """Return dicts, lists, texts and numbers that JSON can hold; NaN and infinities become None.

    Dataclasses become dicts of their fields, tuples and arrays lists, and NumPy scalars become
    Python numbers.

    >>> to_plain({"shares": (np.float64(0.5), math.nan)})
    {'shares': [0.5, None]}
    """
    if is_dataclass(content) and not isinstance(content, type):
        return {field.name: to_plain(getattr(content, field.name)) for field in fields(content)}
    if isinstance(content, dict):
        return {str(key): to_plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [to_plain(value) for value in content]
    if isinstance(content, np.ndarray):
        return to_plain(content.tolist())
    if isinstance(content, np.generic):
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content


def flattened(record: dict[str, Any]) -> dict[str, Any]:
    """Return an object without objects inside: theirs are named with a dot.

    >>> flattened({"id": 7, "shop": {"country": "ar", "size": 3}})
    {'id': 7, 'shop.country': 'ar', 'shop.size': 3}
    """
    if not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{inner}": each for inner, each in flattened(value).items()}
        else:
            flat[name] = value
    return flat
