"""The only place that imports pandas and pyarrow."""

try:
    import pandas
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    raise ImportError(
        f"Reading tables needs {error.name}, which is not installed. "
        "Install it with: pip install 'shortlist[cli]'"
    ) from error

__all__ = ["pandas", "pyarrow"]
