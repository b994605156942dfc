"""Kill `shortlist stream` at random moments, and count broken promises.

    python tools/faults.py --kills 1000

Every life is a process of its own that runs the command with its own arguments, forked from one
that has already imported everything. It reads lines from a pipe, prints answers into another one,
and dies by SIGKILL at a random moment or at a random system call. Lines without an answer are sent
again, and so are some that had one. Three kinds of faults, each for lines with and without ids, and
the last one also with probes among the flags:

kill
    The process dies; what it has written is there.
torn
    Writes come in pieces, and the process may die between two of them.
power
    In addition, the disk forgets. Of every file it keeps what was synced and random sectors of
    what was written since, and a new name only if its folder was synced, or by luck.

A promise is broken if a period has more flags than its number, if an id gets two different answers,
or if a stream refuses its file. The last row is a control: the same power cuts with `--no-sync`,
which promises nothing after a power cut. Where its file is refused, the loss was noticed, and the
next period begins with a new file. If the control loses nothing, the test is too weak.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

PERIOD, COUNT, N_SENT, N_AGAIN = 25, 3, 15, 4
FIRST_PATIENCE, SECTOR = 600.0, 512
PROBES = ("--probe", "0.4")
FILES = {"state", "state-wal", "state.lock", ".state.part", ".state.part-wal", "platter", "stderr"}
ARGUMENTS = ["--count", str(COUNT), "--period", f"{PERIOD}s"]


class _Methods(ctypes.Structure):
    """SQLite's `sqlite3_io_methods`: what can be done with an open file."""

    _fields_ = [
        ("version", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("close", "read", "write", "truncate", "sync")),
        *((f"other{number}", ctypes.c_void_p) for number in range(14)),
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_Methods))]


class _System(ctypes.Structure):
    """SQLite's `sqlite3_vfs`: how it reaches the operating system."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("version", "size", "longest")),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data", "open")),
    ]


# A name is passed on as a pointer: SQLite keeps it, and would find other bytes where a text of
# Python's had been (and write a file called `<garbage>-shm` into the current folder).
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_FILE = ctypes.POINTER(_File)
_OPEN = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _FILE, _INT, _POINTER)
_WRITE = ctypes.CFUNCTYPE(_INT, _FILE, _POINTER, _INT, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(_INT, _FILE, _INT)


class Disk:
    """Stands between SQLite and the system: it tears writes, forgets, and ends the process."""

    def __init__(self, platter: Path | None, *, torn: bool, die_at: int, seed: int) -> None:
        self._platter, self._torn, self._die_at = platter, torn, die_at
        self._rng = random.Random(seed)
        self._n_calls = 0
        self._renamed: dict[str, str] = {}  # names that the folder on the platter does not know yet
        self._kept: list[object] = []  # what SQLite points to
        self._fsync, self._rename = os.fsync, os.rename

    def install(self) -> None:
        """Take the place of the system calls of this process."""
        find = ctypes.CDLL("libsqlite3.so.0").sqlite3_vfs_find
        find.restype, find.argtypes = ctypes.POINTER(_System), [ctypes.c_char_p]
        system = find(None).contents
        opened = _OPEN(system.open)

        def open_file(vfs, name, file, flags, out):
            code = opened(vfs, name, file, flags, out)
            if code == 0 and name:
                self._stand_before(file, Path(ctypes.string_at(name).decode()))
            return code

        self._kept.append(_OPEN(open_file))
        system.open = ctypes.cast(self._kept[-1], _POINTER)
        os.fsync = self.sync_folder
        disk = self
        Path.rename = lambda source, target: disk.rename(source, target)

    def _stand_before(self, file: object, path: Path) -> None:
        methods = _Methods()
        ctypes.pointer(methods)[0] = file.contents.methods.contents
        write, sync = _WRITE(methods.write), _SYNC(methods.sync)

        def torn_write(file, data, size, offset):
            self._call()
            part = self._rng.randrange(1, size) if self._torn and size > 1 else size
            code = write(file, data, part, offset)
            if code == 0 and part < size:
                self._call()
                code = write(file, data + part, size - part, offset + part)
            self._call()
            return code

        def kept_sync(file, flags):
            self._call()
            code = sync(file, flags)
            self._keep(path)
            self._call()
            return code

        functions = _WRITE(torn_write), _SYNC(kept_sync)
        methods.write, methods.sync = (ctypes.cast(each, _POINTER) for each in functions)
        self._kept += [methods, functions, write, sync]
        file.contents.methods = ctypes.pointer(methods)

    def _keep(self, path: Path) -> None:
        """Put the content of a file on the platter."""
        if self._platter is not None and path.exists():
            shutil.copyfile(path, self._platter / "copy")
            self._rename(self._platter / "copy", self._platter / path.name)

    def sync_folder(self, descriptor: int) -> None:
        """Put the names of a folder on the platter."""
        self._call()
        self._fsync(descriptor)
        for name, source in self._renamed.items() if self._platter is not None else ():
            if (self._platter / source).exists():
                self._rename(self._platter / source, self._platter / name)
        self._renamed = {}
        self._call()

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file; the platter learns of it when the folder is synced."""
        self._call()
        self._rename(source, target)
        self._renamed[Path(target).name] = Path(source).name
        self._call()

    def _call(self) -> None:
        self._n_calls += 1
        if self._n_calls == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def cut_power(state: Path, platter: Path, rng: random.Random) -> None:
    """Leave what the platter has, and by luck sectors of what it was about to have."""
    part = platter / f".{state.name}.part"
    named = state.exists() and not (platter / state.name).exists()
    if part.exists() and named and rng.random() < 0.5:
        os.replace(part, platter / state.name)  # it arrived, though nobody has waited for it
    for path in (*platter.glob("*.part*"), *state.parent.glob(f".{state.name}.part*")):
        path.unlink()
    for path in (state, Path(f"{state}-wal")):
        kept = platter / path.name
        if not kept.exists():
            path.unlink(missing_ok=True)
            continue
        if path.exists():
            kept.write_bytes(_mixed(kept.read_bytes(), path.read_bytes(), rng))
        elif rng.random() < 0.5:  # it was deleted, and the folder may know or not
            kept.unlink()
            continue
        shutil.copyfile(kept, path)


