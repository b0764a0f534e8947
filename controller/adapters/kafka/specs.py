"""The topics of a log in Kafka, as trimtab creates them."""

from collections.abc import Mapping
from typing import Final

from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.settings.log import KafkaLogSettings

_HOUR_MS: Final = 3_600_000
#: Of a batch of records, bytes: Kafka's own default, whatever the brokers' is.  trimtab writes none that is longer.
LARGEST_BATCH: Final = (1 << 20) + 12
#: Of every topic.  Brokers convert other codecs to zstd, the only one that librdkafka unpacks within a limit.
_BOUNDED: Final[Mapping[str, str]] = {"compression.type": "zstd", "max.message.bytes": str(LARGEST_BATCH)}


def create_topics(settings: KafkaLogSettings, *names: str) -> dict[str, int]:
    """Create those of the topics *names*, or of all, that do not exist yet; returns their numbers of partitions.

    A process names what it uses: it needs no right to anything else, and does not depend on it.
    """
    specs = [spec for spec in topic_specs(settings) if not names or spec.name in names]
    return ensure_topics(settings.bootstrap, specs, settings.client)


def topic_specs(settings: KafkaLogSettings) -> list[TopicSpec]:
    """The topics as trimtab creates them."""
    copies = settings.replication_factor
    # With one broker down all others hold every acknowledged record.
    safe = {**_BOUNDED, "min.insync.replicas": str(max(1, copies - 1))}
    retained = {**safe, "retention.ms": str(settings.retention_hours * _HOUR_MS)}
    # Of the journal and the election trimtab deletes what it needs no more.
    journal = {**safe, "retention.ms": "-1", "retention.bytes": "-1"}
    summaries = {**safe, "retention.ms": str(settings.summaries_retention_hours * _HOUR_MS)}
    many, one = settings.partitions, 1
    topics = (
        (settings.metrics_topic, many, retained),
        (settings.results_topic, many, retained),
        (settings.commands_topic, many, retained),
        (settings.dead_letters_topic, one, retained),
        (settings.journal_topic, one, journal),
        (settings.summaries_topic, one, summaries),
        (settings.election_topic, one, journal),
    )
    return [
        TopicSpec(name=name, partitions=partitions, replication_factor=copies, config=config)
        for name, partitions, config in topics
    ]
