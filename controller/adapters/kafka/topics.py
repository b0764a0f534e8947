"""Kafka's topics: which exist, whether their partitions can be written to, and how new ones are created."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
)
from confluent_kafka.cimpl import NewTopic

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, NO_CLIENT, PATIENCE_SECONDS, Client, connection_options
from controller.adapters.kafka.errors import DENIED, failure, silence, text
from controller.adapters.kafka.unreachable import why_unreachable
from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import retry
from controller.model.errors import AccessDeniedError, TrimtabError

log = logging.getLogger(__name__)

#: Healthy brokers answer within this time.
_SOON_SECONDS: Final = 3.0
_RETRY_SECONDS: Final = 0.1
#: How long ``ensure_topics`` waits for the leaders of partitions; new ones have theirs within a second.
_LEADERS_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic as trimtab creates it; records get the broker's append time."""

    name: str
    partitions: int
    replication_factor: int = 1
    #: Further options under Kafka's names (retention.ms ...).
    config: Mapping[str, str] = field(default_factory=dict)


class ExistingTopic(NamedTuple):
    """A topic that exists."""

    partitions: int
    #: Partitions that have no leader now, and so can be neither read nor written.
    offline: tuple[int, ...]


def ensure_topics(bootstrap: str, topics: Iterable[TopicSpec], client: Client = NO_CLIENT) -> dict[str, int]:
    """Create those of *topics* that do not exist; returns every one's number of partitions.

    An existing topic is not changed. Waits for partitions without a leader, and logs those that stay without one.
    Raises TrimtabError where Kafka cannot be reached or refuses.
    """
    specs = tuple(topics)
    admin = AdminClient(connection_options(bootstrap, client), logger=LIBRDKAFKA_LOG)
    existing = topics_there(admin, bootstrap, client)
    for topic, created in _create(admin, [spec for spec in specs if spec.name not in existing]).items():
        try:
            created.result(PATIENCE_SECONDS + 1)
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.TOPIC_ALREADY_EXISTS:  # another process came first
                where = (
                    f"Kafka at {bootstrap}, topic {topic!r} does not exist or is not visible to "
                    f"this user, and cannot be created"
                )
                raise failure(where, error, client, operation="Describe, or else Create,", topics=[topic]) from error
    return _wait_for_leaders(admin, bootstrap, [spec.name for spec in specs], client)


def delete_before(bootstrap: str, topic: str, partition: int, offset: int, client: Client = NO_CLIENT) -> None:
    """Delete the records of a partition before *offset*; TrimtabError where Kafka refuses or does not answer."""
    admin = AdminClient(connection_options(bootstrap, client), logger=LIBRDKAFKA_LOG)
    try:
        first = ck.TopicPartition(topic, partition, offset)
        [answer] = admin.delete_records([first], request_timeout=PATIENCE_SECONDS).values()
        answer.result(PATIENCE_SECONDS + 1)
    except (ck.KafkaException, TimeoutError) as error:
        where = f"Kafka at {bootstrap} does not delete records of topic {topic!r}"
        raise failure(where, error, client, operation="Delete", topics=[topic]) from error


def ping(bootstrap: str, timeout_seconds: float, client: Client = NO_CLIENT) -> bool:
    """True when a broker at *bootstrap* answers within *timeout_seconds*."""
    try:
        admin = AdminClient(connection_options(bootstrap, client, log_level=0))
        return bool(admin.list_topics(timeout=timeout_seconds))
    except ck.KafkaException:
        return False


