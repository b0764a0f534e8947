"""Partitions that a topic gets while everything runs, on a real Kafka: noticed, read and written within seconds."""

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.waiting import wait_for
from controller.collector.roster import Arrivals
from controller.executor.loop import Executor
from controller.lab.servers import KafkaServer
from controller.log.port import TakenOverError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import encode
from controller.wire.commands import EpochEvent, command_event, epoch_event, parse_event
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.results import Result, decode_result
from tests.commands import T, unload
from tests.integration.execute import now_ms
from tests.journal_entries import UNLOAD, entry
from tests.kafka_log import PARTITIONS, collector_in, inbox_in, journal_in, own_topics, read_all
from tests.records import T as ENTRY_T
from tests.unit.collector.test_collector_roster import chunk
from tests.unit.executor.test_executor_loop import Owners

pytestmark = pytest.mark.integration

MORE = 4 * PARTITIONS
PERIOD_MS = 60_000
CLUSTER = "lab"


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    return own_topics(kafka.bootstrap)


def add_partitions(log: KafkaLogSettings, topic: str, number: int = MORE) -> None:
    admin = AdminClient({"bootstrap.servers": log.bootstrap})
    for added in admin.create_partitions([NewPartitions(topic, number)]).values():
        added.result(30)

    def are_there() -> bool:
        there = admin.list_topics(topic, timeout=10).topics[topic].partitions
        return len(there) == number and all(each.leader >= 0 for each in there.values())

    within(10, are_there)


def within(seconds: float, done: Callable[[], bool]) -> None:
    wait_for(done, seconds, every=0.05)


def ticks(log: KafkaLogSettings, topic: str, partition: int) -> list[int]:
    values = [record.value for record in read_all(log.bootstrap, topic, partition)]
    read = [decode_metric(value, cluster=CLUSTER, period_ms=PERIOD_MS) for value in values if b'"tick"' in value]
    return [record.interval for record in read if isinstance(record, TickRecord)]


def test_who_leads_the_collectors_reads_the_new_partitions_and_ticks_them_in_the_next_interval(
    log: KafkaLogSettings,
) -> None:
    brokers = {f"broker-{i}:8080": i for i in range(MORE)}
    first = now_ms() // PERIOD_MS * PERIOD_MS - PERIOD_MS
    leader, arrivals = collector_in(log, cluster=CLUSTER), Arrivals(CLUSTER, PERIOD_MS)
    leader.lead(first)
    arrivals.ingest(leader.arrived(), brokers, with_ticks=True)
    leader.tick(first, dict.fromkeys(brokers))
    add_partitions(log, log.metrics_topic)
    add_partitions(log, log.results_topic)
    # A sweep counts that is appended between 10 s before its interval and one period after it.
    interval = (now_ms() + 5_000) // PERIOD_MS * PERIOD_MS
    sweep(log, brokers, interval)

    def all_are_there() -> bool:
        arrivals.ingest(leader.arrived(), brokers, with_ticks=False)
        return not arrivals.missing(interval, brokers)

    within(10, all_are_there)
    leader.tick(interval, arrivals.roster(interval, brokers))
    leader.close()
    for topic in (log.metrics_topic, log.results_topic):
        before = [first]
        assert [ticks(log, topic, each) for each in range(MORE)] == [
            [*(before if each < PARTITIONS else []), interval] for each in range(MORE)
        ]


def sweep(log: KafkaLogSettings, brokers: Mapping[str, int], interval: int) -> None:
    """By a collector that knows of all partitions, each broker's in another one."""
    producer = Producer(log.bootstrap)
    for broker, partition in brokers.items():
        producer.send(log.metrics_topic, encode(chunk(broker, interval)), partition=partition)
    producer.flush()


def test_a_writer_of_transactions_writes_to_new_partitions_once_it_has_asked_how_many_there_are(
    log: KafkaLogSettings,
) -> None:
    producer = TransactionalProducer(log.bootstrap, log.commands_topic)
    producer.init()
    assert producer.partitions(log.commands_topic) == {log.commands_topic: PARTITIONS}
    add_partitions(log, log.commands_topic)
    assert producer.partitions(log.commands_topic) == {log.commands_topic: MORE}
    with producer.transaction() as transaction:
        for partition in range(MORE):
            transaction.send(log.commands_topic, b"x", partition=partition)
    assert all(len(list(read_all(log.bootstrap, log.commands_topic, each))) == 1 for each in range(MORE))


def test_new_partitions_of_the_commands_are_told_the_epoch_before_any_command_lies_there(log: KafkaLogSettings) -> None:
    def epochs(partition: int) -> list[int]:
        events = (parse_event(record.value) for record in read_all(log.bootstrap, log.commands_topic, partition))
        return [event.epoch for event in events if isinstance(event, EpochEvent)]

    journal = journal_in(log, cluster=entry(ENTRY_T).cluster)
    journal.open()
    journal.begin_epoch(7)
    add_partitions(log, log.commands_topic)
    for interval in (ENTRY_T, ENTRY_T + PERIOD_MS):
        journal.append(entry(interval, UNLOAD), epoch=7, issued_at_ms=1, before_commit=lambda: None)
    assert [epochs(each) for each in range(MORE)] == [[7]] * MORE
    add_partitions(log, log.commands_topic, 2 * MORE)
    journal.begin_epoch(8)
    assert [epochs(each)[-1] for each in range(2 * MORE)] == [8] * 2 * MORE


def results(log: KafkaLogSettings, partition: int) -> list[str]:
    values = [record.value for record in read_all(log.bootstrap, log.results_topic, partition)]
    read = [decode_result(value, cluster="standalone", period_ms=PERIOD_MS) for value in values]
    return [record.status for record in read if isinstance(record, Result)]


def test_executors_take_commands_of_new_partitions_once_the_results_have_those_too(
    log: KafkaLogSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("controller.log.kafka.claims._REFRESH_MS", 1_000)
    settings = ExecutorSettings(group=log.commands_topic, session_timeout_seconds=6, max_per_second=1000.0)

    def work(done: Callable[[], bool]) -> None:
        inbox = inbox_in(log, settings, cluster="standalone")
        try:
            executor = Executor(inbox, Owners(), settings, name="standalone", now_ms=lambda: T)
            within(60, lambda: executor.step() == 0 and done())
        finally:
            inbox.close()

    def issue(partition: int) -> None:
        producer = Producer(log.bootstrap)
        command = unload(id=f"command {partition}")
        producer.send(log.commands_topic, epoch_event("standalone", 1, T), partition=partition)
        producer.send(log.commands_topic, command_event(command, 1, T), partition=partition)
        producer.flush()

    def grow() -> bool:
        if not grown:
            issue(0)
            add_partitions(log, log.commands_topic)
            issue(MORE - 1)
            grown.append(True)
        return any("are not carried out until" in record.message for record in caplog.records) and late()

    def late() -> bool:
        if len(grown) == 1 and results(log, 0):
            add_partitions(log, log.results_topic)
            grown.append(True)
        return False

    grown: list[bool] = []
    with pytest.raises(TakenOverError, match=f"has {MORE} partitions now"):
        work(grow)
    work(lambda: results(log, MORE - 1) == ["done"])
    assert results(log, 0) == ["done"]
