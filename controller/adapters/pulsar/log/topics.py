"""The log's namespace and topics: created where they do not exist, and checked where they do.

Every topic is a partitioned one; the journal and the dead letters have one partition.  A process that may not use the
admin API works all the same once somebody has created the topics.
"""

import json
import logging
import re
from typing import Any, Final

import pulsar

from controller.adapters.pulsar.http import PulsarError, PulsarHttp
from controller.adapters.pulsar.log.client import LARGEST_TOLD, log_http, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.errors import failure
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

log = logging.getLogger(__name__)

#: The subscription whose position says what the journal still needs: Pulsar keeps all that it has not acknowledged.
RETENTION_SUBSCRIPTION: Final = "trimtab-journal"
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_DENIED: Final = frozenset({401, 403})
_PARTITION: Final = re.compile(r"-partition-([0-9]{1,9})\Z")
#: The lists of producers and consumers may be long; older brokers send them all the same.
_STATS_OF_PARTITIONS: Final = {"perPartition": "true", "excludePublishers": "true", "excludeConsumers": "true"}


class LogAdmin(PulsarHttp):
    """The admin API of the log's Pulsar: its namespace and topics.  Every call raises PulsarError."""

    section = "[log.pulsar]"
    largest_answer = LARGEST_TOLD

    def policies(self, namespace: str) -> dict[str, Any]:
        """The policies of *namespace*, under Pulsar's names."""
        return self._object(f"/admin/v2/namespaces/{namespace}")

    def version(self) -> bytes:
        """The brokers' release; whoever they know may ask for it."""
        return self._call("GET", "/admin/v2/brokers/version", {})

    def create_namespace(self, namespace: str, policies: dict[str, Any]) -> None:
        """Create *namespace* with *policies*."""
        self._call("PUT", f"/admin/v2/namespaces/{namespace}", {}, body=json.dumps(policies).encode())

    def create_topic(self, namespace: str, name: str, partitions: int) -> None:
        """Create a partitioned topic."""
        path = f"/admin/v2/persistent/{namespace}/{name}/partitions"
        self._call("PUT", path, {}, body=str(partitions).encode())

    def cursors(self, namespace: str, name: str) -> tuple[str, ...]:
        """The names of the subscriptions of a topic."""
        return self._names(f"/admin/v2/persistent/{namespace}/{name}/subscriptions")

    def active_consumers(self, namespace: str, name: str, subscription: str) -> dict[int, str]:
        """Partition of a topic -> the consumer that a Failover *subscription* sends its messages to; where it has one.

        Whoever may consume may ask.  Pulsar: SubscriptionStats.activeConsumerName
        """
        path = f"/admin/v2/persistent/{namespace}/{name}/partitioned-stats"
        consumers = dict[int, str]()
        for topic, stats in _field(self._object(path, query=_STATS_OF_PARTITIONS), "partitions").items():
            consumer = _field(_field(stats, "subscriptions"), subscription).get("activeConsumerName")
            number = _PARTITION.search(topic)
            if isinstance(consumer, str) and consumer and number:
                consumers[int(number[1])] = consumer
        return consumers


def _field(answer: Any, name: str) -> dict[str, Any]:
    """The object *name* in what a broker told; empty where there is none."""
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, dict) else {}


def log_admin(settings: PulsarLogSettings) -> LogAdmin:
    """The admin API of *settings*."""
    return log_http(settings, api=LogAdmin)


def ticks_control(settings: PulsarLogSettings) -> str:
    """The topic that says what the leading collector is about to tick; one partition."""
    return f"{settings.metrics_topic}-control"


def executors_control(settings: PulsarLogSettings) -> str:
    """The topic that says what executors have begun and answered; as many partitions as the command topic."""
    return f"{settings.commands_topic}-control"


def specs(settings: PulsarLogSettings) -> dict[str, int]:
    """Short name -> number of partitions of every topic, where trimtab creates it."""
    many = settings.partitions
    return {
        settings.metrics_topic: many,
        settings.results_topic: many,
        settings.commands_topic: many,
        settings.dead_letters_topic: 1,
        settings.journal_topic: 1,
        settings.summaries_topic: 1,
        settings.election_topic: 1,
        ticks_control(settings): 1,
        executors_control(settings): many,
    }