def _mixed(synced: bytes, written: bytes, rng: random.Random) -> bytes:
    """Return what was synced, with some of the sectors that were written since."""
    size = rng.choice([len(synced), len(written)])
    mixed = bytearray(synced[:size].ljust(size, b"\0"))
    share = rng.random()
    for start in range(0, size, SECTOR):
        if rng.random() < share:
            sector = written[start : start + SECTOR][: size - start]
            mixed[start : start + len(sector)] = sector
    return bytes(mixed)


def line_of(i: int, with_id: bool) -> bytes:
    """Return one line per second, with slowly rising amounts."""
    amount = 50 + 200 * random.Random(i).random() + i / 10
    line = {"amount": amount, "at": float(i)}
    return json.dumps(line | ({"id": f"c{i}"} if with_id else {})).encode() + b"\n"


@dataclass(frozen=True)
class End:
    """When a process is killed: at a system call, after some seconds, or after some answers."""

    at_call: int = 0
    patience: float = FIRST_PATIENCE
    n_answers: int | None = None
    delay: float = 0.0

    @staticmethod
    def at_random(rng: random.Random, lifetime: float, calls: bool) -> End:
        """Draw an end; most of a life is start-up, and therefore few ends are by the clock."""
        kind = rng.choice(["clock", "answers", *(["call"] * 3 if calls else ["answers"] * 2)])
        if kind == "call":
            return End(at_call=rng.randrange(1, 900))
        if kind == "clock":
            return End(patience=rng.uniform(0, 1.1 * lifetime))
        return End(n_answers=rng.randrange(N_SENT + N_AGAIN), delay=rng.uniform(0, 0.03))