def topics_there(
    client_or_admin: Any,
    bootstrap: str,
    client: Client,
    topic: str | None = None,
    answer_seconds: float = PATIENCE_SECONDS / 4,
) -> dict[str, ExistingTopic]:
    """The topics there are, or *topic* alone; AccessDeniedError, soon, where Kafka refuses us."""
    try:
        topics = client_or_admin.list_topics(topic, timeout=min(_SOON_SECONDS, answer_seconds)).topics
    except ck.KafkaException as late:
        if answer_seconds < _SOON_SECONDS:
            raise TrimtabError(f"Kafka at {bootstrap} does not answer: {text(late)}") from late
        # A refused client would wait in vain, and is told so now; for others the brokers may be slow.
        denied = silence(bootstrap, client, late)
        if isinstance(denied, AccessDeniedError):
            raise denied from late
        # Each call asks a connected broker, at random; one that lost its machine stays connected for ANSWER_MS.
        ask = partial(client_or_admin.list_topics, topic, timeout=max(_SOON_SECONDS, answer_seconds / 3))
        try:
            topics = retry(ask, answer_seconds, again_after=_is_kafkas, every=_RETRY_SECONDS).topics
        except ck.KafkaException as error:
            why = why_unreachable(bootstrap, client) or text(error)
            raise TrimtabError(f"Kafka at {bootstrap} cannot be reached: {why}") from error
    refused = topics[topic].error if topic is not None and topic in topics else None
    if refused is not None and refused.code() in DENIED:
        where = f"Kafka at {bootstrap}, topic {topic!r}"
        raise failure(where, refused, client, operation="Describe", topics=[str(topic)])
    return {
        name: ExistingTopic(
            len(data.partitions), tuple(sorted(each for each, part in data.partitions.items() if part.leader < 0))
        )
        for name, data in topics.items()
        if data.error is None and data.partitions
    }


def _is_kafkas(error: BaseException) -> bool:
    return isinstance(error, ck.KafkaException)


def not_writable(bootstrap: str, topics: Iterable[str], client: Client) -> list[str]:
    """Those of *topics* that *client* has no right to write to, as far as Kafka says."""
    try:
        admin = AdminClient(connection_options(bootstrap, client), logger=LIBRDKAFKA_LOG)
        named = ck.TopicCollection(sorted(topics))
        answers = admin.describe_topics(named, include_authorized_operations=True, request_timeout=_SOON_SECONDS)
        return [topic for topic, answer in answers.items() if not _may_write(answer)]
    except (ck.KafkaException, TimeoutError) as error:
        log.debug("cannot tell from Kafka at %s who may write: %s", bootstrap, text(error))
        return []


def _may_write(answer: Any) -> bool:
    try:
        operations = answer.result(_SOON_SECONDS + 1).authorized_operations
    except ck.KafkaException as error:
        if error.args[0].code() in DENIED:
            return False
        raise
    return operations is None or AclOperation.WRITE in operations


def offline_text(topic: str, there: ExistingTopic) -> str:
    """Which partitions of *topic* are offline, as a sentence for logs and errors."""
    return f"partitions {', '.join(map(str, there.offline))} of topic {topic!r} have no leader: they are offline"


def _create(admin: AdminClient, specs: Iterable[TopicSpec]) -> dict[str, Any]:
    new = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=spec.replication_factor,
            config={"message.timestamp.type": "LogAppendTime", **spec.config},
        )
        for spec in specs
    ]
    return admin.create_topics(new, request_timeout=PATIENCE_SECONDS) if new else {}


def _wait_for_leaders(admin: AdminClient, bootstrap: str, names: Sequence[str], client: Client) -> dict[str, int]:
    """Every topic's number of partitions, once all of them can be written to, or have been waited for."""
    patience, leaders = Deadline.after(PATIENCE_SECONDS), Deadline.after(_LEADERS_SECONDS)
    while True:
        topics = topics_there(admin, bootstrap, client)
        missing = [name for name in names if name not in topics]
        if missing and patience.passed:
            raise TrimtabError(f"Kafka at {bootstrap}: no topic {missing[0]!r} after {PATIENCE_SECONDS:g} s")
        offline = {name: topics[name] for name in names if name in topics and topics[name].offline}
        if not missing and (not offline or leaders.passed):
            for name, there in offline.items():
                log.warning("Kafka at %s: %s", bootstrap, offline_text(name, there))
            return {name: topics[name].partitions for name in names}
        time.sleep(0.05)
