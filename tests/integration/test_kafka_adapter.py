"""The Kafka adapter, on a real broker."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.kafka import transactions as kafka_transactions
from controller.adapters.kafka.client import NO_CLIENT
from controller.adapters.kafka.topics import TopicSpec, delete_before, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.lab.servers import KafkaServer, kafka_server
from controller.log.kafka.offsets import PartitionOffsets
from controller.log.kafka.reader import KafkaReader
from controller.model.errors import JournalError, LeadershipLostError, TrimtabError
from tests.kafka_log import read_all

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    """A topic of one partition."""
    return make_topic(kafka, partitions=1)


def make_topic(kafka: KafkaServer, *, partitions: int) -> str:
    name = f"topic-{uuid4().hex}"
    assert ensure_topics(kafka.bootstrap, [TopicSpec(name=name, partitions=partitions)]) == {name: partitions}
    return name


def writer(kafka: KafkaServer, transactional_id: str) -> TransactionalProducer:
    producer = TransactionalProducer(kafka.bootstrap, transactional_id)
    producer.init()
    return producer


def commit(producer: TransactionalProducer, topic: str, *values: bytes) -> None:
    with producer.transaction() as transaction:
        for value in values:
            transaction.send(topic, value)


def values(kafka: KafkaServer, topic: str, partition: int = 0) -> list[bytes]:
    return [record.value for record in read_all(kafka.bootstrap, topic, partition)]


def test_a_topic_that_exists_stays_as_it_is(kafka: KafkaServer) -> None:
    name = make_topic(kafka, partitions=3)
    assert ensure_topics(kafka.bootstrap, [TopicSpec(name=name, partitions=7)]) == {name: 3}


def test_a_topic_that_kafka_refuses_is_named(kafka: KafkaServer) -> None:
    with pytest.raises(TrimtabError, match="not a topic"):
        ensure_topics(kafka.bootstrap, [TopicSpec(name="not a topic", partitions=1)])


def test_ten_megabytes_fit_into_a_record(kafka: KafkaServer, topic: str) -> None:
    producer = Producer(kafka.bootstrap, {"compression.type": "none"})
    producer.send(topic, b"x" * (10 << 20))
    producer.flush()
    (record,) = read_all(kafka.bootstrap, topic, 0)
    assert len(record.value) == 10 << 20


def test_a_record_the_broker_refuses_is_raised_at_the_flush(kafka: KafkaServer) -> None:
    name = f"topic-{uuid4().hex}"
    ensure_topics(kafka.bootstrap, [TopicSpec(name=name, partitions=1, config={"max.message.bytes": "1000"})])
    producer = Producer(kafka.bootstrap, {"compression.type": "none"})
    producer.send(name, b"x" * 2000)
    with pytest.raises(TrimtabError, match=name):
        producer.flush()


def test_records_unwritten_are_counted(tmp_path: Path) -> None:
    with kafka_server(tmp_path) as server:
        name = make_topic(server, partitions=1)
        producer = Producer(server.bootstrap)
        producer.send(name, b"written")
        producer.flush()
        server.stop()
        producer.send(name, b"one")
        producer.send(name, b"two")
        with pytest.raises(TrimtabError, match="2 records not written"):
            producer.flush(timeout_seconds=1.0)
        server.start()
        producer.flush()
        assert values(server, name) == [b"written", b"one", b"two"]


def test_aborting_what_was_hardly_sent_leaves_the_producer_usable(kafka: KafkaServer, topic: str) -> None:
    # Right behind a commit, brokers refuse an abort that overtakes the transaction's first partition.
    producer = writer(kafka, topic)

    def give_up() -> None:
        with producer.transaction() as transaction:
            transaction.send(topic, b"never")
            raise ValueError("no")

    for number in range(300):
        commit(producer, topic, b"%d" % number)
        with pytest.raises(ValueError, match="no"):
            give_up()
    assert values(kafka, topic) == [b"%d" % number for number in range(300)]


def overtake_before_sending(first: TransactionalProducer, topic: str, overtake: Callable[[], None]) -> None:
    overtake()
    with first.transaction() as transaction:
        transaction.send(topic, b"never")
        transaction.flush()


def overtake_before_the_flush(first: TransactionalProducer, topic: str, overtake: Callable[[], None]) -> None:
    with first.transaction() as transaction:
        transaction.send(topic, b"never")
        overtake()
        transaction.flush()


def overtake_between_two_records(first: TransactionalProducer, topic: str, overtake: Callable[[], None]) -> None:
    with first.transaction() as transaction:
        transaction.send(topic, b"never")
        transaction.flush()
        overtake()
        # As often as it takes the brokers to answer: from then on librdkafka says no more than "fatal".
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            transaction.send(topic, b"never")
            time.sleep(0.01)


def overtake_before_the_commit(first: TransactionalProducer, topic: str, overtake: Callable[[], None]) -> None:
    with first.transaction() as transaction:
        transaction.send(topic, b"never")
        transaction.flush()
        overtake()


@pytest.mark.parametrize(
    "write",
    [
        overtake_before_sending,
        overtake_before_the_flush,
        overtake_between_two_records,
        overtake_before_the_commit,
    ],
)
def test_a_fenced_writer_learns_that_another_leads_wherever_it_is(
    write: Callable[[TransactionalProducer, str, Callable[[], None]], None], kafka: KafkaServer, topic: str
) -> None:
    first, second = writer(kafka, topic), TransactionalProducer(kafka.bootstrap, topic)
    commit(first, topic, b"first")
    with pytest.raises(LeadershipLostError, match="another process writes"):
        write(first, topic, second.init)
    commit(second, topic, b"second")
    assert values(kafka, topic) == [b"first", b"second"]


def test_an_error_of_the_block_is_raised_even_where_the_writer_is_fenced_and_then_nothing_more_is_written(
    kafka: KafkaServer, topic: str
) -> None:
    first, second = writer(kafka, topic), TransactionalProducer(kafka.bootstrap, topic)

    def overtaken() -> None:
        with first.transaction() as transaction:
            transaction.send(topic, b"never")
            transaction.flush()
            second.init()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        overtaken()
    with pytest.raises(LeadershipLostError):
        commit(first, topic, b"never")
    assert values(kafka, topic) == []


def test_a_transaction_with_a_record_too_large_is_a_journal_error_and_leaves_nothing(kafka: KafkaServer) -> None:
    name = f"topic-{uuid4().hex}"
    ensure_topics(kafka.bootstrap, [TopicSpec(name=name, partitions=1, config={"max.message.bytes": "1000"})])
    producer = TransactionalProducer(kafka.bootstrap, name, {"compression.type": "none"})
    producer.init()
    with pytest.raises(JournalError, match="large"):
        commit(producer, name, b"small", b"x" * 2000)
    producer.init()
    commit(producer, name, b"the next")
    assert values(kafka, name) == [b"the next"]


def test_a_writer_without_a_broker_gives_up_with_a_journal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_transactions, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(JournalError, match="init_transactions"):
        TransactionalProducer("127.0.0.1:1", "nobody", {"log_level": 0}).init()


def test_a_broker_that_went_silent_is_an_error_not_an_end(tmp_path: Path) -> None:
    # The reader fetches a record at a time, far fewer than there are: it cannot have them all before the crash.
    little_by_little = {"queued.min.messages": 1, "fetch.message.max.bytes": 1000, "log_level": 0}
    with kafka_server(tmp_path) as server:
        name = make_topic(server, partitions=1)
        producer = Producer(server.bootstrap)
        for _ in range(100):
            producer.send(name, os.urandom(10_000))
            producer.flush()
        records = read_all(server.bootstrap, name, 0, client=little_by_little, seconds=3.0)
        next(records)
        server.stop(signal.SIGKILL)
        with pytest.raises(TrimtabError, match=f"{name}.*silent"):
            list(records)


def fail(producer: TransactionalProducer, topic: str, value: bytes, error: Exception) -> None:
    with producer.transaction() as transaction:
        transaction.send(topic, value)
        transaction.flush()
        raise error


def test_reading_to_the_end_passes_the_markers_of_transactions(kafka: KafkaServer, topic: str) -> None:
    producer = writer(kafka, topic)
    for number in range(5):
        commit(producer, topic, b"%d" % number)
        with pytest.raises(ValueError, match="no"):
            fail(producer, topic, b"aborted", ValueError("no"))
    records = list(read_all(kafka.bootstrap, topic, 0))
    assert [record.value for record in records] == [b"0", b"1", b"2", b"3", b"4"]
    assert [record.position for record in records] == [0, 4, 8, 12, 16]
    later = [record.value for record in read_all(kafka.bootstrap, topic, 0, first=5)]
    assert later == [b"2", b"3", b"4"]
    assert list(read_all(kafka.bootstrap, topic, 0, first=17)) == []


def reading(kafka: KafkaServer, topic: str, first: int, offsets: PartitionOffsets, *, seconds: float) -> KafkaReader:
    starts = {0: first}
    return KafkaReader(kafka.bootstrap, NO_CLIENT, topic, starts, is_whole=False, offsets=offsets, seconds=seconds)


def test_a_leader_that_knows_less_than_was_read_is_waited_for_and_nothing_comes_twice(
    kafka: KafkaServer, topic: str
) -> None:
    """So answers one that comes back as the leader that it was: its end lies before the place of the reader."""
    producer = writer(kafka, topic)
    commit(producer, topic, b"0", b"1")  # and the marker: offsets 0 to 2
    offsets = PartitionOffsets(kafka.bootstrap, NO_CLIENT)
    with closing(offsets), closing(reading(kafka, topic, 5, offsets, seconds=60.0)) as reader:
        assert reader.next(3.0) is None
        commit(producer, topic, b"3", b"4")
        commit(producer, topic, b"6")
        record = reader.next(30.0)
        assert record is not None
        assert (record.position, record.value) == (6, b"6")


def test_a_topic_that_stays_shorter_than_what_was_read_is_named(kafka: KafkaServer, topic: str) -> None:
    commit(writer(kafka, topic), topic, b"0")
    offsets = PartitionOffsets(kafka.bootstrap, NO_CLIENT)
    with (
        closing(offsets),
        closing(reading(kafka, topic, 100, offsets, seconds=1.0)) as reader,
        pytest.raises(TrimtabError, match=f"{topic}' is shorter than what was read"),
    ):
        reader.next(30.0)


def test_reading_goes_on_behind_records_that_were_deleted(kafka: KafkaServer, topic: str) -> None:
    producer = writer(kafka, topic)
    for number in range(3):
        commit(producer, topic, b"%d" % number)
    delete_before(kafka.bootstrap, topic, 0, 4, NO_CLIENT)
    assert [each.value for each in read_all(kafka.bootstrap, topic, 0)] == [b"2"]


def test_nothing_is_written_before_init(kafka: KafkaServer, topic: str) -> None:
    with pytest.raises(JournalError, match=r"init\(\) was not called"):
        commit(TransactionalProducer(kafka.bootstrap, topic), topic, b"too early")
