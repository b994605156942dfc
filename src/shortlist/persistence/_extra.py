"""The only place that imports skops."""

try:
    import skops.io as skops
except ImportError as error:
    raise ImportError(
        f"Model files need {error.name}, which is not installed. "
        "Install it with: pip install 'shortlist[cli]'"
    ) from error

__all__ = ["skops"]
