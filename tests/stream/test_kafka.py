"""Messages of Kafka are decided once, over kills and restarts; a real client speaks to a broker."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from shortlist import Capacity
from shortlist.service import kafka
from shortlist.service._models import Arrival
from shortlist.service.kafka import Kafka
from shortlist.service.store import StoreError
from shortlist.service.stream import TOO_LONG, StreamSettings, run_stream
from shortlist.service.stream_file import open_stream

confluent_kafka = pytest.importorskip("confluent_kafka")
TOOL = Path(__file__).parents[2] / "tools" / "kafka_faults.py"


@pytest.fixture(scope="module")
def broker():
    """Return a producer that is a broker as well, and the broker's address."""
    settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "any", "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    found = next(iter(producer.list_topics(timeout=60).brokers.values()))
    return producer, f"{found.host}:{found.port}"


@pytest.fixture
def durable(table_fit, tmp_path):
    """Return a stream's state, open."""
    settings = StreamSettings(capacity=Capacity.count(2), period=60.0)
    controller = settings.controller(table_fit.model)
    with open_stream(tmp_path / "state", controller, identity={}, sync=False) as durable:
        yield durable


def first_batch(source):
    """Return the first messages of a topic."""
    return next(source.batches(100))


def test_kills_lose_no_message_and_decide_none_twice():
    """`python tools/kafka_faults.py` kills 200 times."""
    found = subprocess.run(
        [sys.executable, str(TOOL), "--kills", "4", "--pace", "5"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    counted = json.loads(found.stdout)
    assert counted["kills"] == 4
    assert counted["flags"] > 0


def test_a_message_without_an_id_has_its_place(broker, monkeypatch):
    """It is the same message when it is read again."""
    producer, address = broker
    monkeypatch.setattr(kafka, "LONGEST_LINE", 10)
    for value in (b'{"id": 1}', b"", None, b"x" * 11):
        producer.produce("places", value, partition=2)
    producer.flush(60)
    lines = first_batch(Kafka(f"{address}/places", {}))
    assert [line.place for line in lines] == [f"places/2/{offset}" for offset in range(4)]
    assert lines == [b'{"id": 1}', b"", b"", TOO_LONG]


def test_reading_goes_on_where_answers_ended(broker):
    """Messages that were read but not answered are read again."""
    producer, address = broker
    for number in range(5):
        producer.produce("again", b"%d" % number, partition=0)
    producer.flush(60)
    source = Kafka(f"{address}/again", {"again/0": 2})
    batches = source.batches(100)
    assert next(batches) == [b"2", b"3", b"4"]
    assert source.position == {"again/0": 2}  # until the next batch is asked for
    assert next(batches) == []
    assert source.position == {"again/0": 5}


def test_a_topic_that_was_made_anew_is_refused(broker):
    """Its messages would have the places of others, and get their answers."""
    producer, address = broker
    producer.produce("anew", b"0", partition=0)
    producer.flush(60)
    with pytest.raises(OSError, match="anew/0 ends at 1, and was decided up to 50"):
        first_batch(Kafka(f"{address}/anew", {"anew/0": 50}))


def test_a_position_is_saved_with_its_decisions_or_not_at_all(durable, monkeypatch):
    """Otherwise a crash could skip messages, or decide them twice."""
    durable.decide([Arrival(1.0, "a", 0.0)], {"cases/0": 3})
    assert durable.answered == {"cases/0": 3}
    durable.decide([], {"cases/0": 4})
    durable.decide([Arrival(1.0, "a", 0.0)], {"cases/0": 5})
    assert durable.answered == {"cases/0": 5}

    def fail(group):
        raise StoreError("no")

    monkeypatch.setattr(durable._store, "commit", fail)
    with pytest.raises(Exception, match="no"):
        durable.decide([Arrival(1.0, "b", 0.0)], {"cases/0": 6})
    monkeypatch.undo()
    durable._store.rollback()
    assert durable.answered == {"cases/0": 5}


def test_lines_with_places_are_decided_once(durable, table_fit):
    """A line without an id counts as its place; with one, the place does not matter."""

    class Twice:
        position: dict = {}  # noqa: RUF012

        def batches(self, most):
            lines = [kafka._Line(b"{}"), kafka._Line(b'{"case": 7}')]
            for number, line in enumerate(lines):
                line.place = f"cases/0/{number}"
            yield from (lines, lines)

    out = io.BytesIO()
    run_stream(table_fit.model, durable, Twice(), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == ["cases/0/0", 7, "cases/0/0", 7]
    assert durable.controller.n_items == len({a["id"] for a in answers if "error" not in a})


@pytest.mark.parametrize("address", ["localhost:9092", "/cases", "localhost:9092/a/b/c"])
def test_an_address_says_what_it_needs(address):
    """Brokers and a topic."""
    with pytest.raises(ValueError, match="localhost:9092/cases/decisions; got"):
        Kafka(address, {})


def test_settings_come_from_a_file(tmp_path, monkeypatch):
    """A password stands in no command."""
    file = tmp_path / "kafka"
    file.write_text("# for tests\nsasl.password=a=b\n\nsecurity.protocol = SASL_SSL\n")
    monkeypatch.setenv(kafka.SETTINGS_FILE, str(file))
    assert kafka._settings() == {"sasl.password": "a=b", "security.protocol": "SASL_SSL"}
    file.write_text("nothing\n")
    with pytest.raises(ValueError, match=r"every line is name=value; got 'nothing'"):
        kafka._settings()


def test_an_unreachable_broker_is_an_error(monkeypatch):
    """Waiting without end would look like a quiet topic."""
    monkeypatch.setattr(kafka, "_SECONDS", 0.2)
    with pytest.raises(OSError, match="Kafka cannot be reached"):
        first_batch(Kafka("127.0.0.1:9/cases", {}))


def test_a_partition_without_a_leader_is_an_error(broker, monkeypatch):
    """As when one of several brokers is down."""
    producer, address = broker
    producer.produce("led", b"0", partition=0)
    producer.flush(60)
    source = Kafka(f"{address}/led", {})

    class Leaderless:
        incremental_assign = None
        list_topics = source._consumer.list_topics

        def get_watermark_offsets(self, *given):
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(5))

    monkeypatch.setattr(source, "_consumer", Leaderless())
    with pytest.raises(OSError, match="Kafka cannot be reached: Broker: Leader not available"):
        first_batch(source)


def test_answers_that_the_broker_does_not_take_are_an_error(monkeypatch):
    """They are sent again after the next start."""
    monkeypatch.setattr(kafka, "_SECONDS", 0.2)
    source = Kafka("127.0.0.1:9/cases/answers", {})
    source.write(b"{}\n{}\n")
    with pytest.raises(OSError, match=r"did not accept the answers .* The decisions are saved"):
        source.flush()
