"""A moment that is wrong by a factor of a thousand does not move the clock of a stream."""

import io
import json
import os

import numpy as np
import pandas as pd
import pytest

from shortlist import Capacity
from shortlist.service.stream import StreamSettings, run_stream
from shortlist.service.stream_file import open_stream

DAY = 86_400.0
EPOCH = 1_760_000_000 // 86_400 * DAY  # a midnight in 2025


@pytest.fixture(scope="module")
def rows(new_cases):
    """Return a thousand cases without their labels."""
    frame = pd.read_csv(new_cases).drop(columns=["fraud", "case"])
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [rows[i % len(rows)] for i in range(1_000)]


@pytest.fixture
def stream(table_fit, tmp_path):
    """Return a function that streams rows with moments, ten flags a day, in several runs."""
    settings = StreamSettings(capacity=Capacity.count(10), period=DAY)

    def stream(rows, times, *, runs=1, now=EPOCH + 5 * DAY, state="state"):
        lines = [
            json.dumps(row | {"case": f"c{i}", "at": at}).encode() + b"\n"
            for i, (row, at) in enumerate(zip(rows, times, strict=True))
        ]
        out, counts = io.BytesIO(), []
        for part in np.array_split(np.arange(len(lines)), runs):
            (tmp_path / "lines").write_bytes(b"".join(lines[i] for i in part))
            source = os.open(tmp_path / "lines", os.O_RDONLY)
            with open_stream(
                tmp_path / state,
                settings.controller(table_fit.model),
                identity=settings.to_json(table_fit.model),
                sync=False,
            ) as durable:
                counts.append(
                    run_stream(table_fit.model, durable, source, out, clock=lambda: now, batch=64)
                )
            os.close(source)
        return [json.loads(line) for line in out.getvalue().splitlines()], counts

    return stream


def per_day(answers, times):
    """Return the flags of each true day."""
    flags = np.array([answer.get("flag", False) for answer in answers])
    return np.bincount(((times - times[0]) // DAY).astype(int), weights=flags, minlength=5)


@pytest.mark.parametrize("start", [0.0, EPOCH])
@pytest.mark.parametrize("wrong", [[100], [100, 101, 102, 350], [999]])
def test_a_moment_in_milliseconds_is_an_invalid_line(stream, rows, start, wrong):
    """It is reported and counted, every day keeps its number, and the days after use theirs."""
    times = start + np.arange(1_000) * DAY / 200
    sent = times.copy()
    sent[wrong] *= 1_000
    answers, (counts,) = stream(rows, sent.tolist())
    assert [i for i, answer in enumerate(answers) if "error" in answer] == wrong
    assert all("milliseconds" in answers[i]["error"] for i in wrong)
    assert counts.n_errors == len(wrong)
    flags = per_day(answers, times)
    assert flags.max() <= 10
    assert flags[1:].min() >= 5
    assert [a["at"] for a in answers if "at" in a] == pytest.approx(np.delete(times, wrong))


def test_the_first_line_may_be_the_wrong_one(stream, rows):
    """Before any other line, the clock on the wall says what lies in the future."""
    times = EPOCH + np.arange(1_000) * DAY / 200
    sent = times.copy()
    sent[0] *= 1_000
    answers, (counts,) = stream(rows, sent.tolist())
    assert ("error" in answers[0], counts.n_errors) == (True, 1)
    assert "in the future" in answers[0]["error"]
    assert per_day(answers, times)[1:].min() >= 5


def test_a_stream_all_in_milliseconds_is_invalid(stream, rows):
    """Otherwise its days would last 86 seconds, and each would get the number of a day."""
    times = (EPOCH + np.arange(200) * DAY / 200) * 1_000
    _, (counts,) = stream(rows[:200], times.tolist())
    assert (counts.n_errors, counts.n_flagged) == (200, 0)


def test_a_stream_may_run_ahead_of_the_clock(stream, rows):
    """A simulation that starts today and covers a year is no mistake, whatever the batches."""
    times = EPOCH + np.arange(1_000) * 0.365 * DAY
    _, (counts,) = stream(rows, times.tolist(), now=EPOCH)
    assert counts.n_errors == 0


def test_a_true_pause_of_months_costs_four_lines(stream, rows):
    """The fifth line in a row after the pause moves the clock, also across restarts."""
    times = EPOCH - 500 * DAY + np.arange(400) * DAY / 200
    times[200:] += 100 * DAY
    answers, counts = stream(rows[:400], times.tolist())
    assert [i for i, answer in enumerate(answers) if "error" in answer] == [200, 201, 202, 203]
    again, more = stream(rows[:400], times.tolist(), runs=100, state="other")
    without_line = [{k: v for k, v in each.items() if k != "line"} for each in (*answers, *again)]
    assert without_line[:400] == without_line[400:]
    assert sum(each.n_errors for each in more) == counts[0].n_errors == 4


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.TableNote")
def test_a_refused_line_may_be_sent_again(stream, rows):
    """Its id has no answer yet, and its right moment is accepted."""
    times = EPOCH + np.arange(100) * DAY / 200
    sent = [*times[:50], times[50] * 1_000, *times[51:]]
    answers, _ = stream(rows[:100], sent)
    assert "error" in answers[50]
    again, _ = stream([rows[50]] * 51, [times[99]] * 51)
    assert [each["reason"] for each in again[:50]] == ["seen before"] * 50
    assert again[50]["reason"] in {"above threshold", "below threshold"}