@dataclass
class Campaign:
    """One kind of fault: streams are killed until there were enough kills."""

    fault: str
    with_ids: bool
    folder: Path
    model: Path
    options: tuple[str, ...] = ()
    lifetime: float | None = None
    answers: list[tuple[int, dict]] = field(default_factory=list)
    n_kills: int = 0
    n_ended: int = 0
    n_refused: int = 0

    def run(self, n_kills: int, seed: int) -> Campaign:
        """Start stream after stream."""
        rng, done, oldest = random.Random(seed), 0, 0
        self.state, self.platter = self.folder / "state", self.folder / "platter"
        self.platter.mkdir(parents=True)
        while self.n_kills < n_kills:
            recent = range(max(oldest, done - 2 * N_AGAIN), done)
            again = rng.sample(recent, min(N_AGAIN, len(recent))) if self.with_ids else []
            sent = [*again, *range(done, done + N_SENT)]
            # The first stream of all is not killed; it shows how long one lasts.
            end = End()
            if self.lifetime is not None:
                end = End.at_random(rng, self.lifetime, self.fault != "kill")
            start = time.monotonic()
            told, killed = self._live(sent, end, rng.randrange(2**32))
            if told is None:
                done = oldest = PERIOD * (done // PERIOD + 1)
                self._start_anew()
                continue
            self.lifetime = self.lifetime or time.monotonic() - start
            self.n_kills, self.n_ended = self.n_kills + killed, self.n_ended + (not killed)
            self.answers += [(sent[answer["line"] - 1], answer) for answer in told]
            done += max(0, len(told) - len(again))
            if killed and self.fault == "power":
                cut_power(self.state, self.platter, rng)
        return self

    def _start_anew(self) -> None:
        """Put a file that was refused away."""
        self.n_refused += 1
        for folder in (self.folder, self.platter):
            for path in (*folder.glob("state*"), *folder.glob(".state*")):
                path.unlink()

    def _live(self, sent: list[int], end: End, seed: int) -> tuple[list[dict] | None, bool]:
        """Run one stream; return its answers, if it took its file, and whether it was killed."""
        (source, feed), (listen, out) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(feed)
            os.close(listen)
            self._stream(source, out, end.at_call, seed)
        os.close(source)
        os.close(out)
        os.write(feed, b"".join(line_of(i, self.with_ids) for i in sent))  # less than a pipe holds
        os.close(feed)
        said, last = b"", time.monotonic() + end.patience
        while (left := last - time.monotonic()) > 0 and select.select([listen], [], [], left)[0]:
            if not (part := os.read(listen, 1 << 16)):
                break
            said += part
            if end.n_answers is not None and said.count(b"\n") >= end.n_answers:
                time.sleep(end.delay)
                os.kill(child, signal.SIGKILL)
                break
        else:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while part := os.read(listen, 1 << 16):
            said += part
        os.close(listen)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            if "--no-sync" in self.options:
                return None, False
            raise SystemExit(f"A stream refused its file: {(self.folder / 'stderr').read_text()}")
        complete = said[: said.rfind(b"\n") + 1].splitlines()
        return [json.loads(line) for line in complete], os.WIFSIGNALED(status)

    def _stream(self, source: int, out: int, die_at: int, seed: int) -> None:
        """Be the command; does not return."""
        status = 1
        try:
            errors = os.open(self.folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for old, new in ((source, 0), (out, 1), (errors, 2)):
                os.dup2(old, new)
            os.chdir(self.folder)
            platter = self.platter if self.fault == "power" else None
            Disk(platter, torn=self.fault != "kill", die_at=die_at, seed=seed).install()
            decide_in_threes()
            run_command(self.model, self.state, *self.options)
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def summary(self) -> dict:
        """Count kills, answers and broken promises."""
        by_item, at = defaultdict(set), {}
        flags: Counter = Counter()
        for item, answer in self.answers:
            by_item[item].add(answer["flag"])
            at.setdefault(item, item if answer["at"] is None else answer["at"])
            if answer["flag"] and not self.with_ids:
                flags[answer["at"] // PERIOD] += 1
        if self.with_ids:
            flags.update(at[item] // PERIOD for item, given in by_item.items() if True in given)
        two = sum(len(given) > 1 for given in by_item.values()) if self.with_ids else 0
        return {
            "fault": " ".join([self.fault, *self.options]),
            "ids": "yes" if self.with_ids else "no",
            "kills": self.n_kills,
            "ended": self.n_ended,
            "answers": len(self.answers),
            "periods": len({moment // PERIOD for moment in at.values()}),
            "flags": sum(flags.values()),
            "periods over": sum(n > COUNT for n in flags.values()),
            "contradictions": two,
            "files refused": self.n_refused,
        }


def decide_in_threes() -> None:
    """Let a stream write often: three lines in each transaction."""
    from shortlist.service.stream import run_stream

    run_stream.__kwdefaults__["batch"] = 3


def prepare(folder: Path) -> Path:
    """Fit a small model, and run the command once, which imports and compiles everything."""
    import numpy as np

    from shortlist import Capacity
    from shortlist.tables import fit_table, save_model

    rng = np.random.default_rng(0)
    amounts = rng.uniform(50, 250, 400)
    is_rare = rng.random(400) < 1 / (1 + np.exp((300 - amounts) / 60))
    rows = [f"{a:.3f},{'yes' if rare else 'no'}" for a, rare in zip(amounts, is_rare, strict=True)]
    (folder / "cases.csv").write_text("\n".join(["amount,fraud", *rows]) + "\n")
    fitted = fit_table(
        folder / "cases.csv",
        target="fraud",
        rare="yes",
        capacity=Capacity.fraction(0.05),
        learner="logistic",
    )
    save_model(fitted.model, folder / "model")
    kept = [os.dup(descriptor) for descriptor in range(3)]
    (folder / "lines").write_bytes(line_of(0, True) + line_of(1, True))
    with (folder / "lines").open("rb") as lines, (folder / "printed").open("wb") as printed:
        for descriptor, file in enumerate((lines, printed, printed)):
            os.dup2(file.fileno(), descriptor)
        with contextlib.suppress(SystemExit):
            run_command(folder / "model", folder / "warm")
    for descriptor, old in enumerate(kept):
        os.dup2(old, descriptor)
    return folder / "model"


def run_command(model: Path, state: Path, *options: str) -> None:
    """Run `shortlist stream` as its own program would."""
    from shortlist.cli import main

    sys.argv = ["shortlist", "stream", str(model), "--state", str(state), *ARGUMENTS, *options]
    main()


def run(n_kills: int, seed: int = 0, *, control: bool = True) -> list[dict]:
    """Run all campaigns; together they have at least `n_kills` kills."""
    faults = [("kill", ()), ("torn", ()), ("power", ()), ("power", PROBES)]
    plan = [(fault, ids, options) for fault, options in faults for ids in (True, False)]
    each, summaries = -(-n_kills // len(plan)), []
    if control:
        plan.append(("power", True, ("--no-sync",)))
    with tempfile.TemporaryDirectory() as place:
        model, lifetime = prepare(Path(place)), None
        for number, (fault, ids, options) in enumerate(plan):
            campaign = Campaign(fault, ids, Path(place) / str(number), model, options, lifetime)
            # The control has enough kills to show what is lost.
            least = 10 if "--no-sync" in options else 1
            summaries.append(campaign.run(max(each, least), seed + number).summary())
            lifetime = campaign.lifetime
            strange = {path.name for path in campaign.folder.iterdir()} - FILES
            if strange:
                raise SystemExit(f"A stream wrote files of other names: {strange}")
            sys.stderr.write(f"{summaries[-1]}\n")
    return summaries


def main() -> None:
    """Print a table; exit with an error if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    rows = run(options.kills, options.seed, control=options.control)
    if options.json:
        sys.stdout.write(json.dumps(rows) + "\n")
    else:
        sys.stdout.write("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|\n")
        for row in rows:
            sys.stdout.write("| " + " | ".join(str(value) for value in row.values()) + " |\n")
        kills = sum(row["kills"] for row in rows)
        sys.stdout.write(f"\n{kills:,} kills in {time.monotonic() - start:,.0f} seconds\n")
    losses = ("periods over", "contradictions", "files refused")
    lost: Counter = Counter()
    for row in rows:
        lost[row["fault"]] += sum(row[name] for name in losses)
    if lost.pop("power --no-sync", None) == 0:
        sys.exit("The control has lost nothing: the test is too weak.")
    sys.exit(any(lost.values()))


if __name__ == "__main__":
    main()