def create_topics(connection: LogConnection, *names: str) -> dict[str, int]:
    """Create those of the topics *names* (short names), or of all, that do not exist; returns their partitions.

    SettingsError where the namespace cannot hold a log; TrimtabError where Pulsar cannot be reached or refuses.
    """
    partitions = {name: number for name, number in specs(connection.log).items() if not names or name in names}
    _check_namespace(connection.log)
    existing = {name: connection.partitions(name) for name in partitions}
    for name in [name for name, number in existing.items() if not number]:
        _create_topic(connection.log, name, partitions[name])
        existing[name] = connection.existing(name, is_created=True)
    for name, number in existing.items():
        if (
            partitions[name] == 1
            and number != 1
            and name in (connection.log.journal_topic, connection.log.election_topic, ticks_control(connection.log))
        ):
            raise SettingsError(
                f"{where(connection.log, name)} has {number} partitions, but must have exactly one, "
                f"because its records are totally ordered; delete it or choose another name, and "
                f"trimtab creates the topic"
            )
    return existing


def namespace_policies(settings: PulsarLogSettings) -> dict[str, Any]:
    """The policies of the namespace, where trimtab creates it."""
    return {
        "deduplicationEnabled": True,
        "retention_policies": {"retentionTimeInMinutes": settings.retention_hours * 60, "retentionSizeInMB": -1},
        "inactive_topic_policies": {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": False,
        },
        # 0 is never, whatever the brokers' defaults are: commands wait for executors, and the journal for a leader.
        "message_ttl_in_seconds": 0,
        "subscription_expiration_time_minutes": 0,
        # -1 is no limit: one whose policy is eviction would give up the journal.
        "backlog_quota_map": {
            "destination_storage": {"limitSize": -1, "limitTime": -1, "policy": "producer_request_hold"}
        },
        # A topic that somebody misspells is not created.
        "autoTopicCreationOverride": {"allowAutoTopicCreation": False},
    }


def _check_namespace(settings: PulsarLogSettings) -> None:
    """Create the namespace where it does not exist; SettingsError where it does not deduplicate."""
    name, place = settings.namespace, where(settings)
    admin = log_admin(settings)
    try:
        policies = _policies(admin, settings)
    except PulsarError as error:
        if error.status in _DENIED:
            _check_credentials(admin, place)
            log.debug("%s: cannot read the policies of %s, so they are not checked: %s", place, name, error)
            return
        raise TrimtabError(f"{place}: namespace {name}: {error}") from error
    finally:
        admin.close()
    if policies is not None and policies.get("deduplicationEnabled") is not True:
        raise SettingsError(
            f"{place}: namespace {name} does not deduplicate messages, so a record could be written twice: run"
            f" `pulsar-admin namespaces set-deduplication {name} --enable`, or name a namespace in [log.pulsar] that"
            " does not exist, and trimtab creates it"
        )


def _check_credentials(admin: LogAdmin, place: str) -> None:
    """AccessDeniedError where the brokers do not know who calls: the client library would only get no answer."""
    try:
        admin.version()
    except PulsarError as error:
        if error.status in _DENIED:
            raise failure(place, pulsar.AuthenticationError(str(error)), operation="consume") from error


def _policies(admin: LogAdmin, settings: PulsarLogSettings) -> dict[str, Any] | None:
    name = settings.namespace
    try:
        return admin.policies(name)
    except PulsarError as error:
        if error.status != _NOT_FOUND:
            raise
    try:
        admin.create_namespace(name, namespace_policies(settings))
        log.info("created the namespace %s", name)
    except PulsarError as error:
        if error.status == _NOT_FOUND:
            tenant = name.partition("/")[0]
            raise SettingsError(
                f"{where(settings)}: namespace {name} cannot be created: tenant {tenant} does not exist: run"
                f" `pulsar-admin tenants create {tenant}`, or name another namespace in [log.pulsar]"
            ) from error
        if error.status in _DENIED:
            raise AccessDeniedError(
                f"{where(settings)}: namespace {name} does not exist, and these credentials may not create it: an"
                f" administrator runs `pulsar-admin namespaces create {name}` (docs/pulsar_log.md)"
            ) from error
        if error.status != _CONFLICT:  # else another process came first
            raise
    return admin.policies(name)


def _create_topic(settings: PulsarLogSettings, name: str, partitions: int) -> None:
    admin = log_admin(settings)
    try:
        admin.create_topic(settings.namespace, name, partitions)
    except PulsarError as error:
        if error.status in _DENIED:
            raise AccessDeniedError(
                f"{where(settings, name)} does not exist, and these credentials may not create it: an administrator"
                f" runs `pulsar-admin topics create-partitioned-topic {settings.namespace}/{name} -p {partitions}`"
                " (docs/pulsar_log.md)"
            ) from error
        if error.status != _CONFLICT:  # else another process came first
            raise TrimtabError(f"{where(settings, name)} cannot be created: {error}") from error
    finally:
        admin.close()
