"""[log.pulsar]: the log in topics of a Pulsar cluster, be it the one that is balanced or another."""

from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from controller.model.topic_name import is_named_entity
from controller.settings.access import PulsarLogin, TlsSettings
from controller.settings.addresses import AdminUrls, PulsarServers
from controller.settings.start_at import StartAt, append_time_of

_PURPOSES: Final = (
    "metrics_topic",
    "results_topic",
    "commands_topic",
    "journal_topic",
    "dead_letters_topic",
    "summaries_topic",
    "election_topic",
)


def _topic(name: str) -> str:
    if not is_named_entity(name):
        raise ValueError(
            "allowed are ASCII letters, digits and -=:._: the short name of a topic in log.pulsar.namespace"
        )
    if "-partition-" in name or name.endswith("-control"):
        raise ValueError("names with -partition- in them are Pulsar's, and names that end in -control are trimtab's")
    return name


def _namespace(name: str) -> str:
    if name.count("/") != 1 or not all(map(is_named_entity, name.split("/"))):
        raise ValueError("allowed is tenant/namespace, of ASCII letters, digits and -=:._")
    return name


ShortTopic: TypeAlias = Annotated[str, AfterValidator(_topic)]


class PulsarLogSettings(PulsarLogin):
    """The log in Pulsar."""

    service_url: PulsarServers
    """pulsar://host:port[,host:port ...] or pulsar+ssl://... of some brokers of the cluster that holds the log."""
    admin_url: AdminUrls
    """http(s)://host:port of some brokers of that cluster: namespace and topics are created and checked there."""
    namespace: Annotated[str, AfterValidator(_namespace)] = "public/trimtab"
    """tenant/namespace of the topics, for this cluster's controller alone.  trimtab creates it where it does not exist,
    with message deduplication and with retention_hours; it never moves or splits its bundles."""
    metrics_topic: ShortTopic = "metrics"
    """Sweeps, load reports, states and ticks."""
    results_topic: ShortTopic = "results"
    """The results of commands; at least as many partitions as the command topic."""
    commands_topic: ShortTopic = "commands"
    """The commands for executors."""
    journal_topic: ShortTopic = "journal"
    """The decisions, with the controller's memory after each: one partition."""
    dead_letters_topic: ShortTopic = "dead-letters"
    """Refused records, each with the reason: one partition."""
    summaries_topic: ShortTopic = "summaries"
    """A summary of each interval for the page: one partition.  Without it decisions are the same."""
    election_topic: ShortTopic = "election"
    """With ``kind = "log"`` in [election]: the election, the controls, and what processes share; one partition."""
    partitions: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of partitions of the metrics, result and command topics, where trimtab creates them."""
    retention_hours: Annotated[int, Field(ge=1, le=87_600)] = 168
    """Hours for which the topics keep a record, where trimtab creates the namespace.  The journal is kept longer:
    [journal] retention_days."""
    start_at: StartAt = "4h"
    """Where a controller without a checkpoint begins to read, as in [log.kafka]."""
    connect_timeout_seconds: PositiveInt = 5
    """A broker that accepts no connection within this time counts as gone."""
    tls: TlsSettings = TlsSettings()
    """For pulsar+ssl:// and https:// addresses."""

    @model_validator(mode="after")
    def _has_a_topic_for_each_purpose(self) -> Self:
        used: dict[str, str] = {}
        for purpose in _PURPOSES:
            name = getattr(self, purpose)
            if name in used:
                raise ValueError(f"{used[name]} and {purpose} are both {name!r}: expected different topics")
            used[name] = purpose
        return self

    def start_ms(self, now_ms: int) -> int | None:
        """The append time from which a controller without a checkpoint reads; None for ``earliest`` and ``latest``."""
        return append_time_of(self.start_at, now_ms)
