"""Break a running decision service in every way we know, and check what it answered.

A service with several workers decides about cases with periods of two seconds, while clients ask,
retry, send twice and change what they send. In a second queue, cases wait until reviewers ask for
the next one. Meanwhile workers, database sessions, the database and
the whole service are killed or paused, disks fill up, and clocks jump. At the end a checker that
shares no code with the service compares every answer with the database.

    python tools/service_faults.py --faults 500                  # SQLite and PostgreSQL
    python tools/service_faults.py --mutants                     # must all be caught

Everything runs on the loopback address, in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import http.client
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PERIOD, CAPACITY, WORKERS, CLIENTS, REVIEWERS = 2.0, 10, 3, 6, 2
MUTANTS = (
    "read-then-write", "lost-isolation", "answer-before-commit", "answer-before-disk", "no-rewind",
    "no-flock",
)  # fmt: skip


# --- the service under test -----------------------------------------------------------------------


def waits():
    """Return the settings of the second queue, whose cases wait."""
    from shortlist.service.settings import QueueSettings

    return QueueSettings(PERIOD, 200.0, within=PERIOD / 4)


def serve(folder, database, port, build, mutant):
    """Run a service whose model is a field of the case, and whose clock is a file."""
    from shortlist.service import supervisor
    from shortlist.service.databases import open_store
    from shortlist.service.settings import QueueSettings, ServiceConfig, SteadyClock, build_name
    from shortlist.service.setup import warm_up_controller
    from tests.service.helpers import PlainModels

    if mutant:
        mutate(mutant)
    rng = random.Random(os.getpid())

    def wall():
        with contextlib.suppress(OSError, ValueError):
            offset = float((folder / "clock").read_text())
            return time.time() + offset + rng.uniform(-0.3, 0.3)
        return time.time()

    store = open_store(database)
    store.connect()
    for settings in (QueueSettings(PERIOD, 200.0), waits()):
        warm_up_controller(settings, store, 1)
    store.close()
    config = ServiceConfig(
        database, clock=SteadyClock(60.0, wall=wall), build=build or build_name(), patience=3.0
    )
    return supervisor.run_service(
        config, host="127.0.0.1", port=port, workers=WORKERS, models=PlainModels()
    )


def mutate(name):
    """Break the service on purpose; the database's own constraints are dropped as well."""
    from shortlist.service import _decider, _postgres, _sqlite

    if name == "read-then-write":
        _postgres._LOCK = _postgres._LOCK.replace("FOR UPDATE", "")
    elif name == "lost-isolation":
        _postgres._BEGIN = "SELECT 1"
        _postgres._INSERT += " -- outside of a transaction"
    elif name == "answer-before-disk":
        _postgres._MARK = "SELECT 1"
    elif name == "no-flock":
        _sqlite.SQLiteStore._take = lambda self: None
        _sqlite.SQLiteStore._give_back = lambda self: None
        _sqlite.SQLiteStore._start = lambda self: None
        _sqlite.SQLiteStore.finish = lambda self: None
    elif name == "answer-before-commit":
        decide = _decider.Decider._decide

        def early(self, replica, row, total, batch):
            commit = self._store.commit

            def late(group):
                made = {entry.case_id: entry for entry in group.entries}
                for request in batch:
                    if all(case.id in made for case in request.cases):
                        entries = [made[case.id] for case in request.cases]
                        request.answers = [
                            _decider.answer_of(entry, repeated=False) for entry in entries
                        ]
                self._deliver([request for request in batch if request.answers])
                time.sleep(0.01)
                commit(group)

            self._store.commit = late
            try:
                return decide(self, replica, row, total, batch)
            finally:
                del self._store.commit

        _decider.Decider._decide = early
    elif name == "no-rewind":
        _decider.Replica.fork = lambda self: self
        recover = _decider.Decider._recover

        def go_on(self, *args):
            replica = self.replica
            recover(self, *args)
            self.replica = replica

        _decider.Decider._recover = go_on


# --- clients, which write down what they were told ------------------------------------------------


