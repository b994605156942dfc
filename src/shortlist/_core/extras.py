"""Optional packages: imported when they are needed, with an error that names the extra."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: The extra of `pip install 'shortlist[...]'` that brings each optional package.
EXTRAS = {
    "confluent_kafka": "kafka",
    "dask": "dask",
    "distributed": "dask",
    "imblearn": "smote",
    "jinja2": "cli",
    "lightgbm": "boosting",
    "matplotlib": "plots",
    "msgspec": "cli",
    "onnx": "onnx",
    "openpyxl": "excel",
    "onnxruntime": "onnx",
    "pandas": "cli",
    "psycopg": "sql",
    "duckdb": "sql",
    "pyarrow": "cli",
    "pyspark": "spark",
    "rich": "cli",
    "skops": "cli",
    "typer": "cli",
    "uvicorn": "service",
}

# skops asks scikit-learn for all its estimators, which imports every one of its modules, and one
# of them imports PyTorch where that is installed: seconds and 200 MB that no model of ours needs.
_NOT_NEEDED_BY_SKOPS = "sklearn.externals.array_api_compat.torch"


def load_extra(module: str, *, needed_for: str, otherwise: str = "") -> Any:
    """Import an optional package or one of its modules.

    Parameters
    ----------
    module : str
        Such as ``"pyarrow.parquet"``.
    needed_for : str
        What the user wanted to do; the error starts with it.
    otherwise : str
        What works without the package, as a sentence.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = (error.name or package).partition(".")[0]
        raise ImportError(
            f"{needed_for} needs {missing}, which is not installed. Install it with: "
            f"pip install 'shortlist[{EXTRAS[package]}]'{'. ' if otherwise else ''}{otherwise}",
            name=missing,
        ) from error


def load_skops() -> Any:
    """Import the reader and writer of model files, without importing PyTorch along the way."""
    with _left_out(_NOT_NEEDED_BY_SKOPS):
        return load_extra("skops.io", needed_for="Reading or writing model files")


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """Make the import of a module fail for a while, unless it has been imported already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
