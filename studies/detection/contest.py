"""How many caravan policies does `shortlist fit` list on the table of the CoIL challenge of 2000?

    python -m studies.detection.contest ticdata.rda --seeds 0 1 2

`ticdata.rda` is in the R package kernlab (Debian: r-cran-kernlab), and `pip install pyreadr` reads
it. The first 5,822 rows are learned from; 238 of the 4,000 others are rare, and 800 are listed.
Categories are numbered, or written out with `--texts`. The winner of the contest listed 121.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shortlist import Capacity, select
from studies.detection.compare import fit_as_command, scores_as_command

N_LEARN, N_LISTED = 5_822, 800


def load_contest(path: Path, *, texts: bool = False) -> tuple[Any, Any]:
    """Return the columns, with categories as numbers or texts, and where the rare rows are."""
    import pyreadr

    data = pyreadr.read_r(str(path))["ticdata"]
    is_rare = (data.pop("CARAVAN") == "insurance").to_numpy()
    columns = {
        name: column.astype(float)
        if column.dtype != "category"
        else column.astype(str)
        if texts
        else column.cat.codes.astype(float)
        for name, column in data.items()
    }
    return pd.DataFrame(columns), is_rare


def main() -> None:
    """Fit with each seed, and print how many rare rows are listed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--texts", action="store_true", help="write categories out")
    options = parser.parse_args()
    X, is_rare = load_contest(options.data, texts=options.texts)
    test = X[N_LEARN:]
    for seed in options.seeds:
        capacity = Capacity.count(N_LISTED, per=len(test))
        fitted = fit_as_command(X[:N_LEARN], is_rare[:N_LEARN], seed=seed, capacity=capacity)
        listed = select(scores_as_command(fitted.model, test), Capacity.count(N_LISTED))
        print(f"seed {seed}: {np.count_nonzero(is_rare[N_LEARN:] & listed)} of 238", flush=True)


if __name__ == "__main__":
    main()
