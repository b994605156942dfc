"""Run many repetitions of a study in parallel, with progress, and resume after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from shortlist._core.files import write_whole

from .tables import Table

__all__ = ["OnProgress", "finished", "run_all", "with_settings"]

#: Called with the number of finished runs and the number of all runs.
OnProgress = Callable[[int, int], None]


def run_all(
    work: Callable[[Any], Table],
    configs: Sequence[Any],
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Run `work` on every config and return all rows in the order of the configs.

    Parameters
    ----------
    work : callable
        Takes a config, returns rows of plain numbers and strings. The result must depend on the
        config alone (seeds included), because it is stored under the config.
    configs : sequence of frozen dataclasses
        One for each repetition.
    store : Path, default=None
        Folder in which the result of each config is kept, written whole or not at all. A later call
        reads these results and runs only the rest, however this call ended.
    n_jobs : int, default=None
        Number of processes, as in joblib, whose `parallel_config` also sets the backend. The table
        does not depend on either: each run has one thread.
    on_progress : callable, default=None
        Called with the number of finished configs and of all configs.

    Returns
    -------
    list of dict
    """
    results = {index: finished(store, work, config) for index, config in enumerate(configs)}
    missing = [index for index, rows in results.items() if rows is None]
    done = len(configs) - len(missing)
    report = on_progress or (lambda done, total: None)
    report(done, len(configs))
    for index, rows in _run(work, configs, missing, store, n_jobs):
        results[index] = rows
        done += 1
        report(done, len(configs))
    return [row for index in range(len(configs)) for row in results[index] or []]


def with_settings(config: Any, **settings: Any) -> Any:
    """Return a copy of a config with other values for the fields that it, or a part of it, has.

    >>> from studies.paper.credit_figures import credit, normal_cauchy
    >>> with_settings(credit_figures.credit.Config(), repetitions=2, rows=30_000).rows
    30000
    >>> with_settings(normal_cauchy.Config(), rows=30_000) == normal_cauchy.Config()
    True
    """
    changes = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            changes[field.name] = with_settings(value, **settings)
        elif field.name in settings:
            changes[field.name] = settings[field.name]
    return replace(config, **changes)


def _run(
    work: Callable[[Any], Table],
    configs: Sequence[Any],
    indices: list[int],
    store: Path | None,
    n_jobs: int | None,
) -> Iterable[tuple[int, Table]]:
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    caller = os.getpid()
    return parallel(
        delayed(_run_one)(work, index, configs[index], store, caller) for index in indices
    )


def _run_one(
    work: Callable[[Any], Table], index: int, config: Any, store: Path | None, caller: int
) -> tuple[int, Table]:
    _leave_interrupts_to(caller)
    # More threads would add numbers in another order and change their last digits.
    with threadpool_limits(1):
        rows = work(config)
    # Through JSON even without a store: a resumed table is then the same to the last digit.
    text = json.dumps(rows)
    if store is not None:
        store.mkdir(parents=True, exist_ok=True)
        with write_whole(_path(store, work, config)) as file:
            file.write(text.encode())
    return index, json.loads(text)


def _leave_interrupts_to(caller: int) -> None:
    """Ignore Ctrl-C in a worker process, which would only print a traceback.

    A terminal interrupts all processes; the caller stops the others.
    """
    if os.getpid() != caller and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def finished(store: Path | None, work: Callable[..., Any], config: Any) -> Table | None:
    """Return the stored rows of a config, or None."""
    if store is None:
        return None
    try:
        return json.loads(_path(store, work, config).read_text())
    except FileNotFoundError:
        return None


def _path(store: Path, work: Callable[..., Any], config: Any) -> Path:
    """Name the file after everything that the result depends on."""
    name = f"{work.__module__}.{work.__qualname__}"
    text = json.dumps([name, type(config).__qualname__, asdict(config)], sort_keys=True)
    return store / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
