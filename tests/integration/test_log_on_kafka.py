"""The port of the log on a real Kafka."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from controller.adapters.kafka.client import PATIENCE_SECONDS
from controller.adapters.kafka.names import executor_group, scope_writer
from controller.lab.servers import KafkaServer
from controller.log.kafka.claims import KafkaClaims
from controller.log.kafka.log import KafkaLog
from controller.log.kafka.scope import KafkaScope
from controller.log.port import LogTopic, Out, Scope, Start
from controller.model.errors import JournalError, StateError, TrimtabError
from controller.settings.trimtab_toml import ExecutorSettings
from tests.contracts.bytes_log import (
    GROUP,
    JOURNAL,
    BytesLogContract,
    ClaimsContract,
    FencedContract,
    GrowingTopicContract,
    HungExecutorContract,
    answers,
    append,
    backwards,
    commands,
    decision,
    executor,
    issue,
    line,
    metrics,
    open_fence,
    rest,
    take,
    values,
)
from tests.kafka_log import named_topics

pytestmark = pytest.mark.integration


class _Log(KafkaLog):
    """With transactional ids of the test's own, and members that can be expelled."""

    members: list[KafkaClaims]
    suffix: str

    def fence(self, scope: Scope) -> KafkaScope:
        return super().fence(replace(scope, name=f"{scope.name}-{self.suffix}"))

    def claims(self, group: str) -> KafkaClaims:
        self.members.append(super().claims(group))
        return self.members[-1]


class _Place:
    partitions, atomic, keys = 2, True, True
    #: How long the logs that are opened next wait for what has to come.
    seconds = PATIENCE_SECONDS

    def __init__(self, bootstrap: str) -> None:
        self.cluster, self.settings = uuid4().hex, named_topics(bootstrap, self.partitions)
        self._logs: list[_Log] = []
        self._members: list[KafkaClaims] = []

    def log(self) -> KafkaLog:
        executor = ExecutorSettings(session_timeout_seconds=6)
        log = _Log(self.settings, cluster=self.cluster, executor=executor, seconds=self.seconds)
        log.members, log.suffix = self._members, self.cluster
        self._logs.append(log)
        return log

    def add_partition(self, topic: LogTopic) -> None:
        name = self._logs[0].name(topic)
        admin = AdminClient({"bootstrap.servers": self.settings.bootstrap})
        [added] = admin.create_partitions([NewPartitions(name, self.partitions + 1)]).values()
        added.result(60)

    def expel(self) -> None:
        for each in self._members:
            each.consumer.unsubscribe()

    def close(self) -> None:
        for each in self._logs:
            each.close()


@pytest.fixture
def place(kafka: KafkaServer) -> Iterator[_Place]:
    with closing(_Place(kafka.bootstrap)) as opened:
        yield opened


class TestKafkaLog(BytesLogContract, GrowingTopicContract, FencedContract, ClaimsContract, HungExecutorContract):
    """Topics of their own for each test."""


