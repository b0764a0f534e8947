"""Reads the log's namespace and topics as they are, for ``trimtab doctor``; creates and changes nothing."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.log.client import partition_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.topics import RETENTION_SUBSCRIPTION, log_admin, specs
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

_NOT_FOUND: Final = 404
#: Of subscriptions with the same ending so many are looked at.
_MOST_SUBSCRIPTIONS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarLogFacts:
    """The log in Pulsar."""

    log: PulsarLogSettings
    #: Why it cannot be reached.
    error: str = ""
    #: Of the namespace, under Pulsar's names; None where there is no such namespace.
    policies: Mapping[str, Any] | None = field(default_factory=dict)
    #: Why the policies could not be read.
    policies_error: str = ""
    #: Short name -> partitions, of the topics that exist.
    topics: Mapping[str, int] = field(default_factory=dict)
    #: Whether Pulsar keeps the journal for trimtab; None where that could not be read, or there is no journal.
    journal_kept: bool | None = None


def inspect_log(log: PulsarLogSettings, *, answer_seconds: float) -> PulsarLogFacts:
    """What exists; an error instead if that could not be determined."""
    policies: Mapping[str, Any] | None = {}
    problem, has_retention = "", None
    try:
        with closing(log_admin(log)) as whole:
            admin = whole.within(answer_seconds)
            try:
                policies = admin.policies(log.namespace)
            except PulsarError as error:
                policies, problem = (None, "") if error.status == _NOT_FOUND else ({}, str(error))
            topics = {} if policies is None else _topics(log, answer_seconds)
            if log.journal_topic in topics and not problem:
                has_retention = RETENTION_SUBSCRIPTION in admin.cursors(
                    log.namespace, partition_name(log.journal_topic, 0)
                )
    except TrimtabError as error:
        return PulsarLogFacts(log=log, error=str(error))
    return PulsarLogFacts(log=log, policies=policies, policies_error=problem, topics=topics, journal_kept=has_retention)


def subscriptions_on(log: PulsarLogSettings, topic: str, *, ending: str, answer_seconds: float) -> tuple[str, ...]:
    """The Failover subscriptions of *topic* whose names have this *ending* and that have a consumer now.

    Raises TrimtabError where the brokers do not tell them.
    """
    with closing(log_admin(log)) as whole:
        admin = whole.within(answer_seconds)
        names = admin.cursors(log.namespace, partition_name(topic, 0))
        own_names = sorted(name for name in names if name.endswith(ending))[:_MOST_SUBSCRIPTIONS]
        return tuple(name for name in own_names if admin.active_consumers(log.namespace, topic, name))


def _topics(log: PulsarLogSettings, seconds: float) -> dict[str, int]:
    with closing(LogConnection(log, seconds=seconds)) as connection:
        return {name: number for name in specs(log) if (number := connection.partitions(name))}
