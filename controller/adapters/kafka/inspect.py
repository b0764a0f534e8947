"""Reads Kafka without effect on other clients: its topics, its clock, and its records, newest first."""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, Client
from controller.adapters.kafka.offsets import ends_of
from controller.adapters.kafka.reader import KafkaRecord, read_all
from controller.adapters.kafka.words import failure, silence, text
from controller.adapters.network.calls import side_by_side
from controller.model.errors import TrimtabError

#: Offsets read at a time from a partition's end: at first, and at most.
WINDOWS: Final = (256, 16_384)
#: Where so many bytes lay in a window, the next one is not larger.
_MANY_BYTES: Final = 8 << 20
#: So many bytes of a window are kept at a time; what lies before them is read again, in smaller windows.
_MOST_KEPT: Final = 64 << 20
_ANSWER_SECONDS: Final = 5.0
#: Of groups with the same ending so many are looked at.
_MOST_GROUPS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic in Kafka as it is."""

    partitions: int
    replication: int
    #: Under Kafka's names; empty where it could not be read.
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reach:
    """How far back a partition is read: no more than so many offsets, and bytes of records, and a window."""

    offsets: int
    bytes: int
    #: Set where reading ended there, and not at the oldest record.
    is_passed: bool = False


class AppendTime(NamedTuple):
    """What Kafka's clock said between two looks at ours, all epoch ms."""

    before_ms: float
    theirs_ms: float
    after_ms: float


def topics(
    bootstrap: str, names: tuple[str, ...], *, client: Client, answer_seconds: float
) -> tuple[dict[str, TopicFacts], str]:
    """Those of the topics *names* that exist, and why their settings could not be read, "" where they could.

    Raises TrimtabError where Kafka does not answer.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client}, logger=LIBRDKAFKA_LOG)
    try:
        listed = admin.list_topics(timeout=answer_seconds).topics
    except ck.KafkaException as error:
        raise silence(bootstrap, client, error) from error
    there = {name: listed[name].partitions for name in names if name in listed and listed[name].error is None}
    config: dict[str, dict[str, str]] = {}
    problem = ""
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in there]
    for resource, answer in admin.describe_configs(resources).items() if resources else ():
        try:
            entries: Any = answer.result(answer_seconds)
            config[resource.name] = {key: entry.value for key, entry in entries.items() if entry.value is not None}
        except (ck.KafkaException, TimeoutError) as error:
            problem = f"{resource.name}: {text(error) if error.args else 'no answer'}"
    return {
        name: TopicFacts(
            partitions=len(parts),
            replication=min(len(part.replicas) for part in parts.values()),
            config=config.get(name, {}),
        )
        for name, parts in there.items()
    }, problem


def groups_on(bootstrap: str, topic: str, *, ending: str, client: Client, answer_seconds: float) -> tuple[str, ...]:
    """The consumer groups whose names have this *ending* and whose members have partitions of *topic* now.

    Groups that we may not look at are missing.  Raises TrimtabError where Kafka does not list groups.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client}, logger=LIBRDKAFKA_LOG)
    try:
        listed: Any = admin.list_consumer_groups(request_timeout=answer_seconds).result(answer_seconds)
    except (ck.KafkaException, TimeoutError) as error:
        raise TrimtabError(f"Kafka at {bootstrap}: the consumer groups cannot be listed: {error}") from error
    names = sorted(each.group_id for each in listed.valid if each.group_id.endswith(ending))[:_MOST_GROUPS]
    found = []
    for name, answer in admin.describe_consumer_groups(names, request_timeout=answer_seconds).items() if names else ():
        with suppress(ck.KafkaException, TimeoutError):
            group: Any = answer.result(answer_seconds)
            if any(part.topic == topic for each in group.members for part in each.assignment.topic_partitions):
                found.append(name)
    return tuple(found)


def append_time(bootstrap: str, topic: str, *, name: str, client: Client, answer_seconds: float) -> AppendTime:
    """Kafka's clock, by a record appended to *topic* in a transaction of *name* that is aborted: nobody reads it.

    Raises TrimtabError where it cannot be appended, or gets no append time.
    """
    where = f"Kafka at {bootstrap}, topic {topic!r}"
    stamps: list[tuple[int, int]] = []
    failures: list[ck.KafkaError] = []

    def delivered(error: ck.KafkaError | None, record: ck.Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            stamps.append(record.timestamp())

    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "transactional.id": name,
        "transaction.timeout.ms": 10_000,
        "linger.ms": 0,
        "log_level": 0,
        **client,
    }
    try:
        producer = ck.Producer(config, logger=LIBRDKAFKA_LOG)
        producer.init_transactions(answer_seconds)
        producer.begin_transaction()
        producer.produce(topic, b"trimtab doctor", partition=0, on_delivery=delivered)
        before = time.time() * 1000
        producer.flush(answer_seconds)
        after = time.time() * 1000
        producer.abort_transaction(answer_seconds)
    except ck.KafkaException as error:
        raise failure(where, error, client, operation="Write", topics=[topic], transactional_id=name) from error
    if not stamps:
        if failures:
            raise failure(where, failures[0], client, operation="Write", topics=[topic])
        raise TrimtabError(f"{where}: no answer")
    kind, stamp = stamps[0]
    if kind != ck.TIMESTAMP_LOG_APPEND_TIME:
        raise TrimtabError(f"{where}: records there get no append time")
    return AppendTime(before, stamp, after)


