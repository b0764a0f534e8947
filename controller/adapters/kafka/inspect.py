"""Looks at Kafka without effect on other clients: its topics, its groups, and its clock."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, Client
from controller.adapters.kafka.errors import failure, silence, text
from controller.model.errors import TrimtabError

#: Of groups with the same ending so many are looked at.
_MOST_GROUPS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic in Kafka as it is."""

    partitions: int
    replication: int
    #: Under Kafka's names; empty where it could not be read.
    config: Mapping[str, str] = field(default_factory=dict)


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
    groups = []
    for name, answer in admin.describe_consumer_groups(names, request_timeout=answer_seconds).items() if names else ():
        with suppress(ck.KafkaException, TimeoutError):
            group: Any = answer.result(answer_seconds)
            if any(part.topic == topic for each in group.members for part in each.assignment.topic_partitions):
                groups.append(name)
    return tuple(groups)


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
        raise TrimtabError(f"{where}: records in it have no append time")
    return AppendTime(before, stamp, after)
