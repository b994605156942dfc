"""Does boosting find more if it chooses its form by unseen rows?

    python -m studies.detection.boosting_form            # choosing and confirming lists, a minute
    python -m studies.detection.boosting_form --credit   # eight draws of the credit data as well

The recommended `make_learner("boosting")` beside one form, 200 rounds of eight leaves. Three fifths
of each table train, the others are ranked; mean detection at b = 1, 2, 3, paired by table.
`boosting_form.csv` has the means.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from shortlist import Capacity
from shortlist.learners import make_learner
from shortlist.learners.columns import frame_view, split_columns
from shortlist.metrics import detection_at_capacity
from studies.aware.credit import SEED
from studies.credit_data import clients
from studies.detection.tables import (
    CHOOSING,
    CHOOSING_EVERYDAY,
    CONFIRMING,
    CONFIRMING_EVERYDAY,
    load_table,
)
from studies.harness import plain_boosting, print_summary
from studies.paper.credit_protocol import draw_split
from studies.tables import mean_and_error, write_table

LISTS = {
    "choosing": (*CHOOSING, *CHOOSING_EVERYDAY),
    "confirming": (*CONFIRMING, *CONFIRMING_EVERYDAY),
}
Split = tuple[Any, Any, Any, Any, int]


def splits(tables: Any) -> Iterator[Split]:
    """Yield training and test rows of tables, with their columns encoded."""
    for source in tables:
        X, is_rare = load_table(source)
        seed = zlib.crc32(source.name.encode()) % 10_000
        learn, test = train_test_split(
            np.arange(is_rare.size), test_size=0.4, stratify=is_rare, random_state=seed
        )
        view = make_pipeline(frame_view("scaled", *split_columns(X))).fit(X.iloc[learn])
        parts = (view.transform(X.iloc[rows]) for rows in (learn, test))
        yield (*parts, np.asarray(is_rare)[learn], np.asarray(is_rare)[test], seed)


def credit_draws(n_draws: int) -> Iterator[Split]:
    """Yield draws of the credit data, by the paper's protocol."""
    X, y = clients()
    for draw in range(n_draws):
        rng = np.random.default_rng([SEED, draw])
        drawn = draw_split(np.arange(y.size), y, prevalence=0.02, rng=rng)
        yield X[drawn.X_train], X[drawn.X_test], drawn.y_train == 1, drawn.y_test == 1, draw


def compare(name: str, parts: Iterator[Split]) -> dict[str, Any]:
    """Return one row: the detection of both, their difference, and what the choice costs."""
    found: list[list[float]] = []
    seconds = np.zeros(2)
    for X, X_test, is_rare, is_rare_test, seed in parts:
        pair = []
        for place, model in enumerate(
            (plain_boosting(seed), make_learner("boosting", random_state=seed))
        ):
            begun = time.process_time()
            model.fit(X, is_rare)
            seconds[place] += time.process_time() - begun
            scores = model.predict_proba(X_test)[:, 1]
            limits = [Capacity.multiple(b) for b in (1, 2, 3)]
            pair.append(np.mean([detection_at_capacity(is_rare_test, scores, b) for b in limits]))
        found.append(pair)
    one, chosen = np.transpose(found)
    return {
        "tables": name,
        "one_form": float(one.mean()),
        "chosen": float(chosen.mean()),
        **mean_and_error(chosen - one),
        "times_the_cost": float(seconds[1] / seconds[0]),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--credit", action="store_true")
    with_credit = parser.parse_args().credit
    rows = [compare(name, splits(tables)) for name, tables in LISTS.items()]
    if with_credit:
        rows.append(compare("credit data", credit_draws(8)))
    file = Path(__file__).with_suffix(".csv")
    write_table(rows, file)
    print_summary(file)