def newest_first(
    bootstrap: str,
    topic: str,
    *,
    client: Client,
    keep: Callable[[KafkaRecord], KafkaRecord | None] = lambda record: record,
    windows: tuple[int, int] = WINDOWS,
    reach: Reach | None = None,
) -> Iterator[KafkaRecord]:
    """The committed records of *topic*, from the present end backwards, by their append times.

    *keep* says what is kept of a record while its window is read, None: nothing; it is called from several threads.
    Reads offsets of a partition in *windows* that grow from the first size to the second, so that a caller who stops
    soon reads little; never farther back than *reach*.  Raises TrimtabError.
    """
    ends = _ends(bootstrap, topic, client)

    def window(partition: int, start: int, end: int) -> tuple[_Kept, int]:
        return _window(_before(end, read_all(bootstrap, topic, partition, start, client)), keep)

    stops = {each: low if reach is None else max(low, end - reach.offsets) for each, (low, end) in ends.items()}
    # All partitions at once: each takes connections of its own, and the merge below begins with the newest of each.
    newest = side_by_side(
        {
            each: partial(window, each, max(stops[each], end - windows[0]), end)
            for each, (_, end) in ends.items()
            if end > stops[each]
        },
    )

    def backwards(partition: int) -> Iterator[KafkaRecord]:
        (low, end), stop = ends[partition], stops[partition]
        (size, largest), read = windows, 0
        while end > stop:
            start = max(stop, end - size)
            first = newest.pop(partition, None)
            kept, here = window(partition, start, end) if first is None else first.result()
            yield from kept.newest_first()
            if kept.since is not None:
                start, size = kept.since, max(windows[0], size // 4)
            end, read = start, read + here
            size = size if here > _MANY_BYTES else min(4 * size, largest)
            if reach is not None and end > low and (end == stop or read > reach.bytes):
                reach.is_passed = True
                return

    yield from heapq.merge(*map(backwards, sorted(ends)), key=lambda record: -record.timestamp_ms)


def _ends(bootstrap: str, topic: str, client: Client) -> dict[int, tuple[int, int]]:
    """Partition of *topic* -> its oldest offset, and the one behind its newest record."""
    where = f"Kafka at {bootstrap}, topic {topic!r}"
    config = {"bootstrap.servers": bootstrap, "group.id": "trimtab-reader", "log_level": 0, **client}
    consumer = ck.Consumer(config, logger=LIBRDKAFKA_LOG)
    try:
        found = consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
        if found.error is not None:
            raise failure(where, found.error, client, operation="Read", topics=[topic])
        return {partition: ends_of(consumer, topic, partition, _ANSWER_SECONDS) for partition in found.partitions}
    except ck.KafkaException as error:
        raise failure(where, error, client, operation="Read", topics=[topic], group="trimtab-reader") from error
    finally:
        consumer.close()


def _window(records: Iterator[KafkaRecord], keep: Callable[[KafkaRecord], KafkaRecord | None]) -> "tuple[_Kept, int]":
    """What is kept of *records*, and how many bytes they have."""
    kept, size = _Kept(), 0
    for record in records:
        size += len(record.value)
        if (wanted := keep(record)) is not None:
            kept.add(wanted)
    return kept, size


class _Kept:
    """What is kept of a window: the newest records, no more than _MOST_KEPT bytes of them, or one."""

    def __init__(self) -> None:
        self._records, self._bytes = deque[KafkaRecord](), 0
        #: The offset of the oldest one, where older ones had no room; None: all are there.
        self.since: int | None = None

    def add(self, record: KafkaRecord) -> None:
        self._records.append(record)
        self._bytes += len(record.value)
        while self._bytes > _MOST_KEPT and len(self._records) > 1:
            self._bytes -= len(self._records.popleft().value)
            self.since = self._records[0].offset

    def newest_first(self) -> Iterator[KafkaRecord]:
        while self._records:
            yield self._records.pop()


def _before(end: int, records: Iterator[KafkaRecord]) -> Iterator[KafkaRecord]:
    """Those of *records*, which are in the order of offsets, before the offset *end*."""
    for record in records:
        if record.offset >= end:
            return
        yield record