def client(number, ports, seed, ready, until, path):
    """Send cases, and append each answer to a file: what was sent, when, and what came back."""
    rng, links = random.Random(seed), {}
    mine = []
    ready.wait(120)
    with open(path, "a", buffering=1) as file:
        count = 0
        while time.time() < until.value:
            draw = rng.random()
            if mine and draw < 0.10:
                case = rng.choice(mine[-200:])
            elif mine and draw < 0.13:
                case = {**rng.choice(mine[-200:]), "score": 99.0}
            else:
                count += 1
                case = {"id": f"{seed}-{number}-{count}", "score": rng.gauss(0, 1)}
                mine.append(case)
            for _ in range(2 if rng.random() < 0.05 else 1):
                port = rng.choice(ports)
                sent = time.monotonic()
                status, answer = send(links, port, case)
                record = [sent, time.monotonic(), case["id"], case["score"], status, answer]
                file.write(json.dumps(record) + "\n")
            time.sleep(rng.random() * 0.01)


def reviewer(number, ports, seed, ready, until, path):
    """Let cases wait, ask for the next one, close it, and append each one to a file."""
    rng, links, count = random.Random(seed), {}, 0
    me = {"reviewer": f"reviewer {number}"}
    ready.wait(120)
    with open(path, "a", buffering=1) as file:
        while time.time() < until.value:
            for _ in range(3):
                count += 1
                case = {"id": f"{seed}-{number}-{count}", "score": rng.gauss(0, 1)}
                send(links, rng.choice(ports), case, "pull/decisions")
            status, answer = send(links, rng.choice(ports), me, "pull/next")
            if status == 200 and answer["case"] is not None:
                file.write(json.dumps([answer["case"]["id"], number]) + "\n")
                closed = {"id": answer["case"]["id"], "rare": rng.random() < 0.5, **me}
                send(links, rng.choice(ports), closed, "pull/outcomes")
            time.sleep(rng.random() * 0.05)


