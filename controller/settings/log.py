"""[log]: where metrics are read and commands are written.  ``kind`` says which log system that is.

A new log system is a new section here, and a class with that section in the union ``LogSettings``.
"""

import re
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PositiveInt, model_validator

from controller.settings.access import KafkaPrincipals
from controller.settings.addresses import KafkaServers
from controller.settings.kafka_client import Scalar, client_options
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.section import PathText, Section
from controller.settings.start_at import StartAt, append_time_of

#: Kafka: Topic.validate
_KAFKA_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _kafka_topic(name: str) -> str:
    if not _KAFKA_TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ValueError("allowed are ASCII letters, digits and ._- in 249 characters or fewer, as in Kafka")
    return name


KafkaTopic: TypeAlias = Annotated[str, AfterValidator(_kafka_topic)]


class KafkaLogSettings(Section):
    """The log in Kafka."""

    bootstrap: KafkaServers
    """host:port[,host:port ...] of some brokers of the Kafka cluster."""
    metrics_topic: KafkaTopic = "trimtab-metrics"
    """Sweeps, load reports, states and ticks."""
    results_topic: KafkaTopic = "trimtab-results"
    """The results of commands; as many partitions as the command topic."""
    commands_topic: KafkaTopic = "trimtab-commands"
    """The commands for executors."""
    journal_topic: KafkaTopic = "trimtab-journal"
    """The decisions, with the controller's memory after each: one partition, without retention."""
    dead_letters_topic: KafkaTopic = "trimtab-dead-letters"
    """Refused records, each with the reason."""
    summaries_topic: KafkaTopic = "trimtab-summaries"
    """A summary of each interval for the page: one partition.  Without it decisions are the same."""
    election_topic: KafkaTopic = "trimtab-election"
    """With ``kind = "log"`` in [election]: the election, the controls, and what processes share; one partition, without
    retention."""
    partitions: PositiveInt = 4
    """Number of partitions of the metrics, result and command topics, where trimtab creates them."""
    replication_factor: PositiveInt = 1
    """Replication factor of every topic that trimtab creates; 3 in production.  Their ``min.insync.replicas`` is one
    less, and at least 1."""
    retention_hours: PositiveInt = 168
    """Hours for which the metrics, result, command and dead letter topics keep a record, where trimtab creates them;
    a week, so that a controller that was down over a weekend can catch up.  The journal has its own retention:
    [journal] retention_days."""
    summaries_retention_hours: PositiveInt = 168
    """Hours for which the topic of summaries keeps a record, where trimtab creates it; the page shows no more."""
    start_at: StartAt = "4h"
    """Where a controller without a checkpoint begins to read: so long before now (``90m``, ``4h``, ``7d``), or at the
    ``earliest`` or ``latest`` record.  Four hours are 240 samples for each average; a bundle with stored
    averages (collector.zookeeper) starts from those.  Intervals that are in the journal are not decided again."""
    client: Annotated[dict[str, Scalar], BeforeValidator(client_options)] = Field(default_factory=dict, repr=False)
    """Further options of the Kafka client under librdkafka's names, for every connection (security.protocol ...).
    "sasl.password_file" names a file with the value of "sasl.password"; every option has such a form.  Options that
    trimtab sets itself are refused."""
    principals: KafkaPrincipals = KafkaPrincipals()
    """The principals of trimtab's processes in Kafka."""

    @model_validator(mode="after")
    def _has_a_topic_for_each_purpose(self) -> Self:
        purposes = (
            "metrics_topic",
            "results_topic",
            "commands_topic",
            "journal_topic",
            "dead_letters_topic",
            "summaries_topic",
            "election_topic",
        )
        used: dict[str, str] = {}
        for purpose in purposes:
            name = getattr(self, purpose)
            if name in used:
                raise ValueError(f"{used[name]} and {purpose} are both {name!r}: expected different topics")
            used[name] = purpose
        return self

    def start_ms(self, now_ms: int) -> int | None:
        """The append time from which a controller without a checkpoint reads; None for ``earliest`` and ``latest``."""
        return append_time_of(self.start_at, now_ms)


class FolderLogSettings(Section):
    """The log in a folder: without a server, for a demo or a recording."""

    path: PathText
    """Holds metrics/, results/, commands/, journal/, dead_letters/ and summaries/."""
    retention_hours: PositiveInt = 24
    """Hours for which the controller keeps the files of metrics, results, commands and dead letters that trimtab wrote,
    counted back from the last interval that it has read: what it has not read stays.  Spark lists all files for every
    micro-batch, so more make it slower.  The journal has its own retention: [journal] retention_days.  To keep more,
    use `trimtab record`."""
    summaries_retention_hours: PositiveInt = 168
    """The same for the files of summaries, which Spark does not list: the page shows no more."""


class _Log(Section):
    """Keys of every kind of log.  Sections of other kinds are allowed and ignored."""

    kind: str
    sweeps: Literal["json", "arrow"] = "json"
    """The format in which collectors publish sweeps; the controller reads both.  A log in a folder holds no Arrow."""
    kafka: KafkaLogSettings | None = None
    pulsar: PulsarLogSettings | None = None
    folder: FolderLogSettings | None = None

    @property
    def own_namespaces(self) -> frozenset[str]:
        """Pulsar's namespaces that trimtab itself lives in: to move their bundles would interrupt it meanwhile.

        Also where the log lies in another cluster, which may have a namespace of the same name.
        """
        return frozenset()


class LogInKafka(_Log):
    """The log lies in Kafka."""

    kind: Literal["kafka"]
    """Which log: "kafka", "pulsar" or "folder".  The section [log.kafka], [log.pulsar] or [log.folder] is needed with
    it."""
    kafka: KafkaLogSettings

    @property
    def commands(self) -> str:
        """The command topic."""
        return self.kafka.commands_topic


class LogInPulsar(_Log):
    """The log lies in Pulsar."""

    kind: Literal["pulsar"]
    """See LogInKafka."""
    pulsar: PulsarLogSettings

    @property
    def own_namespaces(self) -> frozenset[str]:
        """See _Log."""
        return frozenset({self.pulsar.namespace})

    @property
    def commands(self) -> str:
        """The command topic, with its namespace."""
        return f"{self.pulsar.namespace}/{self.pulsar.commands_topic}"


class LogInFolder(_Log):
    """The log lies in a folder."""

    kind: Literal["folder"]
    """See LogInKafka."""
    folder: FolderLogSettings

    @property
    def commands(self) -> str:
        """The folder that holds the commands."""
        return self.folder.path

    @model_validator(mode="after")
    def _holds_lines_of_json(self) -> Self:
        if self.sweeps != "json":
            raise ValueError("kind is 'folder', which keeps one JSON record a line, so sweeps must be 'json'")
        return self


LogSettings: TypeAlias = Annotated[LogInKafka | LogInPulsar | LogInFolder, Field(discriminator="kind")]
