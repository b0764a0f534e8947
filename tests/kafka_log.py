"""A log in Kafka, in topics of a test's own."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final
from uuid import uuid4

from controller.adapters.kafka.client import NO_CLIENT, PATIENCE_SECONDS, Client
from controller.adapters.kafka.specs import create_topics
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.log.kafka.log import KafkaLog
from controller.log.kafka.offsets import PartitionOffsets
from controller.log.kafka.reader import KafkaReader
from controller.log.port import LogRecord
from controller.log.ticks import CollectorLog, MetricsLog
from controller.model.journal import JournalEntry
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings

PARTITIONS: Final = 2
ROLES: Final = ("metrics", "results", "commands", "journal", "dead_letters", "summaries", "election")


def named_topics(bootstrap: str, partitions: int = PARTITIONS) -> KafkaLogSettings:
    """Topics of the test's own, which do not exist yet."""
    name = uuid4().hex[:8]
    topics = {f"{role}_topic": f"{role}-{name}" for role in ROLES}
    return KafkaLogSettings.model_validate({"bootstrap": bootstrap, "partitions": partitions, **topics})


def own_topics(bootstrap: str, partitions: int = PARTITIONS) -> KafkaLogSettings:
    """Topics of the test's own."""
    settings = named_topics(bootstrap, partitions)
    create_topics(settings)
    return settings


def as_toml(log: KafkaLogSettings) -> str:
    """The keys of [log.kafka]."""
    topics = "\n".join(f'{role}_topic = "{getattr(log, f"{role}_topic")}"' for role in ROLES)
    numbers = f"partitions = {log.partitions}\nreplication_factor = {log.replication_factor}"
    return f'bootstrap = "{log.bootstrap}"\n{numbers}\n{topics}\n'


def journal_in(log: KafkaLogSettings, *, cluster: str) -> LogJournal:
    return LogJournal(KafkaLog(log, cluster=cluster), cluster=cluster)


def read_journal(log: KafkaLogSettings, *, cluster: str) -> list[JournalEntry]:
    with closing(KafkaLog(log, cluster=cluster)) as connected:
        return list(JournalReader(connected, cluster).entries())


def inbox_in(log: KafkaLogSettings, executor: ExecutorSettings, *, cluster: str) -> Inbox:
    return Inbox(KafkaLog(log, cluster=cluster, executor=executor), group=executor.group, cluster=cluster)


def collector_in(log: KafkaLogSettings, *, cluster: str) -> CollectorLog:
    return CollectorLog(KafkaLog(log, cluster=cluster), cluster=cluster)


def metrics_in(log: KafkaLogSettings, *, cluster: str) -> MetricsLog:
    return MetricsLog(KafkaLog(log, cluster=cluster), cluster=cluster)


def read_all(
    bootstrap: str,
    topic: str,
    partition: int,
    first: int = 0,
    *,
    client: Client = NO_CLIENT,
    seconds: float = PATIENCE_SECONDS,
) -> Iterator[LogRecord]:
    """What a consumer of committed records sees of a partition now, from the offset *first* on."""
    offsets = PartitionOffsets(bootstrap, client)
    with closing(offsets):
        end = offsets.stable_end(topic, partition)
        reader = KafkaReader(
            bootstrap, client, topic, {partition: first}, is_whole=False, offsets=offsets, seconds=seconds
        )
        with closing(reader):
            yield from reader.until({partition: end})
