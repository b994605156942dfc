"""Repetitions are stored once, resumed, and the same for any number of jobs."""

import json
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass

import joblib
import pytest

from studies.runner import run_all
from studies.tables import write_table


@dataclass(frozen=True)
class Repetition:
    """A seed, and a folder in which each run leaves a mark."""

    seed: int
    marks: str = ""
    pause: float = 0.0


def work(config):
    """Return two rows, and leave a mark that they were computed."""
    if config.marks:
        with open(os.path.join(config.marks, f"{config.seed}"), "a") as file:
            file.write("x")
    time.sleep(config.pause)
    return [{"seed": config.seed, "value": config.seed / 3}, {"seed": config.seed, "value": None}]


def test_the_table_does_not_depend_on_the_number_of_jobs():
    """Rows come in the order of the configs."""
    configs = [Repetition(seed) for seed in range(7)]
    alone = run_all(work, configs)
    assert alone == run_all(work, configs, n_jobs=2)
    assert [row["seed"] for row in alone] == [seed for seed in range(7) for _ in range(2)]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_says_where_runs_take_place(backend):
    """Inside `parallel_config`, as for a cluster; the table is the same."""
    configs = [Repetition(seed) for seed in range(5)]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        elsewhere = run_all(work, configs)
    assert elsewhere == run_all(work, configs)


def is_deaf(config):
    """Return whether this process ignores Ctrl-C."""
    return [{"deaf": signal.getsignal(signal.SIGINT) is signal.SIG_IGN}]


def test_processes_leave_ctrl_c_to_their_caller():
    """Where they ended by it, they would show a traceback each; the caller still hears it."""
    configs = [Repetition(seed) for seed in range(4)]
    assert run_all(is_deaf, configs, n_jobs=2) == [{"deaf": True}] * 4
    assert run_all(is_deaf, configs, n_jobs=1) == [{"deaf": False}] * 4
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run_all(is_deaf, configs) == [{"deaf": False}] * 4


def test_what_is_stored_is_not_run_again(tmp_path):
    """A second call reads; a new config is run; another setting is another result."""
    marks = tmp_path / "marks"
    marks.mkdir()
    configs = [Repetition(seed, str(marks)) for seed in range(3)]
    first = run_all(work, configs, store=tmp_path / "store")
    progress = []
    again = run_all(
        work,
        [*configs, Repetition(3, str(marks))],
        store=tmp_path / "store",
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert again[:6] == first
    assert progress == [(3, 4), (4, 4)]
    assert all((marks / str(seed)).read_text() == "x" for seed in range(4))


def run_slowly(store):
    """Run twenty short repetitions one after another."""
    run_all(work, [Repetition(seed, pause=0.05) for seed in range(20)], store=store)


def test_a_killed_run_is_resumed_to_the_same_table(tmp_path):
    """Killed without warning in the middle, run again: the table of an uninterrupted run."""
    store = tmp_path / "store"
    process = multiprocessing.get_context("spawn").Process(target=run_slowly, args=(store,))
    process.start()
    for _ in range(600):
        if store.exists() and len(list(store.glob("*.json"))) >= 3:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    n_finished = len(list(store.glob("*.json")))
    assert 3 <= n_finished < 20
    assert all(json.loads(path.read_text()) for path in store.glob("*.json"))
    configs = [Repetition(seed, pause=0.05) for seed in range(20)]
    progress = []
    table = run_all(work, configs, store=store, on_progress=lambda *step: progress.append(step))
    assert progress[0] == (n_finished, 20)
    assert table == run_all(work, configs)


def fail_on_two(config):
    """Break at the third config."""
    if config.seed == 2:
        raise KeyboardInterrupt
    return work(config)


def test_an_interruption_keeps_what_is_finished(tmp_path):
    """Ctrl-C reaches the caller, and the finished repetitions stay."""
    with pytest.raises(KeyboardInterrupt):
        run_all(fail_on_two, [Repetition(seed) for seed in range(5)], store=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert not list(tmp_path.glob("*.part"))


def test_tables_are_written_whole(tmp_path):
    """A failure in the middle leaves the old file."""
    path = write_table([{"a": 1, "b": 0.5}, {"a": 2, "b": None}], tmp_path / "table.csv")
    assert path.read_text().splitlines() == ["a,b", "1,0.5", "2,"]
    with pytest.raises(ValueError):
        write_table([{"a": 1}, {"a": 1, "surprise": 2}], path)
    assert path.read_text().splitlines()[0] == "a,b"
