"""Kill an executor of a Spark cluster in the middle of a list, and compare the list.

    python tools/spark_faults.py            # needs the extra spark, and Java
    python tools/spark_faults.py --stream   # the streams alone

A standalone master and two workers run on the loopback address, with speculation on. While a list
is made, the process of an executor is killed. The list must be that of `shortlist.select` on one
machine: with a sort and a limit, with segments (counted in Python), and with scores by a model.

Then a stream is decided with a hard limit for each day and team, one file in each micro-batch. In
the middle of a micro-batch an executor is killed, or the driver, which is started again from its
checkpoint. No day may exceed its limit, no case may be lost, and no case decided in two ways.
"""

from __future__ import annotations

import contextlib
import json
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
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
        ".state.RocksDBStateStoreProvider",
    }
    session = SparkSession.builder.master(url).config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


# --- streams ---

LIMIT, N_FILES, PER_FILE = 5, 5, 240
_STREAM = "team string, case string, risk double, at double"


def make_stream(folder: Path) -> int:
    """Write the files of a stream, and return the number of cases."""
    rng = np.random.default_rng(2)
    n = N_FILES * PER_FILE
    frame = pd.DataFrame({"team": rng.choice(["north", "south"], n), "risk": rng.normal(size=n)})
    frame["case"] = [f"c{i}" for i in range(n)]
    frame["at"] = np.sort(rng.uniform(0, 4 * 86_400, n))
    folder.mkdir(parents=True)
    for number in range(N_FILES):
        path = folder / f"{number}.parquet"
        frame[number * PER_FILE :][:PER_FILE].to_parquet(path, index=False)
        os.utime(path, (number, number))  # files are taken in this order
    return n


def run_stream(url: str, folder: Path) -> None:
    """Decide about all files that are there, one in each micro-batch, from the checkpoint."""
    from shortlist.online import BudgetController

    session = open_session(url)
    reader = session.readStream.schema(_STREAM).option("maxFilesPerTrigger", 1)
    controller = BudgetController(
        Capacity.count(LIMIT),
        period=86_400,
        expected_arrivals=PER_FILE,
        calibration_scores=np.random.default_rng(0).normal(size=500),
    )
    names = {"queue": "team", "score": "risk", "id": "case", "at": "at"}
    rows = reader.parquet(str(folder / "in"))
    decided = shortlist.spark.decide_stream(rows, controller, **names)
    query = decided.writeStream.format("parquet").outputMode("append")
    query = query.option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    session.stop()


def batches(folder: Path) -> tuple[int, int]:
    """Return how many micro-batches were begun, and how many were committed."""
    counts = [
        len(list((folder / "checkpoint" / name).glob("[0-9]*"))) for name in ("offsets", "commits")
    ]
    return counts[0], counts[1]


def written_rows(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the committed decisions, and all that were ever written."""
    log = [each for each in (folder / "out" / "_spark_metadata").iterdir() if each.name[0] != "."]
    lines = [line for each in log for line in each.read_text().splitlines() if line[0] == "{"]
    committed = {Path(json.loads(line)["path"]).name for line in lines}
    every = {each.name: each for each in (folder / "out").glob("*.parquet")}
    parts = {name: pd.read_parquet(path) for name, path in every.items()}
    return pd.concat([parts[name] for name in committed]), pd.concat(parts.values())


def kill_in_batches(url: str, folder: Path, workers: list[subprocess.Popen[bytes]]) -> list[str]:
    """Run the stream to its end, and kill in micro-batches; return what was killed."""
    killed: list[str] = []
    done, command = 0, [sys.executable, __file__, "--child", url, str(folder)]
    while done < N_FILES:
        with (folder / f"driver-{len(killed)}.log").open("wb") as log:
            driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            while driver.poll() is None:
                begun, done = batches(folder)
                if begun > done and done >= len(killed) and len(killed) < 3:
                    time.sleep(0.5)  # in the middle
                    if len(killed) == 1:
                        os.kill(executors_of(workers)[0], signal.SIGKILL)
                        killed.append(f"an executor in batch {done}")
                    else:
                        os.killpg(driver.pid, signal.SIGKILL)
                        killed.append(f"the driver in batch {done}")
                time.sleep(0.05)
            done = batches(folder)[1]
            if driver.returncode > 0:
                raise RuntimeError(f"The stream failed; see {log.name}")
    return killed


def check_stream(url: str, folder: Path, workers: list[subprocess.Popen[bytes]]) -> int:
    """Kill in micro-batches, print what came out, and return 1 if a limit was exceeded."""
    n_cases, start = make_stream(folder / "in"), time.perf_counter()
    killed = kill_in_batches(url, folder, workers)
    committed, every = written_rows(folder)
    flags = committed[committed["flagged"]]
    most = int(flags.groupby(["team", flags["at"] // 86_400]).size().max())
    is_whole = sorted(committed["case"]) == sorted({f"c{i}" for i in range(n_cases)})
    in_two_ways = int((every.groupby("case")["flagged"].nunique() > 1).sum())
    wrong = most > LIMIT or not is_whole or in_two_ways > 0 or len(killed) < 3
    print(
        f"a stream: killed {', '.join(killed)}; {len(committed):,} cases, at most {most} in a "
        f"day of a team (limit {LIMIT}), {len(every) - len(committed)} repeated, {in_two_ways} "
        f"decided in two ways, {'WRONG' if wrong else 'right'}, "
        f"{time.perf_counter() - start:.1f} s",
        flush=True,
    )
    return int(wrong)


def main() -> int:
    """Run all lists and the stream, print what came out, and return 1 if one was wrong."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as (url, (_, *workers)):
        wrong = 0 if "--stream" in sys.argv else check_lists(url, Path(name), workers)
        return int(wrong + check_stream(url, Path(name) / "stream", workers) > 0)


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
    if sys.argv[1:2] == ["--child"]:
        run_stream(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main())
