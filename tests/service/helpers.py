"""What tests of the service share: a PostgreSQL server, and a model that needs no fit."""

import asyncio
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
import uvicorn

from shortlist.client import Client, ServiceError
from shortlist.service._decider import Decider, Request
from shortlist.service._group import make_queue
from shortlist.service._models import Arrival
from shortlist.service._service import Service
from shortlist.service.app import HttpProtocol, make_app
from shortlist.service.databases import open_store
from shortlist.service.settings import (
    QueueSettings,
    ServiceConfig,
    SteadyClock,
    build_name,
    digest_of,
    first_controller,
)
from shortlist.service.setup import prepare
from shortlist.service.store import OBSERVATION, StoreError


def find_postgres():
    """Return the folder with PostgreSQL's programs, or None."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return folders[0] if folders else Path(found).resolve().parent if found else None


def free_port():
    """Return a port of the loopback address that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PostgresServer:
    """A server in a folder of its own, run by a user who is not root."""

    def __init__(self, folder):
        self.folder, self.port, self.bin = Path(folder), free_port(), find_postgres()
        self.data = self.folder / "data"
        self._user = {}
        if os.getuid() == 0:
            self._user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "test", "-A", "trust", "-N", "-E", "UTF8")

    def _run(self, program, *args, check=True):
        return subprocess.run(
            [self.bin / program, *map(str, args)], check=check, cwd=self.folder, timeout=180,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._user,
        )  # fmt: skip

    def start(self):
        """Start the server, and wait until it answers."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
            "-c max_connections=100 -c shared_buffers=32MB -c max_wal_size=128MB "
            "-c dynamic_shared_memory_type=mmap"
        )
        self._run(
            "pg_ctl", "-D", self.data, "-w", "-o", options, "-l", self.folder / "log", "start"
        )

    def stop(self, how="fast"):
        """Stop the server; "immediate" is a crash."""
        self._run("pg_ctl", "-D", self.data, "-m", how, "-w", "stop", check=False)

    def address(self, name):
        """Return the address of a database."""
        return f"postgresql://test@127.0.0.1:{self.port}/{name}"

    def new_database(self, name):
        """Make an empty database and return its address."""
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as link:
            link.execute(f"CREATE DATABASE {name}")
        return self.address(name)


@contextlib.contextmanager
def running_postgres():
    """Yield a server for tests, or skip them; at the end nobody reads its databases again."""
    import pytest

    pytest.importorskip("psycopg")
    if find_postgres() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # Not in a folder of pytest's, which only its own user may enter.
    with tempfile.TemporaryDirectory(
        prefix="shortlist-postgres-", ignore_cleanup_errors=True
    ) as folder:
        try:
            server = PostgresServer(folder)
            server.start()
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL cannot be started here: {error}")
        try:
            yield server
        finally:
            server.stop("immediate")


class PlainModel:
    """Scores a case by its own field `score`."""

    scorer = "plain"

    def __init__(self, id):
        self.id = id

    def read(self, fields):
        """Return the columns of a case, or what is wrong with it."""
        if not isinstance(fields.get("score"), (int, float)):
            return Arrival(error="The column 'score' is missing.")
        return Arrival(values=(fields["score"],), effort=fields.get("effort"))

    def scored(self, items):
        """Return items with scores; another version of the model doubles them."""
        for item in items:
            item.score = 0.0 if item.error else float(item.values[0]) * self.id
        return items

    def explain(self, entries):
        """Return no reasons."""
        return {}


class PlainModels:
    """Gives out plain models."""

    loaded = (1, 2)

    def get(self, id, store):
        """Return a model."""
        return PlainModel(id)

    def read(self, content):
        """Return the model that a file names."""
        return PlainModel(int(content.split()[-1]))

    receive = read

    def add(self, content, store, model):
        """Return a model, which the database has."""
        return model

    def check_fit(self, model, row, store):
        """Let every model fit."""


def calibration(n=2_000, seed=0):
    """Return scores of the plain model."""
    return np.random.default_rng(seed).normal(size=n)


def new_queue(
    address,
    *,
    capacity=20,
    period=2.0,
    name="default",
    at=None,
    total=None,
    arrivals=200,
    settings=None,
):
    """Make a database with one queue, and return the queue's number."""
    store = open_store(address)
    store.connect(create=True)
    store.make_tables()
    for id in (1, 2):
        file = f"model {id}".encode()
        row = {"sha256": sha256(file).hexdigest(), "scorer": "plain", "added": 0.0, "file": file}
        row["calibration"] = (calibration() * id).astype("<f8").tobytes()
        store.insert_next("model", "id", row, unless=("sha256",))
    settings = settings or QueueSettings(period, arrivals)
    make_queue(
        store, name, settings, first_controller(settings, capacity, calibration()), model=1,
        at=time.time() if at is None else at, total=total,
    )  # fmt: skip
    number = next(row.id for row in store.queues() if row.name == name)
    store.close()
    return number


