"""Studies: a frozen config, `run(config)` to a tidy table, `draw(table)` to a figure."""

from types import ModuleType

from . import normal_cauchy
from ._table import write_table

__all__ = ["FIGURES", "write_table"]

#: The figures of the paper that can be reproduced, by name. Each module has a `Config` for the full
#: study, a `QUICK` one, `run` and `draw`.
FIGURES: dict[str, ModuleType] = {"normal-cauchy": normal_cauchy}
