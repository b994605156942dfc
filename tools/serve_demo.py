"""`make serve`: the decision service on demo data, with cases that arrive while you watch."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

from shortlist import Capacity
from shortlist.client import Client, ServiceError
from shortlist.datasets import make_fraud
from shortlist.service.settings import ServiceConfig
from shortlist.service.setup import prepare
from shortlist.service.supervisor import run_service
from shortlist.tables import fit_table, save_model


def main(port: int = 8_000) -> int:
    """Fit a model, serve it, and send it a few cases per second."""
    with tempfile.TemporaryDirectory(prefix="shortlist-demo-") as name:
        folder = Path(name)
        X, y = make_fraud(n_samples=4_000, random_state=0)
        table = pd.DataFrame(np.asarray(X)).add_prefix("x")
        table.assign(fraud=np.where(y, "yes", "no")).to_csv(folder / "cases.csv", index=False)
        print("Fitting a model to 4,000 simulated cases ...", flush=True)
        fitted = fit_table(
            folder / "cases.csv", target="fraud", capacity=Capacity.fraction(0.05),
            learner="logistic",
        )  # fmt: skip
        save_model(fitted.model, folder / "model")
        database = str(folder / "shortlist.db")
        models = prepare(database, folder / "model", {"default": 20}, period=600.0, expect=1_200)
        arriving = table.sample(frac=1, random_state=1).to_dict("records")
        threading.Thread(target=_send, args=(port, arriving), daemon=True).start()
        return run_service(
            ServiceConfig(database), host="127.0.0.1", port=port, workers=2, models=models,
            on_ready=lambda host, port: print(f"Open http://{host}:{port} - Ctrl-C stops."),
        )  # fmt: skip


def _send(port: int, cases: list[dict[str, float]]) -> None:
    client = Client(f"http://127.0.0.1:{port}")
    for number, case in enumerate(cases):
        time.sleep(random.expovariate(2.0))
        try:
            client.decide({"id": f"case {number}", **case})
        except ServiceError:
            return


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:])))