def made_config(address, *, build=None, clock=None, **options):
    """Return the settings of a service."""
    return ServiceConfig(
        address, build=build or build_name(), clock=clock or SteadyClock(), **options
    )


def make_decider(address, queue, deliver, *, build=None, clock=None, **options):
    """Return a decider with a store of its own."""
    config = made_config(address, build=build, clock=clock, **options)
    return Decider(queue, open_store(address), PlainModels(), config, deliver)


def ask(decider, cases, *, patience=5.0):
    """Submit cases as (id, score) or (id, fields), and return the request."""
    waiting = [
        Arrival(case_id=str(id), digest=digest_of(fields), fields=fields)
        for id, case in cases
        for fields in [{"id": id, **(case if isinstance(case, dict) else {"score": case})}]
    ]
    request = Request(waiting, deadline=time.monotonic() + patience)
    decider.submit(request)
    return request


class Crash(BaseException):
    """The process is gone."""


class FaultyStore:
    """A store that fails at one step: the connection is lost, or the process is gone."""

    STEPS = ("connect", "begin", "find_cases", "commit before", "commit after", "rollback")

    def __init__(self, store, error=StoreError):
        self._store, self._error, self.step = store, error, None

    def __getattr__(self, name):
        return getattr(self._store, name)

    def _fail(self, step):
        if self.step == step:
            self.step = None
            self._store.close()
            raise self._error(f"failed at {step}")

    def connect(self, **options):
        """Connect, or fail."""
        self._fail("connect")
        self._store.connect(**options)

    def begin(self, *args):
        """Lock, then perhaps fail."""
        found = self._store.begin(*args)
        self._fail("begin")
        return found

    def find_cases(self, *args):
        """Look cases up, or fail."""
        self._fail("find_cases")
        return self._store.find_cases(*args)

    def commit(self, group):
        """Fail before the commit, or after it."""
        self._fail("commit before")
        self._store.commit(group)
        self._fail("commit after")

    def rollback(self):
        """Undo, or fail."""
        self._fail("rollback")
        self._store.rollback()


class Hand:
    """A decider whose threads are replaced by calls, step by step."""

    def __init__(self, address, queue, *, clock=None, build=None, error=StoreError, **options):
        self.store = FaultyStore(open_store(address), error)
        config = made_config(address, build=build, clock=clock, **options)
        self.decider = Decider(queue, self.store, PlainModels(), config, lambda tickets: None)

    def decide(self, cases, *, patience=60.0):
        """Decide about cases, given as (id, score), and return the answers."""
        return self._answers(ask(self.decider, cases, patience=patience))

    def change(self, kind, **change):
        """Change the capacity or the model, and return where it stands in the log."""
        request = Request(kind=kind, change=change, deadline=time.monotonic() + 60)
        self.decider.submit(request)
        return self._answers(request)[0]

    def observe(self, scores):
        """Let cases be observed only, and return where that stands in the log."""
        cases = [Arrival(fields={"score": score}) for score in scores]
        request = Request(cases, OBSERVATION, deadline=time.monotonic() + 60)
        self.decider.submit(request)
        return self._answers(request)[0]

    def _answers(self, request):
        while not request.answers:
            self.decider._round()
        return request.answers

    def close(self):
        """Close the connection."""
        self.store.step = None
        self.store.close()


