"""Laws of streams that are stopped and restarted."""

import contextlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import BudgetController, QuantileTracker
from tests.stream.scores_of_lines import open_scores

SCORES = st.lists(st.floats(-5, 5), min_size=1, max_size=60)
KINDS = {
    "budget": lambda: BudgetController(
        Capacity.count(3, per=20), calibration_scores=np.linspace(-3, 3, 50), remember=1_000
    ),
    "tracker": lambda: QuantileTracker(
        Capacity.fraction(0.1), calibration_scores=np.linspace(-3, 3, 50), remember=1_000
    ),
    "bucket": lambda: QuantileTracker(
        Capacity.fraction(0.1), calibration_scores=np.linspace(-3, 3, 50), burst=2, remember=1_000
    ),
}


@given(data=st.data(), scores=SCORES, kind=st.sampled_from(sorted(KINDS)))
def test_batches_and_restarts_change_no_decision(data, scores, kind, tmp_path_factory):
    """This holds for any batches, and wherever the process ends, normally or not."""
    ids = data.draw(
        st.lists(
            st.one_of(st.none(), st.sampled_from("abcdefghij")),
            min_size=len(scores),
            max_size=len(scores),
        )
    )
    alone = KINDS[kind]()
    expected = [alone.decide(s, id=i).flag for s, i in zip(scores, ids, strict=True)]
    path, returned, done = tmp_path_factory.mktemp("law") / "state", [], 0
    while done < len(scores):
        opened = open_scores(path, KINDS[kind](), identity={}, sync=False)
        durable = opened.__enter__()
        for _ in range(data.draw(st.integers(1, 3))):
            part = slice(done, done + data.draw(st.integers(1, 9)))
            if scores[part]:
                returned += [each.flag for each in durable.decide(scores[part], ids=ids[part])]
            done = part.stop
        normally = data.draw(st.booleans())
        with contextlib.suppress(RuntimeError):
            opened.__exit__(*((None,) * 3 if normally else (RuntimeError, RuntimeError(), None)))
    assert returned == expected
