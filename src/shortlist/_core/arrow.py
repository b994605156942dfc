"""Arrow and pandas, which hold tables, imported once, with one error where they are missing."""

from __future__ import annotations

from .extras import load_extra

pa = load_extra("pyarrow", needed_for="Reading tables")
pd = load_extra("pandas", needed_for="Reading tables")
for _module in ("compute", "csv", "parquet"):
    load_extra(f"pyarrow.{_module}", needed_for="Reading tables")