class FakeClock:
    """A wall clock that can be set, beside one that cannot."""

    def __init__(self, start=1_000_000.0):
        self.wall = self.steady = start

    def advance(self, seconds):
        """Let time pass."""
        self.wall += seconds
        self.steady += seconds

    def make(self, limit=60.0):
        """Return a clock that reads this one."""
        return SteadyClock(limit, wall=lambda: self.wall, steady=lambda: self.steady)


def fit_small_model(folder, *, renamed=None, **options):
    """Fit a model to 600 cases with an amount and a country, and return its file."""
    import pandas as pd

    from shortlist import Capacity
    from shortlist.tables import fit_table, save_model

    rng = np.random.default_rng(0)
    amount, country = rng.lognormal(3, 1, 600).round(2), rng.choice(["DE", "FR", "US"], 600)
    rare = rng.random(600) < 1 / (1 + np.exp(4 - 0.03 * amount - (country == "US")))
    frame = pd.DataFrame({"amount": amount, "country": country, "fraud": np.where(rare, "y", "n")})
    if "id" in options:
        frame[options["id"]] = [f"case {n}" for n in range(600)]
    if "work" in options:
        frame[options["work"].effort] = rng.uniform(1, 5, 600).round(1)
    frame.rename(columns=renamed or {}).to_csv(folder / "cases.csv", index=False)
    fitted = fit_table(
        folder / "cases.csv", target="fraud", learner="logistic",
        **{"capacity": Capacity.fraction(0.1), **options},
    )  # fmt: skip
    save_model(fitted.model, folder / "model")
    return folder / "model"


def until(found, wanted):
    """Ask until an answer is the wanted one; fail if that takes very long."""
    deadline = time.monotonic() + 60
    while (last := found()) != wanted:
        assert time.monotonic() < deadline, last
        time.sleep(0.01)


_STARTS = {}


class _QuickServer(uvicorn.Server):
    """A server that looks every few milliseconds, not ten times a second, if it should stop."""

    async def main_loop(self):
        """Wait until the server should stop."""
        while not await self.on_tick(0):
            await asyncio.sleep(0.005)

    async def shutdown(self, sockets=None):
        """Stop listening, let what is under way end, and stop the service."""
        for each in [*self.servers, *(sockets or [])]:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.005)
        await self.lifespan.shutdown()


def made_queues(database, model_file, *, count=5, queues=None, made=None):
    """Make a database and its queues where they are missing, and return their models."""
    # A period begins with the test, whatever the hour; a second start finds it as it was.
    start = _STARTS.setdefault(str(database), time.time())
    wanted = {"default": count, **(queues or {})}
    return prepare(
        str(database), model_file, wanted, period=86_400.0, starts_at=start, expect=100,
        **(made or {}),
    )  # fmt: skip


@contextlib.contextmanager
def serving(database, model_file, *, count=5, queues=None, made=None, **options):
    """Yield a client of a service that runs in a thread of this process."""
    models = made_queues(database, model_file, count=count, queues=queues, made=made)
    service = Service(ServiceConfig(str(database), **options), models=models)
    settings = uvicorn.Config(
        make_app(service), http=HttpProtocol, log_level="warning", lifespan="on", ws="none"
    )
    server, port = _QuickServer(settings), free_port()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()  # a service can be ready before the server listens
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=180) as client:
                client.service = service
                deadline = time.monotonic() + 60
                while not service.ready and time.monotonic() < deadline:
                    for decider in list(service.deciders.values()):
                        decider._wake.set()
                    time.sleep(0.005)
                assert service.ready, "The service does not start."
                yield client
        finally:
            server.should_exit = True
            thread.join(180)


def serve(folder, model_file, *options):
    """Start the command on a free port, and wait until it is ready."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "shortlist", "serve", *([model_file] if model_file else []),
         "--database", f"{folder}/shortlist.db", "--port", str(port), *options],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if client.status()["ready"]:
                    break
            except ServiceError:
                time.sleep(0.1)
    return process, port


def case(id, amount=20.0, country="DE"):
    """Return a case for the small model."""
    return {"id": id, "amount": amount, "country": country}
