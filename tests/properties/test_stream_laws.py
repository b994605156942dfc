"""Laws of streams that are stopped and restarted."""

import contextlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.exceptions import StateFileError
from shortlist.online import BudgetController, QuantileTracker, TokenBucketController
from shortlist.streaming import DurableController

SCORES = st.lists(st.floats(-5, 5), min_size=1, max_size=60)
KINDS = {
    "budget": lambda: BudgetController(
        Capacity.count(3, per=20), calibration_scores=np.linspace(-3, 3, 50), remember=7
    ),
    "tracker": lambda: QuantileTracker(
        Capacity.fraction(0.1), calibration_scores=np.linspace(-3, 3, 50), remember=7
    ),
    "bucket": lambda: TokenBucketController(
        Capacity.fraction(0.1), calibration_scores=np.linspace(-3, 3, 50), burst=2, remember=7
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
        durable = DurableController(path, KINDS[kind], identity={}, sync=False)
        durable.__enter__()
        for _ in range(data.draw(st.integers(1, 3))):
            part = slice(done, done + data.draw(st.integers(1, 9)))
            if scores[part]:
                returned += durable.decide(scores[part], ids=ids[part]).flagged.tolist()
            done = part.stop
        normally = data.draw(st.booleans())
        durable.__exit__(None if normally else RuntimeError, None, None)
    assert returned == expected


@given(data=st.data(), n_decided=st.integers(1, 6))
def test_a_fault_in_the_file_gives_no_slot_twice(data, n_decided, tmp_path_factory):
    """A flipped bit is refused; after a write that was cut off, the returned decisions count."""
    path = tmp_path_factory.mktemp("fault") / "state"
    crashed = DurableController(path, KINDS["budget"], identity={}, sync=False).__enter__()
    returned = sum(bool(crashed.decide([9.0 + i]).flagged[0]) for i in range(n_decided))
    answered = path.stat().st_size
    crashed.decide([20.0])  # never returned
    crashed.__exit__(RuntimeError, None, None)
    content = bytearray(path.read_bytes())
    is_flipped = data.draw(st.booleans())
    if is_flipped:
        bit = data.draw(st.integers(0, 8 * len(content) - 1))
        content[bit // 8] ^= 1 << bit % 8
    else:
        del content[data.draw(st.integers(answered, len(content))) :]
    path.write_bytes(content)
    refused = True
    with (
        contextlib.suppress(StateFileError),
        DurableController(path, KINDS["budget"], identity={}, sync=False) as durable,
    ):
        refused = False
        returned += sum(bool(durable.decide([30.0 + i]).flagged[0]) for i in range(4))
    assert refused == is_flipped
    assert returned <= 3
