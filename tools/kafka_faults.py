"""Kill `shortlist stream --kafka` at random moments, and count broken promises.

    python tools/kafka_faults.py --kills 200 --csv studies/service/kafka.csv

A broker runs in a process of its own: the one that Kafka's client library brings for tests, which
speaks the real protocol over a socket, with four partitions. Every life of the stream is a process
forked from one that has imported everything; it decides three messages in each transaction, and
dies by SIGKILL at a random moment, or at a random step (before or after a commit, before or after
its answers are sent), while new messages arrive, some of them twice and some without an id. At the
end one more life answers what is left.

A promise is broken if a period has more flagged cases than its number, if a case gets two different
answers, if a message gets none, or if a case is decided twice.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from faults import COUNT, PERIOD, decide_in_threes, prepare, run_command

NEW, PARTITIONS = 40, 4


def be_broker(pace: int) -> None:
    """Keep a broker; a line of numbers of cases makes messages, and an empty one ends it."""
    from confluent_kafka import Producer

    settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "any", "log_level": 0}
    producer = Producer(settings)
    broker = next(iter(producer.list_topics(timeout=60).brokers.values()))
    producer.list_topics("decisions", timeout=60)
    print(f"{broker.host}:{broker.port}", flush=True)
    n_sent = 0
    while line := sys.stdin.readline().strip():
        for case in json.loads(line):
            producer.produce("cases", message_of(case, pace), partition=n_sent % PARTITIONS)
            n_sent += 1
        producer.flush(60)
        print(n_sent, flush=True)


def message_of(case: int, pace: int) -> bytes:
    """Return the message about a case; every third one has no id."""
    fields = {"amount": 50 + case * 37 % 200, "at": 1_000 + case // pace}
    return json.dumps(fields if case % 3 == 0 else {"id": case, **fields}).encode()


def read_answers(address: str) -> list[dict]:
    """Return all answers that the broker has."""
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({"bootstrap.servers": address, "group.id": "check", "log_level": 0})
    topic = reader.list_topics("decisions", timeout=60).topics["decisions"]
    places = [TopicPartition("decisions", number, 0) for number in topic.partitions]
    expected = sum(reader.get_watermark_offsets(each, timeout=60)[1] for each in places)
    reader.assign(places)
    answers: list[dict] = []
    while len(answers) < expected:
        answers += [json.loads(each.value()) for each in reader.consume(1_000, 0.5)]
    reader.close()
    return answers


def die_at(step: int) -> None:
    """Let this process die at a step: 4 n before the n-th commit, then after it, and so on."""
    from shortlist.service.kafka import Kafka
    from shortlist.service.stream_file import DurableController

    done = 0

    def deadly(function):
        def inner(*given):
            nonlocal done
            for call in (None, function):
                result = call(*given) if call else None
                done += 1
                if done == step:
                    os.kill(os.getpid(), signal.SIGKILL)
            return result

        return inner

    DurableController.decide = deadly(DurableController.decide)
    Kafka.flush = deadly(Kafka.flush)


class Run:
    """A stream that is killed again and again."""

    def __init__(self, model: Path, folder: Path, seed: int, pace: int) -> None:
        self.model, self.state, self.random = model, folder / "state", random.Random(seed)
        self.errors, self.n_sent, self.n_cases = folder / "stderr", 0, 0
        command = [sys.executable, __file__, "--broker", "--pace", str(pace)]
        self.broker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.broker.stdout is not None
        self.address = self.broker.stdout.readline().strip()

    def send(self) -> None:
        """Send new cases, and some with an id once more."""
        assert self.broker.stdin is not None
        assert self.broker.stdout is not None
        new = list(range(self.n_cases, self.n_cases + NEW))
        self.n_cases += NEW
        again = self.random.choices([case for case in range(self.n_cases) if case % 3], k=4)
        self.broker.stdin.write(json.dumps([*new, *again]) + "\n")
        self.n_sent = int(self.broker.stdout.readline())

    def live(self, seconds: float | None, step: int = 0) -> None:
        """Run the command, and kill it; without a moment for that, wait until all is answered."""
        child = os.fork()
        if not child:
            self._be_stream(step)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        else:
            self._wait(child)
            os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            raise SystemExit(f"The stream has ended: {self.errors.read_text()}")

    def _be_stream(self, step: int) -> None:
        try:
            die_at(step)
            errors = os.open(self.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(errors, 2)
            decide_in_threes()
            address = f"{self.address}/cases/decisions"
            run_command(self.model, self.state, "--kafka", address)
        finally:
            sys.stderr.flush()
            os._exit(1)

    def _wait(self, child: int) -> None:
        """Wait until every case has been answered."""
        for _ in range(1_200):
            time.sleep(0.1)
            if len({answer["id"] for answer in read_answers(self.address)}) == self.n_cases:
                return
            if os.waitpid(child, os.WNOHANG)[0]:
                raise SystemExit(f"The stream has ended: {self.errors.read_text()}")
        raise SystemExit("The stream did not get to the end of its topic.")

    def summary(self, n_kills: int) -> dict[str, int]:
        """Count messages and broken promises."""
        answers = read_answers(self.address)
        by_case: dict[str, set] = defaultdict(set)
        for answer in answers:
            by_case[str(answer["id"])].add(answer["flag"])
        with sqlite3.connect(self.state) as state:
            log = state.execute("SELECT case_id, at, slot FROM log WHERE case_id <> ''").fetchall()
        flags = Counter(at // PERIOD for _, at, slot in log if slot is not None)
        flagged = {case for case, _, slot in log if slot is not None}
        return {
            "kills": n_kills,
            "messages": self.n_sent,
            "answers": len(answers),
            "answered again after a kill": len(answers) - self.n_sent,
            "cases": self.n_cases,
            "flags": sum(flags.values()),
            "periods": len(flags),
            "periods over": sum(n > COUNT for n in flags.values()),
            "contradictions": sum(len(given) > 1 for given in by_case.values()),
            "answered otherwise than decided": sum(
                (case in flagged) not in given for case, given in by_case.items()
            ),
            "cases without an answer": self.n_cases - len(by_case),
            "cases decided twice": len(log) - len({case for case, _, _ in log}),
            "cases lost": self.n_cases - len(log),
        }


def write_line(path: Path, line: dict[str, int]) -> None:
    """Append the numbers of a run to a table."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, line, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=int, default=10, help="cases in a second of their own time")
    parser.add_argument("--csv", type=Path, help="append a line to this file")
    parser.add_argument("--broker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.broker:
        be_broker(given.pace)
        return
    with tempfile.TemporaryDirectory() as place:
        run = Run(prepare(Path(place)), Path(place), given.seed, given.pace)
        run.send()
        started = time.monotonic()
        run.live(None)
        usual = time.monotonic() - started
        for number in range(given.kills):
            run.send()
            step = run.random.randrange(1, 60) if number % 2 else 0
            run.live(run.random.uniform(0.2, 1.2) * usual * (2 if step else 1), step)
        run.live(None)
        summary = run.summary(given.kills)
        run.broker.kill()
    print(json.dumps(summary, indent=1))
    if given.csv is not None:
        write_line(given.csv, {"seed": given.seed, **summary})
    broken = ("periods over", "contradictions", "answered otherwise than decided")
    broken += ("cases without an answer", "cases decided twice", "cases lost")
    sys.exit(any(summary[name] for name in broken))


if __name__ == "__main__":
    main()
