"""How many caravan policies does `shortlist fit` list on the table of the CoIL challenge of 2000?

    python -m studies.detection.contest ticdata.rda --seeds 0 1 2

`ticdata.rda` is in the R package kernlab (Debian: r-cran-kernlab), and `pip install pyreadr` reads
it. The first 5,822 rows are learned from; 238 of the 4,000 others are rare, and 800 are listed.
Categories are numbered, and then written out as texts. The winner of the contest listed 121.
`contest.csv` has what was listed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shortlist import Capacity, select
from studies.detection.compare import fit_as_command, scores_as_command
from studies.tables import write_table

N_LEARN, N_LISTED, WINNER = 5_822, 800, 121


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
    """Fit with each seed, and save how many rare rows are listed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    rows = []
    for categories in ("numbered", "written out"):
        X, is_rare = load_contest(options.data, texts=categories == "written out")
        test, is_rare_there = X[N_LEARN:], is_rare[N_LEARN:]
        capacity = Capacity.count(N_LISTED, per=len(test))
        for seed in options.seeds:
            fitted = fit_as_command(X[:N_LEARN], is_rare[:N_LEARN], seed=seed, capacity=capacity)
            listed = select(scores_as_command(fitted.model, test), Capacity.count(N_LISTED))
            rows.append(
                {
                    "categories": categories,
                    "seed": seed,
                    "rows_to_learn_from": N_LEARN,
                    "listed": N_LISTED,
                    "rare_listed": int(np.count_nonzero(is_rare_there & listed)),
                    "rare": int(np.count_nonzero(is_rare_there)),
                    "listed_by_the_winner": WINNER,
                }
            )
            print(rows[-1], flush=True)
    write_table(rows, options.out / "contest.csv")


if __name__ == "__main__":
    main()
