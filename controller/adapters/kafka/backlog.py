"""How far the log in Kafka is ahead of a query: by the offsets of its partitions, and the ticks among them."""

from collections.abc import Mapping
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, Client
from controller.adapters.kafka.offsets import ends_of, offset_since
from controller.adapters.kafka.reader import read_all
from controller.adapters.kafka.words import failure
from controller.adapters.ticked import PARTITION, interval_ticked
from controller.aggregate.ticks.backlog import Backlog
from controller.settings.log import KafkaLogSettings

#: Topic -> partition -> offset of the next record to read.
Offsets = Mapping[str, Mapping[int, int]]

_ANSWER_SECONDS: Final = 5.0


def offsets_of(told: Any) -> Offsets | None:
    """How far a query has come, as Spark's checkpoint *told* it; None where that was nothing."""
    if told is None:
        return None
    return {topic: {int(partition): at for partition, at in of.items()} for topic, of in told.items()}


def backlog(
    settings: KafkaLogSettings, *, cluster: str, period_ms: int, read: Offsets | None, now_ms: int, few: int
) -> Backlog:
    """The backlog of a query that has *read* so far, or, where that is None, begins at ``start_at``.

    Ticks are counted only where there may be more than *few*.  Raises TrimtabError where Kafka does not answer.
    """
    topics = (settings.metrics_topic, settings.results_topic)
    start = settings.start_ms(now_ms) if read is None else None
    if read is None and settings.start_at == "latest":
        return Backlog(intervals=0, offsets=0)
    ahead = _ahead(settings.bootstrap, topics, settings.client, read or {}, start)
    first, end = ahead.get((settings.results_topic, PARTITION), (0, 0))
    intervals = end - first
    if intervals > few:
        intervals = _ticks(settings, cluster, period_ms, first)
    return Backlog(intervals=intervals, offsets=sum(end - first for first, end in ahead.values()))


def _ahead(
    bootstrap: str, topics: tuple[str, ...], client: Client, read: Offsets, start_ms: int | None
) -> dict[tuple[str, int], tuple[int, int]]:
    """Topic and partition -> the offset to begin at, and the one after the last."""
    config = {"bootstrap.servers": bootstrap, "group.id": "trimtab-reader", "log_level": 0, **client}
    consumer = ck.Consumer(config, logger=LIBRDKAFKA_LOG)
    found = {}
    try:
        listed = consumer.list_topics(timeout=_ANSWER_SECONDS).topics
        for topic in topics:
            for partition in listed[topic].partitions if topic in listed else ():
                low, end = ends_of(consumer, topic, partition, _ANSWER_SECONDS)
                first = read.get(topic, {}).get(partition, low)
                if start_ms is not None:
                    since = offset_since(consumer, topic, partition, start_ms, _ANSWER_SECONDS)
                    first = end if since is None else since
                found[topic, partition] = min(max(first, low), end), end
    except ck.KafkaException as error:
        raise failure(f"Kafka at {bootstrap}", error, client, operation="Read", topics=topics) from error
    finally:
        consumer.close()
    return found


def _ticks(settings: KafkaLogSettings, cluster: str, period_ms: int, first: int) -> int:
    """The number of intervals that are ticked from the offset *first* on."""
    records = read_all(settings.bootstrap, settings.results_topic, PARTITION, first, settings.client)
    found = {interval_ticked(record.value, cluster=cluster, period_ms=period_ms) for record in records}
    return len(found - {None})