def send(links, port, case, path="default/decisions"):
    """Ask once; status 0 means that there was no answer."""
    try:
        link = links.get(port) or http.client.HTTPConnection("127.0.0.1", port, timeout=6)
        links[port] = link
        link.request(
            "POST", f"/v1/queues/{path}", json.dumps(case),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        response = link.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        links.pop(port, None)
        time.sleep(0.05)
        return 0, None


# --- faults ---------------------------------------------------------------------------------------


class Bench:
    """One service (or two of different versions) on one database, and its tormentor."""

    def __init__(self, folder, kind, *, mutant=None, two_versions=True, seed=0):
        from tests.service.helpers import PostgresServer, free_port, new_queue

        self.folder, self.kind, self.mutant = folder, kind, mutant
        self.rng, self.faults = random.Random(seed), Counter()
        (folder / "clock").write_text("0")
        self.server = None
        if kind == "postgresql":
            place = Path(tempfile.mkdtemp(prefix="shortlist-faults-"))
            self.server = PostgresServer(place)
            self.server.start()
            self.database = self.server.new_database("faults")
        else:
            self.database = str(folder / "shortlist.db")
        new_queue(self.database, capacity=CAPACITY, period=PERIOD, arrivals=200)
        new_queue(self.database, capacity=CAPACITY, name="pull", settings=waits())
        if mutant:
            self.drop_constraints()
        builds = [None, "another version"] if two_versions and not mutant else [None]
        self.services = {free_port(): build for build in builds}
        self.parents = {}

    def start_all(self):
        """Start every service."""
        for port in self.services:
            self.start(port)

    def drop_constraints(self):
        """Take away what would save a wrong program."""
        for statement in (
            "DROP INDEX log_case", "DROP INDEX log_slot",
            "DROP TRIGGER log_capacity" + (" ON log" if self.server else ""),
            *(["ALTER TABLE log DROP CONSTRAINT log_pkey"] if self.server else ()),
        ):  # fmt: skip
            self.query(statement)

    def query(self, statement):
        """Ask the database, with no code of the service."""
        if self.server is not None:
            import psycopg

            with psycopg.connect(self.database, autocommit=True) as link:
                cursor = link.execute(statement)
                return cursor.fetchall() if cursor.description else []
        with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as link, link:
            return link.execute(statement).fetchall()

    def start(self, port):
        """Start a service, and wait until it is ready."""
        command = [
            sys.executable, __file__, "--serve", str(self.folder), "--database", self.database,
            "--port", str(port), "--build", self.services[port] or "",
            "--mutant", self.mutant or "",
        ]  # fmt: skip
        with open(self.folder / f"service-{port}.log", "a") as log:
            self.parents[port] = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            )  # fmt: skip
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self.parents[port].poll() is None:
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(link):
                link.request("GET", "/v2/health/ready")
                response = link.getresponse()
                response.read()
                if response.status == 200:
                    return
            time.sleep(0.1)
        self.parents[port].kill()
        self.parents[port].wait()
        log = (self.folder / f"service-{port}.log").read_text()
        raise RuntimeError(f"the service on port {port} does not start: {log[-500:]}")

    def workers(self):
        """Return the process ids of all workers."""
        found = []
        for parent in self.parents.values():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
                found += [int(pid) for pid in text.split()]
        return found

    def hurt(self):
        """Do one of the bad things."""
        things = ["kill", "kill", "kill", "pause", "pause", "clock", "disk"]
        things += ["swap", "shadow", "capacity"]
        things += ["session", "session"] if self.server else ["disk"]
        if self.rng.random() < 0.03:
            things = ["restart", "database"] if self.server else ["restart"]
        if self.mutant == "answer-before-disk":
            things = ["database"]
        thing = self.rng.choice(things)
        getattr(self, f"do_{thing}")()
        self.faults[thing] += 1

    def do_kill(self):
        """Kill a worker."""
        if pids := self.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)

    def do_pause(self):
        """Stop a worker for a while, perhaps with the lock in its hands."""
        if pids := self.workers():
            pid = self.rng.choice(pids)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

            def go_on():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

            threading.Timer(self.rng.choice([0.1, 0.5, 3.0]), go_on).start()

    def do_clock(self):
        """Set the clock for a moment: back, a little ahead, or an hour ahead."""
        step = self.rng.choice([-30.0, -3.0, 1.0, 3_600.0])
        (self.folder / "clock").write_text(str(step))
        time.sleep(self.rng.choice([0.1, 0.4]))
        (self.folder / "clock").write_text("0")

    def do_disk(self):
        """Let a worker write no more bytes to any file, as on a full disk, for a while."""
        if pids := self.workers():
            pid = self.rng.choice(pids)
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
                time.sleep(0.2)
                resource.prlimit(
                    pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                )

    def ask(self, method, path, body=None):
        """Ask some service for a change; whether that works does not matter."""
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        link = http.client.HTTPConnection(
            "127.0.0.1", self.rng.choice(list(self.services)), timeout=6
        )
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(link):
            link.request(method, f"/v1/queues/default/{path}", body, {"Content-Type": kind})
            return link.getresponse().status
        return 0

    def do_shadow(self):
        """Let a model score besides, or no longer."""
        if self.rng.random() < 0.7:
            self.ask("PUT", "shadow", b"model %d" % self.rng.choice((1, 2)))
        else:
            self.ask("DELETE", "shadow")

    def do_swap(self):
        """Let another model decide: that of the shadow, the one before, or a given one."""
        path = self.rng.choice(("promote", "back", "model"))
        self.ask("POST", path, b"model %d" % self.rng.choice((1, 2)) if path == "model" else None)

    def do_capacity(self):
        """Lower the capacity, and raise it again."""
        self.ask("PUT", "capacity", json.dumps({"count": CAPACITY - 3}))
        time.sleep(0.1)
        for _ in range(10):
            if self.ask("PUT", "capacity", json.dumps({"count": CAPACITY})) == 200:
                break
            time.sleep(0.2)

    def do_session(self):
        """End a session of the database."""
        with contextlib.suppress(Exception):
            self.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'faults' "
                "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
            )

    def do_database(self):
        """Crash the database, and start it again."""
        self.server.stop("immediate")
        time.sleep(0.2)
        self.server.start()

    def do_restart(self):
        """Kill a whole service, and start it again."""
        port = self.rng.choice(list(self.parents))
        parent = self.parents[port]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        self.start(port)

    def run(self, n_faults, *, pause, calm):
        """Let clients and reviewers ask while faults happen; return the files of what they got."""
        context = multiprocessing.get_context("spawn")
        roles = [client] * CLIENTS + [reviewer] * REVIEWERS
        paths = [self.folder / f"{number}.jsonl" for number in range(len(roles))]
        ready, until = context.Barrier(len(roles) + 1), context.Value("d", 1e12)
        ports = list(self.services)
        clients = [
            context.Process(
                target=role,
                args=(number, ports, self.rng.randrange(1 << 30), ready, until, path),
            )
            for number, (role, path) in enumerate(zip(roles, paths, strict=True))
        ]
        for each in clients:
            each.start()
        ready.wait(120)
        end = until.value = time.time() + 60 + 5 * n_faults * (pause + 0.2)
        time.sleep(calm)
        while sum(self.faults.values()) < n_faults and time.time() < end - calm:
            self.hurt()
            time.sleep(self.rng.uniform(0.5, 1.5) * pause)
        until.value = time.time() + calm
        for each in clients:
            each.join()
        return paths[:CLIENTS], paths[CLIENTS:]

    def stop(self):
        """End everything that was started."""
        for parent in self.parents.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
            parent.wait()

    def close(self):
        """Remove the database."""
        if self.server is not None:
            self.server.stop("immediate")
            shutil.rmtree(self.server.folder, ignore_errors=True)


