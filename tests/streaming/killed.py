"""Start one stream after the other, and kill each at a random moment, as `kill -9` does.

Run as a program: ``python killed.py FOLDER``. It forks a process for every stream. The model costs
nothing; therefore a hundred crashes take only seconds. Lines without an answer are sent again, as a
careful sender would do. The program prints all answers and the number of streams that were killed,
for lines with and without ids.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from shortlist import Capacity
from shortlist.online import BudgetController
from shortlist.streaming import DurableController, run_stream
from shortlist.tables import Feature, TableModel, TableSchema

PERIOD, COUNT, N_LINES, N_SENT = 100.0, 3, 600, 30


class Amounts:
    """A model whose score is the amount."""

    def score_samples(self, X):
        """Return the amounts."""
        return X["amount"].to_numpy()


MODEL = TableModel(
    Amounts(), TableSchema((Feature("amount", "numeric"),), "fraud", "yes", "case"), {}, "none"
)


def budget():
    """Return three flags for every hundred seconds."""
    return BudgetController(
        Capacity.count(COUNT),
        period=PERIOD,
        expected_arrivals=100,
        calibration_scores=np.linspace(50, 250, 1_000),
    )


def lines(with_ids):
    """Return one line per second, with slowly rising amounts."""
    rng = random.Random(0)
    for i in range(N_LINES):
        line = {"amount": 50 + 200 * rng.random() + i / 10, "at": float(i)}
        yield i, json.dumps(line | ({"case": f"c{i}"} if with_ids else {})).encode() + b"\n"


def live(state, source, out):
    """Run a stream, in its own process."""
    with DurableController(state, budget, identity={}) as durable, os.fdopen(out, "wb") as file:
        run_stream(MODEL, durable, source, file, batch=4)


def one_life(state, content, patience):
    """Start a stream, feed it and kill it; return its answers and whether it was cut short."""
    (source, feed), (listen, out) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(feed)
        os.close(listen)
        try:
            live(state, source, out)
        finally:
            os._exit(0)
    os.close(source)
    os.close(out)
    os.write(feed, content)  # less than a pipe holds
    os.close(feed)
    end, ended = time.monotonic() + patience, 0
    while not ended and time.monotonic() < end:
        time.sleep(0.001)
        ended, _ = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    said = b""
    while part := os.read(listen, 1 << 16):
        said += part
    os.close(listen)
    whole = said[: said.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], not ended


def many_lives(state, with_ids):
    """Kill and start again until every line has an answer."""
    rng, waiting, answers, cut_short = random.Random(1), list(lines(with_ids)), [], 0
    lifetime = None
    while waiting:
        sent, start = waiting[:N_SENT], time.monotonic()
        # The first stream is not killed; it shows how long one lasts.
        patience = 600.0 if lifetime is None else rng.uniform(0, lifetime)
        content = b"".join(line for _, line in sent)
        told, killed = one_life(state, content, patience)
        lifetime = lifetime or time.monotonic() - start
        cut_short += killed
        answers += [answer | {"item": sent[answer["line"] - 1][0]} for answer in told]
        waiting = waiting[len(told) :]
    return {"cut_short": cut_short, "answers": answers}


if __name__ == "__main__":
    budget().decide(0.5, at=0.0)  # compile before the first stream
    folder = Path(sys.argv[1])
    said = {ids: many_lives(folder / ids, ids == "ids") for ids in ("ids", "none")}
    sys.stdout.write(json.dumps(said))
