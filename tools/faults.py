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
    In addition, the disk forgets. Of every file it keeps what was synced and a random part of
    what was appended since, and a new name only if its folder was synced, or by luck.

A promise is broken if a period has more flags than its number, or if an id gets two different
answers. The last row is a control: the same power cuts with `--no-sync`, which promises nothing
after a power cut. If it shows no broken promise, the test is too weak.
"""

from __future__ import annotations

import argparse
import contextlib
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
FIRST_PATIENCE = 600.0
PROBES = ("--probe", "0.4")
ARGUMENTS = ["--count", str(COUNT), "--period", f"{PERIOD}s", "--expect", str(PERIOD)]


class Disk:
    """Takes the place of a few system calls: it tears writes, forgets, and ends the process."""

    def __init__(self, platter: Path | None, *, torn: bool, die_at: int, seed: int) -> None:
        self._platter, self._torn, self._die_at = platter, torn, die_at
        self._rng = random.Random(seed)
        self._n_calls = 0
        self._renamed: dict[str, str] = {}  # names that the folder on the platter does not know yet
        self._write, self._fsync, self._rename = os.write, os.fsync, os.replace

    def install(self) -> None:
        """Replace the system calls of this process."""
        from shortlist.streaming import _state_file

        os.write, os.fsync = self.write, self.sync
        _state_file._sync_data = self.sync
        disk = self
        Path.replace = lambda source, target: disk.rename(source, target)

    def write(self, descriptor: int, data: bytes) -> int:
        """Write all or only a part."""
        self._call()
        part = self._rng.randrange(1, len(data)) if self._torn and len(data) > 1 else len(data)
        n_written = self._write(descriptor, data[:part])
        self._call()
        return n_written

    def sync(self, descriptor: int) -> None:
        """Put the content of a file, or the names of a folder, on the platter."""
        self._call()
        self._fsync(descriptor)
        if self._platter is not None:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path.is_dir():
                for name, source in self._renamed.items():
                    if not (self._platter / source).exists():  # the name outlived the content
                        (self._platter / source).touch()
                    self._rename(self._platter / source, self._platter / name)
                self._renamed = {}
            else:
                shutil.copyfile(path, self._platter / "copy")
                name = self._renamed.get(path.name, path.name)
                self._rename(self._platter / "copy", self._platter / name)
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
    """Leave what the platter has, and by luck a part of what it was about to have."""
    kept = platter / "state"
    for part in platter.glob(".state.*.part"):
        if not (state.parent / part.name).exists() and rng.random() < 0.5:
            os.replace(part, kept)  # the new name arrived, though nobody has waited for it
        part.unlink(missing_ok=True)
    for part in state.parent.glob(".state.*.part"):
        part.unlink()
    if not kept.exists():
        state.unlink(missing_ok=True)
        return
    synced, written = kept.read_bytes(), state.read_bytes() if state.exists() else b""
    rest = written[len(synced) :] if written.startswith(synced) else b""
    kept.write_bytes(synced + rest[: rng.randrange(len(rest) + 1)])
    shutil.copyfile(kept, state)


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
            return End(at_call=rng.randrange(1, 120))
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
    answers: list[tuple[int, dict]] = field(default_factory=list)
    n_kills: int = 0
    n_ended: int = 0
    n_dropped: int = 0

    def run(self, n_kills: int, seed: int) -> Campaign:
        """Start stream after stream."""
        rng, done, lifetime = random.Random(seed), 0, None
        self.state, self.platter = self.folder / "state", self.folder / "platter"
        self.platter.mkdir(parents=True)
        while self.n_kills < n_kills:
            recent = range(max(0, done - 2 * N_AGAIN), done)
            again = rng.sample(recent, min(N_AGAIN, done)) if self.with_ids else []
            sent = [*again, *range(done, done + N_SENT)]
            # The first stream is not killed; it shows how long one lasts.
            end = End() if lifetime is None else End.at_random(rng, lifetime, self.fault != "kill")
            start = time.monotonic()
            told, killed = self._live(sent, end, rng.randrange(2**32))
            lifetime = lifetime or time.monotonic() - start
            self.n_kills, self.n_ended = self.n_kills + killed, self.n_ended + (not killed)
            self.answers += [(sent[answer["line"] - 1], answer) for answer in told]
            done += max(0, len(told) - len(again))
            if killed and self.fault == "power":
                cut_power(self.state, self.platter, rng)
        return self

    def _live(self, sent: list[int], end: End, seed: int) -> tuple[list[dict], bool]:
        """Run one stream; return its answers and whether it was killed."""
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
        self.n_dropped += (self.folder / "stderr").read_text().count("Dropped")
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
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
            platter = self.platter if self.fault == "power" else None
            Disk(platter, torn=self.fault != "kill", die_at=die_at, seed=seed).install()
            run_command(self.model, self.state, "--batch", "3", *self.options)
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
            "torn records dropped": self.n_dropped,
            "answers": len(self.answers),
            "periods": len({moment // PERIOD for moment in at.values()}),
            "flags": sum(flags.values()),
            "periods over": sum(n > COUNT for n in flags.values()),
            "contradictions": two,
        }


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
        model = prepare(Path(place))
        for number, (fault, ids, options) in enumerate(plan):
            campaign = Campaign(fault, ids, Path(place) / str(number), model, options)
            summaries.append(campaign.run(each, seed + number).summary())
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
    promised = [row for row in rows if "--no-sync" not in row["fault"]]
    sys.exit(any(row["periods over"] + row["contradictions"] for row in promised))


if __name__ == "__main__":
    main()
