"""How far the log in Kafka is ahead of a query: by the offsets of its partitions, and the ticks among them."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, TypeAlias

from controller.log.kafka.log import KafkaLog
from controller.log.port import LogTopic
from controller.log.ticked import PARTITION, intervals_ticked
from controller.model.backlog import Backlog
from controller.settings.log import KafkaLogSettings

#: LogTopic -> partition -> offset of the next record to read.
Offsets: TypeAlias = Mapping[str, Mapping[int, int]]

_TOPICS: Final[tuple[LogTopic, ...]] = ("metrics", "results")


def offsets_of(stored: Any) -> Offsets | None:
    """How far a query has come, as *stored* in Spark's checkpoint; None where nothing is."""
    if stored is None:
        return None
    return {topic: {int(partition): at for partition, at in of.items()} for topic, of in stored.items()}


def backlog(
    settings: KafkaLogSettings, *, cluster: str, period_ms: int, read: Offsets | None, now_ms: int, limit: int
) -> Backlog:
    """The backlog of a query that has *read* so far, or, where that is None, begins at ``start_at``.

    Ticks are counted only where there may be more than *limit*.  Raises TrimtabError where Kafka does not answer.
    """
    if read is None and settings.start_at == "latest":
        return Backlog(intervals=0, offsets=0)
    start_ms = settings.start_ms(now_ms) if read is None else None
    with closing(KafkaLog(settings, cluster=cluster)) as log:
        ahead: dict[tuple[LogTopic, int], tuple[int, int]] = {}
        for topic in _TOPICS:
            at = {} if read is None else read.get(log.name(topic), {})
            for partition, ends in log.ends(topic, start_ms).items():
                first = max(at.get(partition, ends.first), ends.first)
                ahead[topic, partition] = min(first, ends.end), ends.end
        first, end = ahead.get(("results", PARTITION), (0, 0))
        intervals = end - first
        if intervals > limit:
            intervals = intervals_ticked(log, first, cluster=cluster, period_ms=period_ms)
    return Backlog(intervals=intervals, offsets=sum(end - first for first, end in ahead.values()))
