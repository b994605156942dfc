"""The only place that imports torch."""

try:
    import torch
except ImportError as error:
    raise ImportError(
        f"Training a network needs {error.name}, which is not installed. "
        "Install it with: pip install 'shortlist[network]'"
    ) from error

__all__ = ["torch"]