# --- the checker, which shares no code with the service -------------------------------------------


def check(bench, paths, reviewed):
    """Compare what clients were told with the database; return numbers and problems."""
    problems, handed_out = check_pulled(bench, reviewed)
    rows = bench.query(
        "SELECT seq, kind, at, period, case_id, score, threshold, slot, model, shadow, body FROM "
        "log WHERE queue = 1 ORDER BY seq"
    )
    problems["gaps"] = sum(row[0] != place for place, row in enumerate(rows, 1))
    problems["time runs back"] = sum(b[2] < a[2] for a, b in pairwise(rows))
    stored, per_period, models, besides = {}, defaultdict(list), 1, 0
    for seq, kind, at, period, case, score, threshold, slot, model, shadow, body in rows:
        if kind in (2, 6):
            event = json.loads(body)
            models, besides = event.get("model", models), event.get("shadow", besides)
        if kind == 0:
            problems["decided twice"] += case in stored
            problems["decided by another model"] += model != models
            by_shadow = score / model * besides if besides else None
            problems["another shadow"] += shadow not in (None, by_shadow)
            stored[case] = (seq, score, threshold, slot is not None, at)
            if slot is not None:
                per_period[period].append(slot)
            problems["wrong period"] += int(at // PERIOD) != period
    problems["over"] = sum(max(len(slots) - CAPACITY, 0) for slots in per_period.values())
    problems["slots"] = sum(
        sorted(slots) != list(range(1, len(slots) + 1)) for slots in per_period.values()
    )
    told, answers, n = {}, [], 0
    statuses = Counter()
    for path in paths:
        for line in path.read_text().splitlines():
            sent, received, case, score, status, answer = json.loads(line)
            statuses[status] += 1
            if status != 200:
                continue
            n += 1
            given = (answer["flag"], answer["score"], answer["threshold"], answer["at"])
            if score * answer["model"] != answer["score"]:
                problems["decided about another body"] += 1
            if case not in stored:
                problems["acknowledged but lost"] += 1
                continue
            seq, kept, threshold, flag, at = stored[case]
            finite = threshold if abs(threshold) != float("inf") else None
            problems["differs from the store"] += given != (flag, kept, finite, at)
            problems["contradictory"] += told.setdefault(case, given) != given
            if not answer["repeated"]:
                answers.append((sent, received, seq))
    problems["order"] = _count_reordered(answers)
    flagged = Counter(int(given[3] // PERIOD) for given in told.values() if given[0])
    problems["over, as told"] = sum(max(count - CAPACITY, 0) for count in flagged.values())
    logs = "".join(path.read_text() for path in bench.folder.glob("service-*.log"))
    problems["alarms"] = logs.count("decided (replay)") + logs.count("decided (promise)")
    full = sum(len(slots) == CAPACITY for slots in per_period.values())
    periods = len({row[3] for row in rows if row[1] == 0})
    numbers = {
        "answers": n, "statuses": dict(statuses), "decisions": len(stored), "periods": periods,
        "full periods": full, "handed out": handed_out, "faults": dict(bench.faults),
    }  # fmt: skip
    return numbers, {name: count for name, count in problems.items() if count}


def check_pulled(bench, paths):
    """Compare which cases reviewers got with the slots in the database."""
    problems = Counter()
    rows = bench.query(
        "SELECT seq, kind, at, period, case_id, slot, joined FROM log WHERE queue = 2 ORDER BY seq"
    )
    problems["gaps in the queue to ask"] = sum(row[0] != place for place, row in enumerate(rows, 1))
    pulled = [row[2:] for row in rows if row[1] == 8 and row[5] is not None]
    per_period = defaultdict(list)
    for at, period, _, slot, _ in pulled:
        per_period[period].append(slot)
        problems["wrong period of a slot"] += int(at // PERIOD) != period
    problems["over, asked"] = sum(max(len(slots) - CAPACITY, 0) for slots in per_period.values())
    problems["slots, asked"] = sum(
        sorted(slots) != list(range(1, len(slots) + 1)) for slots in per_period.values()
    )
    problems["two slots for a case"] = len(pulled) - len({joined for *_, joined in pulled})
    got = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    problems["handed out without a slot"] = len({id for id, _ in got} - {row[2] for row in pulled})
    holders = defaultdict(set)
    for id, number in got:
        holders[id].add(number)
    problems["handed to two"] = sum(len(each) > 1 for each in holders.values())
    return problems, len(holders)


def _count_reordered(answers):
    """Count decisions that came after one that was asked for only after their answer."""
    by_received = sorted((received, seq) for _, received, seq in answers)
    place, highest, wrong = 0, 0, 0
    for sent, _, seq in sorted(answers):
        while place < len(by_received) and by_received[place][0] < sent:
            highest = max(highest, by_received[place][1])
            place += 1
        wrong += seq < highest
    return wrong


def audit(bench):
    """Replay the log with the service's own audit; return its problems."""
    from shortlist.service.audit import audit_store
    from shortlist.service.databases import opened

    with opened(bench.database) as store:
        found = audit_store(store)
    return [text for each in found for text in each.problems], found[0].n_replayed


def torment(kind, n_faults, *, pause, calm=3.0, mutant=None, seed=0, two_versions=True):
    """Run one bench, and return numbers and problems."""
    with tempfile.TemporaryDirectory(prefix="shortlist-faults-") as name:
        bench = Bench(Path(name), kind, mutant=mutant, seed=seed, two_versions=two_versions)
        try:
            bench.start_all()
            paths, reviewed = bench.run(n_faults, pause=pause, calm=calm)
            bench.stop()
            numbers, problems = check(bench, paths, reviewed)
            if not mutant:
                wrong, numbers["replayed"] = audit(bench)
                problems |= {"audit": wrong} if wrong else {}
            return numbers, problems
        finally:
            bench.stop()
            bench.close()


def main():
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between faults")
    parser.add_argument("--csv", type=Path, help="append a line for each run to this file")
    parser.add_argument("--mutants", action="store_true")
    for name in ("--serve", "--database", "--build", "--mutant"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        sys.exit(
            serve(
                Path(options.serve), options.database, options.port, options.build, options.mutant
            )
        )
    failed = run_mutants(options) if options.mutants else run_faults(options)
    sys.exit(1 if failed else 0)


def run_faults(options):
    """Torment both stores."""
    failed = False
    stores = options.stores.split(",")
    for kind in stores:
        numbers, problems = torment(
            kind, options.faults // len(stores), pause=options.pause, seed=options.seed
        )
        if options.csv is not None:
            write_line(options.csv, kind, options.seed, numbers, problems)
        print(f"{kind}: {json.dumps(numbers)}")
        print(f"  problems: {problems or 'none'}")
        failed |= bool(problems) or numbers["full periods"] * 2 < numbers["periods"]
    return failed


def write_line(path, kind, seed, numbers, problems):
    """Append the numbers of a run to a table."""
    names = (
        "kill", "pause", "clock", "disk", "session", "restart", "database", "swap", "shadow",
        "capacity",
    )  # fmt: skip
    line = {
        "store": kind, "seed": seed, "faults": sum(numbers["faults"].values()),
        **{name: numbers["faults"].get(name, 0) for name in names}, "answers": numbers["answers"],
        "decisions": numbers["decisions"], "handed out": numbers["handed out"],
        "made again": numbers["replayed"],
        "periods": numbers["periods"], "full periods": numbers["full periods"],
        "problems": "; ".join(f"{name}: {count}" for name, count in problems.items()) or "none",
    }  # fmt: skip
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, line)
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def run_mutants(options):
    """Check that the checker notices each way to break the service."""
    failed = False
    for mutant in MUTANTS:
        kind = "sqlite" if mutant == "no-flock" else "postgresql"
        _, problems = torment(kind, 24, pause=0.3, mutant=mutant, seed=options.seed)
        print(f"{mutant} on {kind}: {'caught' if problems else 'NOT CAUGHT'} {problems}")
        failed |= not problems
    return failed


if __name__ == "__main__":
    main()
