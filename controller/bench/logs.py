"""The log that a measurement reads: topics of its own for each form of records, in Kafka or in Pulsar."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from controller.adapters.kafka.specs import create_topics as create_in_kafka
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.topics import create_topics as create_in_pulsar
from controller.log.kafka.log import KafkaLog
from controller.log.port import Log
from controller.log.pulsar.log import PulsarLog
from controller.log.ticks import MetricsLog
from controller.settings.log import KafkaLogSettings
from controller.settings.pulsar_log import PulsarLogSettings
from controller.simulator.encode import KeyValue

_TOPICS: Final = ("metrics", "results", "commands", "journal", "dead_letters", "summaries")


class MeasuredLog(Protocol):
    """The log of one form of records, in topics that exist."""

    @property
    def section(self) -> Mapping[str, Any]:
        """[log] of the settings."""
        ...

    def publish(self, records: Sequence[KeyValue], interval: int, roster: Mapping[str, str | None]) -> None:
        """Write the *records* of *interval*, then its ticks with *roster*."""
        ...


class LogServer(Protocol):
    """Where logs are made."""

    def log(self, form: str, partitions: int, cluster: str) -> MeasuredLog:
        """The log for the records of *form* about *cluster*; *partitions*: of its topics."""
        ...


def _names(form: str) -> dict[str, str]:
    return {f"{name}_topic": f"{form}-{name}" for name in _TOPICS}


@dataclass(frozen=True, slots=True)
class InKafka:
    """LogServer: the Kafka at *bootstrap*."""

    bootstrap: str

    def log(self, form: str, partitions: int, cluster: str) -> MeasuredLog:
        """See LogServer."""
        settings = KafkaLogSettings.model_validate(
            {"bootstrap": self.bootstrap, "partitions": partitions, **_names(form)}
        )
        create_in_kafka(settings)
        return _KafkaLog(settings, cluster)


@dataclass(frozen=True, slots=True)
class InPulsar:
    """LogServer: the Pulsar with these addresses, a namespace for each form."""

    service_url: str
    admin_url: tuple[str, ...]

    def log(self, form: str, partitions: int, cluster: str) -> MeasuredLog:
        """See LogServer."""
        settings = PulsarLogSettings(
            service_url=self.service_url,
            admin_url=self.admin_url,
            namespace=f"public/{cluster}-{form}",
            partitions=partitions,
        )
        with closing(LogConnection(settings)) as connection:
            create_in_pulsar(connection)
        return _PulsarLog(settings, cluster)


@dataclass(frozen=True, slots=True)
class _KafkaLog:
    settings: KafkaLogSettings
    cluster: str

    @property
    def section(self) -> Mapping[str, Any]:
        return {"kind": "kafka", "kafka": self.settings}

    def publish(self, records: Sequence[KeyValue], interval: int, roster: Mapping[str, str | None]) -> None:
        _write(KafkaLog(self.settings, cluster=self.cluster), self.cluster, records, interval, roster)


@dataclass(frozen=True, slots=True)
class _PulsarLog:
    settings: PulsarLogSettings
    cluster: str

    @property
    def section(self) -> Mapping[str, Any]:
        return {"kind": "pulsar", "pulsar": self.settings}

    def publish(self, records: Sequence[KeyValue], interval: int, roster: Mapping[str, str | None]) -> None:
        _write(PulsarLog(self.settings, cluster=self.cluster), self.cluster, records, interval, roster)


def _write(
    log: Log, cluster: str, records: Sequence[KeyValue], interval: int, roster: Mapping[str, str | None]
) -> None:
    with closing(MetricsLog(log, cluster=cluster)) as metrics:
        metrics.publish(records)
        metrics.tick(interval, roster)
