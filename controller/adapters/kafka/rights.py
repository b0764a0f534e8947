"""Which of trimtab's principals needs which right in Kafka: one table, for ``trimtab doctor`` and docs/security.md."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from controller.adapters.kafka.names import doctor_writer, executor_group, journal_writer, result_writers, tick_writer
from controller.settings.log import KafkaLogSettings

Resource: TypeAlias = Literal["topic", "group", "transactional-id", "cluster"]

#: kafka-acls.sh's name of the cluster as a resource.
CLUSTER: Final = "kafka-cluster"
#: The group that reads by itself: nothing is committed in it.
_READERS: Final = "trimtab-reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What *principal* may do with a resource, in Kafka's words."""

    principal: str
    resource: Resource
    name: str
    operations: tuple[str, ...]
    #: All resources whose names begin with ``name``.
    prefixed: bool = False

    @property
    def command(self) -> str:
        """The arguments of kafka-acls.sh that grant it."""
        operations = " ".join(f"--operation {each}" for each in self.operations)
        where = "--cluster" if self.resource == "cluster" else f"--{self.resource} {self.name}"
        prefixed = " --resource-pattern-type prefixed" if self.prefixed else ""
        return f"--add --allow-principal {shlex.quote(self.principal)} {operations} {where}{prefixed}"


def rights(log: KafkaLogSettings, *, group: str, cluster: str, election: bool = False) -> tuple[Right, ...]:
    """Everything that trimtab needs on *log* for *cluster*, whose executors' group is *group* of [executor].

    *election*: it lies there, too.
    """
    return (
        *_collector(log, cluster),
        *_controller(log, cluster),
        *_executor(log, group, cluster),
        *_reader(log, cluster),
        *(_election(log) if election else ()),
    )


def topics_of(log: KafkaLogSettings, *, election: bool = False) -> tuple[str, ...]:
    """The topics of *log*; *election*: the election lies there, too."""
    decisive = (log.metrics_topic, log.results_topic, log.commands_topic, log.journal_topic)
    return (*decisive, log.dead_letters_topic, log.summaries_topic, *([log.election_topic] if election else ()))


def _collector(log: KafkaLogSettings, cluster: str) -> Iterator[Right]:
    who = log.principals.collector
    yield _topic(who, log.metrics_topic, "Read", "Write")
    yield _topic(who, log.results_topic, "Write")  # ticks
    yield from _describe_topics(who, log.commands_topic, log.journal_topic, log.dead_letters_topic)
    yield _writer(who, tick_writer(cluster))
    yield _readers(who)


def _controller(log: KafkaLogSettings, cluster: str) -> Iterator[Right]:
    who = log.principals.controller
    for topic in (log.metrics_topic, log.results_topic):
        yield _topic(who, topic, "Read", "DescribeConfigs")  # it refuses a log that Kafka does not date
    yield _topic(who, log.commands_topic, "Read", "Write")  # Read: its end tells whether the journal is whole
    yield _topic(who, log.journal_topic, "Read", "Write", "Delete")  # Delete: it prunes what is no longer needed
    yield _topic(who, log.dead_letters_topic, "Write")
    yield _topic(who, log.summaries_topic, "Write")
    yield _writer(who, journal_writer(cluster))
    yield _readers(who)


def _executor(log: KafkaLogSettings, group: str, cluster: str) -> Iterator[Right]:
    who = log.principals.executor
    yield _topic(who, log.commands_topic, "Read")
    yield _topic(who, log.results_topic, "Read", "Write")
    yield from _describe_topics(who, log.metrics_topic, log.journal_topic, log.dead_letters_topic)
    yield Right(principal=who, resource="group", name=executor_group(group, cluster), operations=("Read",))
    yield _writer(who, result_writers(cluster), prefixed=True)
    yield _readers(who)


def _reader(log: KafkaLogSettings, cluster: str) -> Iterator[Right]:
    who = log.principals.reader
    for topic in topics_of(log):
        # The doctor asks for Kafka's time by a record among the dead letters that it takes back.
        probe = ("Write",) if topic == log.dead_letters_topic else ()
        yield _topic(who, topic, "Read", "DescribeConfigs", *probe)
    yield _writer(who, doctor_writer(cluster))
    yield _readers(who)
    yield Right(principal=who, resource="cluster", name=CLUSTER, operations=("Describe",))  # to read the ACLs


def _election(log: KafkaLogSettings) -> Iterator[Right]:
    """Each process writes that it is there; who sets controls, proposes or approves writes, too."""
    names, topic = log.principals, log.election_topic
    yield _topic(names.collector, topic, "Read", "Write")
    yield _topic(names.controller, topic, "Read", "Write", "Delete")  # Delete: what lies before a snapshot
    yield _topic(names.executor, topic, "Read", "Write")
    yield _topic(names.reader, topic, "Read", "DescribeConfigs", "Write")


def _topic(who: str, topic: str, *operations: str) -> Right:
    return Right(principal=who, resource="topic", name=topic, operations=operations)


def _describe_topics(who: str, *topics: str) -> Iterator[Right]:
    """With it Kafka names the right that is missing; without it, it says that there is no such topic."""
    return (_topic(who, topic, "Describe") for topic in topics)


def _writer(who: str, name: str, *, prefixed: bool = False) -> Right:
    return Right(principal=who, resource="transactional-id", name=name, operations=("Write",), prefixed=prefixed)


def _readers(who: str) -> Right:
    return Right(principal=who, resource="group", name=_READERS, operations=("Describe",))