def open_transaction(place: _Place, topic: str, *, seconds: float = 60.0, name: str | None = None) -> ck.Producer:
    """A transaction of *name* that lies open in partition 0 of *topic*; the brokers abort it after *seconds*."""
    producer = ck.Producer(
        {
            "bootstrap.servers": place.settings.bootstrap,
            "transactional.id": name or uuid4().hex,
            "transaction.timeout.ms": round(1000 * seconds),
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    return producer


def test_the_rest_has_what_was_acknowledged_behind_a_strangers_open_transaction(place: _Place) -> None:
    log = place.log()
    log.partitions("commands")
    stranger = open_transaction(place, log.name("commands"))
    with open_fence(place) as fenced:
        fenced.append([decision(1)], commands(1, 2))
    ending = threading.Timer(1.0, stranger.abort_transaction)
    ending.start()
    assert values(rest(log, "commands")) == [line(1), line(2)]
    ending.join()


def test_where_a_transaction_stays_open_reading_fails_rather_than_end_early(place: _Place) -> None:
    place.seconds = 3.0
    log = place.log()
    log.partitions("commands")
    stranger = open_transaction(place, log.name("commands"))
    append(log, *commands(1))
    with pytest.raises(TrimtabError, match=f"{log.name('commands')}.* a transaction has been open since offset 0"):
        rest(log, "commands")
    # Whoever only looks at the end sees what is there.
    assert list(log.read_backwards("commands", 0, None, 10)) == []
    stranger.abort_transaction()
    assert backwards(log, "commands", 0, 10) == [line(1)]


def test_a_holder_that_cannot_see_all_there_is_decides_nothing(place: _Place) -> None:
    place.seconds = 3.0
    log = place.log()
    log.partitions("journal")
    stranger = open_transaction(place, log.name("journal"))
    with open_fence(place) as fenced:
        for about in (None, 10):
            with pytest.raises(JournalError, match="a transaction has been open"):
                list(fenced.history(about))
        stranger.abort_transaction()
        assert list(fenced.history()) == []


def test_what_a_holder_left_open_does_not_hold_up_the_next_one(place: _Place) -> None:
    log = place.log()
    log.partitions("journal", "commands")
    open_transaction(place, log.name("journal"), name=scope_writer(f"{JOURNAL.name}-{place.cluster}"))
    began = time.monotonic()
    with open_fence(place) as fenced:
        assert list(fenced.history()) == []
        fenced.append([decision(1)], commands(1))
    assert values(rest(log, "journal")) == [line(1)]
    assert time.monotonic() - began < 10


def test_marks_and_aborted_records_are_not_read(place: _Place) -> None:
    for number in range(3):
        with open_fence(place) as fenced:
            with pytest.raises(ValueError, match="no"):
                fenced.append([decision(100 + number)], commands(100), refuse)
            fenced.append([decision(number)], commands(number))
    log = place.log()
    wanted = [line(each) for each in range(3)]
    assert values(rest(log, "journal")) == backwards(log, "journal", 0, 1) == wanted
    assert values(rest(log, "journal", Start(last=True), 0)) == [line(2)]
    assert values(rest(log, "commands")) == wanted
    with open_fence(place) as fenced:
        assert values(list(fenced.history(1)))[-1:] == [line(2)]


def refuse() -> None:
    raise ValueError("no")


def test_a_state_may_be_any_bytes(place: _Place) -> None:
    issue(place, 1)
    state = bytes(range(256)) * 8
    with executor(place) as claims:
        [taken] = take(claims, 1)
        claims.claim(taken.partition).store(state)
    with executor(place) as claims:
        [taken] = take(claims, 1)
        assert claims.claim(taken.partition).state == state
        claims.claim(taken.partition).finish(b"", answers(taken.partition, 1), taken.position)
        assert claims.claim(taken.partition).state == b""


def test_metadata_of_offsets_that_no_executor_wrote_are_named(place: _Place) -> None:
    issue(place, 1)
    group = executor_group(GROUP, place.cluster)
    stranger = ck.Consumer({"bootstrap.servers": place.settings.bootstrap, "group.id": group})
    stranger.commit(
        offsets=[ck.TopicPartition(place.settings.commands_topic, 0, 0, "von Hand \u2713")], asynchronous=False
    )
    stranger.close()
    with executor(place) as claims:
        [taken] = take(claims, 1)
        with pytest.raises(StateError, match=f"group '{group}', partition 0, is not an executor's state"):
            assert claims.claim(taken.partition).state
        assert "kafka-consumer-groups --reset-offsets" in claims.remedy


def test_a_topic_that_does_not_exist_is_named(place: _Place) -> None:
    log = place.log()
    assert (log.ends("metrics"), list(log.read_backwards("metrics", 0, None, 5))) == ({}, [])
    with pytest.raises(TrimtabError, match=f"topic '{log.name('metrics')}' does not exist"):
        log.read("metrics")


def test_nothing_follows_an_append_that_failed(place: _Place) -> None:
    slow = place.settings.model_copy(update={"client": {"linger.ms": 60_000}})

    def one_and_an_error() -> Iterator[Out]:
        yield from metrics(1)
        raise ValueError("no more")

    with closing(KafkaLog(slow, cluster=place.cluster)) as log:
        with pytest.raises(ValueError, match="no more"):
            log.append(one_and_an_error(), within_seconds=30)
        append(log, *metrics(2))
        assert values(rest(log, "metrics")) == [line(2)]
