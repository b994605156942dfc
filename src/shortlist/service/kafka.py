"""A topic of Kafka as the input of `stream`, and another one for its answers.

The state file keeps how far the topic has been answered, in the transaction of the decisions. A
message without an id gets one from its place, so that no message is decided twice. All partitions
are read by the one process that holds the state file: a capacity cannot be shared by a consumer
group, whose members would each decide with a part of the cases.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._core.extras import load_extra
from ..exceptions import TableNote
from .stream import LONGEST_LINE, TOO_LONG

__all__ = ["Kafka"]

#: Names a file with settings of Kafka's client, such as passwords: one `name=value` in a line.
SETTINGS_FILE = "SHORTLIST_KAFKA"
_SECONDS = 10.0  # for an answer of the broker
_LOOK_AGAIN = 60.0  # seconds between two looks for new partitions
_POLL = 0.2


class _Line(bytes):
    """A line that knows its place, which is its id if it has none of its own."""

    place: str


class Kafka:
    """Reads the messages of a topic, and writes answers to another one.

    Parameters
    ----------
    address : str
        The brokers, the topic, and the topic for answers: ``localhost:9092/cases/decisions``.
    answered : dict of str to int
        How far each partition has been answered.

    Attributes
    ----------
    position : dict of str to int
        How far each partition had been answered when the latest messages were read.
    has_answers : bool
        Whether there is a topic for answers.
    """

    def __init__(self, address: str, answered: dict[str, int]) -> None:
        self._client = load_extra("confluent_kafka", needed_for="Reading from Kafka")
        brokers, self._topic, self._answers = _parts(address)
        self.position = dict(answered)
        self.has_answers = bool(self._answers)
        # Without the last one, the client prints to standard error by itself.
        shared = {"bootstrap.servers": brokers, **_settings(), "log_level": 0}
        own = {"group.id": "shortlist", "enable.auto.commit": False, "client.id": "shortlist"}
        self._consumer = self._client.Consumer({"auto.offset.reset": "earliest", **shared, **own})
        self._producer = self._client.Producer({**shared, "enable.idempotence": True})
        self._failed: list[str] = []
        self._known: set[int] = set()
        self._looked = -float("inf")

    def batches(self, most: int) -> Iterator[list[bytes]]:
        """Yield lists of messages as they come, and an empty one when no more wait."""
        while True:
            self._find_partitions()
            messages = [each for each in self._consumer.consume(most, _POLL) if self._is_one(each)]
            if messages:
                yield [self._line(each) for each in messages]
                self.position |= {self._name(m.partition()): m.offset() + 1 for m in messages}
                if len(messages) < most:
                    yield []

    def write(self, answers: bytes) -> None:
        """Send answers, one for each line."""
        for line in answers.splitlines():
            self._producer.produce(self._answers, line, on_delivery=self._note_failure)

    def flush(self) -> None:
        """Wait until the broker has all answers."""
        if self._producer.flush(_SECONDS) or self._failed:
            reason = self._failed[0] if self._failed else "no answer"
            raise OSError(
                f"Kafka did not accept the answers ({reason}). The decisions are saved; start "
                "again, and they are sent."
            )

    def _find_partitions(self) -> None:
        """Assign all partitions of the topic; it may get more of them."""
        if time.monotonic() - self._looked < _LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        try:
            found = self._consumer.list_topics(self._topic, _SECONDS).topics[self._topic]
            if found.error is not None:
                raise OSError(f"Kafka has no topic {self._topic!r} to read: {found.error.str()}")
            new = sorted(set(found.partitions) - self._known)
            self._known.update(new)
            if new:
                self._consumer.incremental_assign([self._begin(number) for number in new])
        except self._client.KafkaException as error:
            raise OSError(f"Kafka cannot be reached: {error.args[0].str()}") from error

    def _begin(self, number: int) -> Any:
        """Return where to read a partition: where it has been answered, or at its beginning."""
        place = self._client.TopicPartition(self._topic, number)
        first, end = self._consumer.get_watermark_offsets(place, _SECONDS)
        place.offset = self.position.get(self._name(number), first)
        if place.offset > end:  # messages would have the places of others, and get their answers
            decided = (
                f"{self._name(number)} ends at {end:,}, and was decided up to {place.offset:,}"
            )
            raise OSError(f"{decided}. If the topic was recreated, start with another state.")
        if place.offset < first:
            warnings.warn(
                f"Kafka has deleted {first - place.offset:,} messages of {self._name(number)} "
                "before they were decided. Let the topic keep its messages longer.",
                TableNote,
                stacklevel=4,
            )
        return place

    def _is_one(self, message: Any) -> bool:
        error = message.error()
        if error is not None and not error.retriable():
            raise OSError(f"Kafka cannot be read: {error.str()}")
        return error is None

    def _line(self, message: Any) -> bytes:
        value = message.value() or b""
        line = _Line(TOO_LONG if len(value) > LONGEST_LINE else value)
        line.place = f"{self._name(message.partition())}/{message.offset()}"
        return line

    def _name(self, partition: int) -> str:
        return f"{self._topic}/{partition}"

    def _note_failure(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error.str())


def _parts(address: str) -> tuple[str, str, str]:
    brokers, _, rest = address.partition("/")
    topic, _, answers = rest.partition("/")
    if not brokers or not topic or "/" in answers:
        raise ValueError(
            f"An address of Kafka has brokers, a topic, and perhaps a topic for answers, such as "
            f"localhost:9092/cases/decisions; got {address!r}."
        )
    return brokers, topic, answers


def _settings() -> dict[str, str]:
    """Return what the file of settings says."""
    file = os.environ.get(SETTINGS_FILE)
    lines = Path(file).read_text().splitlines() if file else []
    pairs = [line.split("=", 1) for line in lines if line.strip() and not line.startswith("#")]
    if wrong := [pair[0] for pair in pairs if len(pair) < 2]:
        raise ValueError(f"{file}: every line is name=value; got {wrong[0]!r:.40}.")
    return {name.strip(): value.strip() for name, value in pairs}
