"""Models in files that never execute code when they are read. Needs the extra `cli` (skops)."""

from ._manifest import FORMAT_VERSION
from ._model_file import describe_model, load_model, save_model

__all__ = ["FORMAT_VERSION", "describe_model", "load_model", "save_model"]
