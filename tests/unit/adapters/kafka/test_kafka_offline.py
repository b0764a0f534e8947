"""Partitions without a leader, and topics that a process does not use: what counts, and what does not."""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from controller.adapters.kafka import topics as kafka_topics
from controller.adapters.kafka.client import PATIENCE_SECONDS
from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.kafka.writer import Producer
from controller.log.dead_letters import DeadLetterLog
from controller.log.kafka.log import KafkaLog
from controller.log.port import Out
from controller.log.ticks import CollectorLog, MetricsLog
from controller.model.errors import LogOfflineError, TrimtabError
from controller.settings.log import KafkaLogSettings
from tests.contracts.bytes_log import TICKS

SETTINGS = KafkaLogSettings(bootstrap="localhost:1")


class Cluster:
    """Topic -> the leader of each partition, -1 for none; and what was to be created."""

    def __init__(self, topics: Mapping[str, Iterable[int]]) -> None:
        self.topics = {name: list(leaders) for name, leaders in topics.items()}
        self.asked: list[str] = []
        #: Looks until every partition has a leader; None: those without one stay so.
        self.leads_after: int | None = None

    def list_topics(self, topic: str | None = None, timeout: float = 0.0) -> SimpleNamespace:
        assert timeout > 0
        if self.leads_after is not None:
            self.leads_after -= 1
            if self.leads_after < 0:
                self.topics = {name: [1] * len(leaders) for name, leaders in self.topics.items()}
        names = [topic] if topic else self.topics
        return SimpleNamespace(topics={name: self._topic(name) for name in names})

    def _topic(self, name: str) -> SimpleNamespace:
        leaders = self.topics.get(name, [])
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate(leaders)}
        error = None if leaders else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(error=error, partitions=partitions)

    def create_topics(self, new: list[Mock], *, request_timeout: float) -> dict[str, Mock]:
        assert request_timeout == PATIENCE_SECONDS
        for each in new:
            self.asked.append(each.topic)
            self.topics[each.topic] = [1] * each.num_partitions
        return {each.topic: Mock() for each in new}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster({})
    for name in ("AdminClient", "ck.Producer"):
        module = "topics" if name == "AdminClient" else "writer"
        monkeypatch.setattr(f"controller.adapters.kafka.{module}.{name}", Mock(return_value=made))
    monkeypatch.setattr(kafka_topics, "_LEADERS_SECONDS", 0.0)
    monkeypatch.setattr("controller.adapters.kafka.writer._LEADER_SECONDS", 0.0)
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


def test_partitions_whose_broker_stood_still_are_waited_for_until_they_have_their_leader_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.adapters.kafka.writer._LEADER_SECONDS", 30.0)
    cluster.topics, cluster.leads_after = {"metrics": [-1, -1]}, 3
    assert Producer("localhost:1").partitions("metrics") == {"metrics": 2}
    assert cluster.leads_after == -1, "it looked again until then, and no longer"


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
        (lambda log: CollectorLog(log, cluster="lab"), {"trimtab-metrics", "trimtab-results"}),
        (lambda log: MetricsLog(log, cluster="lab"), {"trimtab-metrics", "trimtab-results"}),
        (DeadLetterLog, {"trimtab-dead-letters"}),
    ],
)
def test_each_end_of_the_log_creates_the_topics_that_it_uses_and_needs_no_other(
    cluster: Cluster, kind: Callable[[KafkaLog], object], uses: set[str]
) -> None:
    kind(KafkaLog(SETTINGS, cluster="lab"))
    assert set(cluster.asked) == uses


def test_nothing_is_appended_while_a_partition_of_it_is_offline_and_other_partitions_do_not_matter(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.topics = {"trimtab-metrics": [1, 1], "trimtab-results": [1, 1], "trimtab-journal": [-1]}
    monkeypatch.setattr(TransactionalProducer, "init", lambda self: setattr(self, "_producer", cluster))
    written = Mock()
    written.return_value = Mock(__enter__=Mock(return_value=Mock()), __exit__=Mock(return_value=False))
    monkeypatch.setattr(TransactionalProducer, "transaction", written)
    ticks = KafkaLog(SETTINGS, cluster="lab").fence(TICKS)
    follow = [Out("results", b"{}", partition=0), Out("metrics", b"{}", partition=0)]
    ticks.append([], follow)
    for topic in ("trimtab-metrics", "trimtab-results"):
        before = cluster.topics[topic]
        cluster.topics[topic] = [-1, 1]
        with pytest.raises(LogOfflineError, match=f"partitions 0 of topic '{topic}' have no leader"):
            ticks.append([], follow)
        cluster.topics[topic] = [1, -1]
        ticks.append([], follow)
        cluster.topics[topic] = before
    assert written.call_count == 3
