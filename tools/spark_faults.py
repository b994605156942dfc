"""Kill an executor of a Spark cluster in the middle of a list, and compare the list.

    python tools/spark_faults.py   # needs the extra spark, and Java

A standalone master and two workers run on the loopback address, with speculation on. While a list
is made, the process of an executor is killed. The list must be that of `shortlist.select` on one
machine: with a sort and a limit, with segments (counted in Python), and with scores by a model.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyspark
from pyspark.sql import SparkSession
from sklearn.linear_model import LogisticRegression

import shortlist.spark
from shortlist import Capacity, CapacityClassifier, select

N, K, PARTS = 400_000, 5_000, 8
_BACKEND = "CoarseGrainedExecutorBackend"


def free_port() -> int:
    """Return a port that nobody uses."""
    import socket

    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return int(each.getsockname()[1])


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a master and two workers, and stop them at the end."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"

    def start(name: str, *options: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{name}.log").open("wb")
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{options[0]}"]
        return subprocess.Popen(
            [*command, *options[1:]], stdout=log, stderr=log, env=environment, cwd=folder
        )

    place = ("--host", "127.0.0.1", "--webui-port", "0")
    running = [start("master", "master.Master", *place, "--port", str(port))]
    time.sleep(5)
    for number in range(2):
        options = (*place, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        running.append(start(f"worker-{number}", "worker.Worker", *options, url))
    try:
        yield url, running
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def executors_of(workers: list[subprocess.Popen[bytes]]) -> list[int]:
    """Return the executors that our workers started, and nobody else's."""
    parents = {process.pid for process in workers}
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            if parent in parents and _BACKEND in (status.parent / "cmdline").read_text():
                found.append(int(status.parent.name))
    return found


def while_killing(
    session: SparkSession, workers: list[subprocess.Popen[bytes]], work: Callable[[], Any]
) -> tuple[Any, int]:
    """Do some work, and kill one executor as soon as tasks of it run; return answer and kills."""
    killed: list[int] = []

    def kill() -> None:
        tracker = session.sparkContext.statusTracker()
        for _ in range(600):
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            if any(stage is not None and stage.numActiveTasks > 0 for stage in stages):
                time.sleep(0.3)
                victim = executors_of(workers)[0]
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    answer = work()
    thread.join()
    return answer, len(killed)


def make_files(folder: Path) -> pd.DataFrame:
    """Write tied scores with teams and two features, and return them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["id"], frame["score"] = np.arange(N), np.round(rng.random(N), 3)
    frame["team"] = rng.choice(["north", "south"], N)
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(N), PARTS)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", index=False)
    return frame


def expected_of(frame: pd.DataFrame, score: str = "score") -> set[int]:
    """Return the list of one machine."""
    chosen = select(frame[score].to_numpy(), Capacity.count(K), ids=frame["id"].to_numpy())
    return set(frame["id"][chosen])


def open_session(url: str) -> SparkSession:
    """Start an application on the cluster, with speculation on."""
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    session = SparkSession.builder.master(url).config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def main() -> int:
    """Run all lists, print what came out, and return 1 if one was wrong."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as (url, (_, *workers)):
        return int(check_lists(url, Path(name), workers) > 0)


def check_lists(url: str, folder: Path, workers: list[subprocess.Popen[bytes]]) -> int:
    """Kill an executor in each list, print what came out, and return how many were wrong."""
    frame = make_files(folder / "rows")
    session = open_session(url)
    df = session.read.parquet(str(folder / "rows"))
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.01))
    y = np.random.default_rng(1).random(20_000) < 0.01 + 0.1 * (frame["a"][:20_000] > 2)
    model.fit(frame[["a", "b"]][:20_000], y, ids=frame["id"][:20_000].to_numpy())
    own = {"score": "score", "id": "id"}

    def ids(listed: Any) -> set[int]:
        return set(listed.select("id").toPandas()["id"])

    def by_team() -> set[int]:
        limits = dict.fromkeys(("north", "south"), Capacity.count(K))
        return ids(shortlist.spark.select(df, limits, **own, segment="team"))

    def flagged() -> set[int]:
        rows = shortlist.spark.flag(model, df, id="id")
        return ids(rows.where("flagged"))

    by_name = [expected_of(rows) for _, rows in frame.groupby("team")]
    teams = set().union(*by_name)
    mask = model.flag(frame[["a", "b"]], ids=frame["id"].to_numpy())
    tasks: dict[str, tuple[Callable[[], set[int]], set[int]]] = {
        "a list": (
            lambda: ids(shortlist.spark.select(df, Capacity.count(K), **own)),
            expected_of(frame),
        ),
        "lists of teams": (by_team, teams),
        "flags of a model": (flagged, set(frame["id"][mask])),
    }
    wrong = 0
    for task, (work, want) in tasks.items():
        start = time.perf_counter()
        got, n_killed = while_killing(session, workers, work)
        wrong += got != want or not n_killed
        print(
            f"{task}: {n_killed} executor killed, {len(got):,} rows, "
            f"{'equal' if got == want else 'NOT EQUAL'}, {time.perf_counter() - start:.1f} s",
            flush=True,
        )
    session.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
