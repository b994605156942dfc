"""Optional packages: imported when they are needed, with an error that names the extra."""

from __future__ import annotations

import importlib
from typing import Any

_PACKAGES = {
    "boosting": ("lightgbm",),
    "cli": ("jinja2", "msgspec", "pandas", "pyarrow", "rich", "skops", "typer"),
    "dask": ("dask", "distributed"),
    "excel": ("openpyxl",),
    "kafka": ("confluent_kafka",),
    "onnx": ("onnx", "onnxruntime"),
    "plots": ("matplotlib",),
    "remote": ("fsspec",),
    "service": ("uvicorn",),
    "smote": ("imblearn",),
    "spark": ("pyspark",),
    "sql": ("psycopg", "duckdb", "sqlalchemy"),
}
#: The extra of `pip install 'shortlist[...]'` that brings each optional package.
EXTRAS = {package: extra for extra, packages in _PACKAGES.items() for package in packages}


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
