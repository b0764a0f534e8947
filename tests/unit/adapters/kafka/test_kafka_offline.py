"""Partitions without a leader, and topics that a process does not use: what counts, and what does not."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from controller.adapters.kafka import log as kafka_log
from controller.adapters.kafka import topics as kafka_topics
from controller.adapters.kafka.log import KafkaCommandLog, KafkaDeadLetterLog, KafkaMetricsLog
from controller.adapters.kafka.ticks import KafkaCollectorLog
from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.model.errors import LogOfflineError, TrimtabError
from controller.settings.log import KafkaLogSettings

SETTINGS = KafkaLogSettings(bootstrap="localhost:1")


class Cluster:
    """Topic -> the leader of each partition, -1 for none; and what was to be created."""

    def __init__(self, topics: Mapping[str, Iterable[int]]) -> None:
        self.topics = {name: list(leaders) for name, leaders in topics.items()}
        self.asked: list[str] = []

    def list_topics(self, topic: str | None = None, timeout: float = 0.0) -> SimpleNamespace:
        assert timeout > 0
        names = [topic] if topic else self.topics
        return SimpleNamespace(topics={name: self._topic(name) for name in names})

    def _topic(self, name: str) -> SimpleNamespace:
        leaders = self.topics.get(name, [])
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate(leaders)}
        error = None if leaders else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(error=error, partitions=partitions)

    def create_topics(self, new: list[Mock]) -> dict[str, Mock]:
        for each in new:
            self.asked.append(each.topic)
            self.topics[each.topic] = [1] * each.num_partitions
        return {each.topic: Mock() for each in new}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster({})
    for name in ("topics.AdminClient", "writer.ck.Producer", "reader.ck.Consumer"):
        monkeypatch.setattr(f"controller.adapters.kafka.{name}", Mock(return_value=made))
    monkeypatch.setattr(kafka_topics, "_LEADERS_SECONDS", 0.0)
    return made


def test_a_writer_learns_which_partitions_cannot_be_written_to(cluster: Cluster) -> None:
    cluster.topics = {"metrics": [1, -1, 1, -1], "results": [1]}
    producer = Producer("localhost:1")
    assert producer.partitions("results") == {"results": 1}
    with pytest.raises(LogOfflineError, match="partitions 1, 3 of topic 'metrics' have no leader"):
        producer.partitions("results", "metrics")
    assert producer.partitions("metrics", online=False) == {"metrics": 4}
    cluster.topics["metrics"] = [1] * 8
    assert producer.partitions("metrics") == {"metrics": 8}
    with pytest.raises(TrimtabError, match="'gone' does not exist"):
        producer.partitions("gone")


def test_topics_that_have_a_partition_without_a_leader_are_not_waited_for_for_long(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topics = {"metrics": [1, -1], "dead letters": [-1]}
    assert ensure_topics("localhost:1", [TopicSpec(name="metrics", partitions=4)]) == {"metrics": 2}
    [told] = [record.message for record in caplog.records]
    assert "partitions 1 of topic 'metrics' have no leader" in told


@pytest.mark.parametrize(
    ("kind", "uses"),
    [
        (lambda: KafkaCollectorLog(SETTINGS, cluster="lab"), {"trimtab-metrics", "trimtab-results"}),
        (lambda: KafkaMetricsLog(SETTINGS, cluster="lab"), {"trimtab-metrics", "trimtab-results"}),
        (lambda: KafkaDeadLetterLog(SETTINGS), {"trimtab-dead-letters"}),
    ],
)
def test_each_end_of_the_log_creates_the_topics_that_it_uses_and_needs_no_other(
    cluster: Cluster, kind: type[KafkaCollectorLog | KafkaMetricsLog | KafkaDeadLetterLog], uses: set[str]
) -> None:
    kind()  # type: ignore[call-arg]
    assert set(cluster.asked) == uses


def test_a_tick_is_not_begun_while_a_partition_of_its_topics_is_offline_and_the_other_topics_do_not_matter(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaders = {"trimtab-metrics": [1, 1], "trimtab-results": [1, 1]}
    cluster.topics = {**leaders, "trimtab-journal": [-1], "trimtab-dead-letters": [-1], "trimtab-commands": [-1]}
    monkeypatch.setattr(TransactionalProducer, "init", lambda self: setattr(self, "_producer", cluster))
    written = Mock()
    monkeypatch.setattr(TransactionalProducer, "transaction", written)
    written.return_value = Mock(__enter__=Mock(return_value=Mock()), __exit__=Mock(return_value=False))
    monkeypatch.setattr("controller.adapters.kafka.ticks.Reader", Mock())
    log = KafkaCollectorLog(SETTINGS, cluster="lab")
    log.lead(0)
    log.tick(60_000, {"a:8080": None})
    assert written.call_count == 1
    for topic in leaders:
        cluster.topics = {**leaders, topic: [1, -1]}
        with pytest.raises(LogOfflineError, match=f"partitions 1 of topic '{topic}' have no leader"):
            log.tick(120_000, {"a:8080": None})
        with pytest.raises(LogOfflineError):
            log.lead(0)
        cluster.topics = leaders
        log.lead(0)
    assert written.call_count == 1


def test_the_reading_end_of_the_commands_needs_the_command_topic_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log, "Reader", Mock())
    KafkaCommandLog(SETTINGS)
    assert cluster.asked == ["trimtab-commands"]
