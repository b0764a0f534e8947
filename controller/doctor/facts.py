"""The facts about a cluster, a log and an election; the checks judge nothing else.

A fact that could not be read is an error in its place, never an exception.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.adapters.kafka.acls import Acl
from controller.adapters.kafka.inspect import TopicFacts
from controller.adapters.pulsar.log.inspect import PulsarLogFacts
from controller.adapters.registration import RegisteredProcesses
from controller.log.unanswered import Unanswered
from controller.model.controls import ExcludedName
from controller.model.memory import FatalBundle
from controller.settings.capacity import CapacityOverrides
from controller.settings.election import ElectionInZooKeeper
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClock:
    """How far another clock is ahead of this machine's, negative: behind; known to *give_or_take_ms*."""

    ahead_ms: float
    give_or_take_ms: float

    def surely_off_by_ms(self) -> float:
        """The least difference between the two clocks that is certain."""
        return max(0.0, abs(self.ahead_ms) - self.give_or_take_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """One broker, by its own answers."""

    name: str
    #: Why it does not answer at all; "" where it does.
    silent: str = ""
    #: Question -> answer, of those refused with 401 or 403.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Question -> answer, of those that failed otherwise.
    failed: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    clock: MeasuredClock | None = None
    #: The settings that it runs with; None where it does not return them.
    settings: Mapping[str, str] | None = None
    #: LocalBrokerData; None where there is none.
    report: Mapping[str, Any] | None = None
    #: How far the time in its load report was ahead of this machine's clock when the report arrived.
    report_ahead_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarFacts:
    """The cluster behind [pulsar]."""

    #: Why the brokers could not be listed; "" where they could.
    error: str = ""
    #: HTTP's status of that error, 0 where there was no answer.
    status: int = 0
    clusters: tuple[str, ...] = ()
    brokers: tuple[BrokerFacts, ...] = ()
    #: The broker that leads Pulsar's own load manager; "" where none does, or that is not known.
    leader: str = ""
    #: Settings changed while the brokers run; None where they could not be read.
    dynamic: Mapping[str, str] | None = None
    #: Namespaces that decisions.excluded or a person names -> the boundaries of their bundles; none: there is no such
    #: namespace.
    #: Those that could not be read are missing.
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: All namespaces; None: the brokers did not list them.
    namespaces: frozenset[str] | None = None
    #: Isolation policies by name, in Pulsar's order, as the admin API returns them.
    policies: Mapping[str, Any] = field(default_factory=dict)
    #: Failure domain -> its brokers.
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Namespace -> its anti-affinity group, of those that have one.
    groups: Mapping[str, str] = field(default_factory=dict)
    #: Why not all groups are known; "" where they are.
    groups_problem: str = ""
    #: Request to the cluster -> the answer, if that was 401 or 403.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Request to the cluster -> the error, if it failed otherwise.
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfFacts:
    """The broker.conf that the controller reads."""

    #: Why the controller cannot use it; "" where it can.
    error: str = ""
    exists: bool = True
    #: Namespaces in loadBalancerSheddingExcludedNamespaces.
    excluded_namespaces: frozenset[str] = frozenset()
    #: loadManagerClassName as a short name; "" where the file cannot be used.
    load_manager: str = ""
    #: failureDomainsEnabled.
    failure_domains: bool = False
    #: What it says of the options that trimtab knows.
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaFacts:
    """The log in Kafka."""

    log: KafkaLogSettings
    error: str = ""
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    #: Why the topics' settings could not be read.
    config_error: str = ""
    #: None where there is no authorizer; empty, too, where they could not be read.
    acls: tuple[Acl, ...] | None = ()
    #: Why the ACLs could not be read.
    acl_error: str = ""
    #: The brokers' append time; None where no probe came through.
    clock: MeasuredClock | None = None
    clock_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """A folder that trimtab writes to."""

    purpose: str
    path: str
    #: Why it cannot be written to; "" where it can.
    problem: str = ""
    #: Why no file in it can be locked, where trimtab does that; "" where one can.
    unlocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFacts:
    """The election's ZooKeeper."""

    election: ElectionInZooKeeper
    error: str = ""
    #: The session timeout that the server granted.
    granted_ms: int = 0
    #: trimtab's nodes that anyone can change, and why they could not be checked.
    open_nodes: tuple[str, ...] = ()
    nodes_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFacts:
    """The Lease that elects the leader."""

    #: Namespace, name and API server.
    place: str
    #: Why it cannot be read or changed; "" where it can.
    error: str = ""
    #: Whether that is a right that the account lacks, or another cluster that has the Lease.
    is_forbidden: bool = False
    is_of_another: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFacts:
    """Who executes the commands."""

    #: The mode in force.
    mode: str = ""
    processes: RegisteredProcesses = field(default_factory=RegisteredProcesses)
    #: Commands without an answer; None: there are none, or it is not known.
    unanswered: Unanswered | None = None
    #: Groups in Kafka, or subscriptions in Pulsar, that read the commands now and are named as this cluster's executors
    #: would name them.
    command_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeyFacts:
    """The file in approvals.controller_key_file."""

    #: Why a controller with these settings could not use it; "" where it could, or needs none.
    problem: str = ""
    #: Whether other users of this machine may read or write it.
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is judged; None is what the settings do not have."""

    settings: Settings
    #: This machine's clock, epoch ms.
    now_ms: int
    pulsar: PulsarFacts | None = None
    kafka: KafkaFacts | None = None
    pulsar_log: PulsarLogFacts | None = None
    zookeeper: ZooKeeperFacts | None = None
    lease: LeaseFacts | None = None
    folders: tuple[FolderFacts, ...] = ()
    #: The capacity overrides; and why they could not be read.
    capacity: CapacityOverrides = field(default_factory=CapacityOverrides)
    capacity_error: str = ""
    broker_conf: BrokerConfFacts = field(default_factory=BrokerConfFacts)
    #: Broker -> bundles that were moved to it and that it should list by now, as the journal's last decision remembers.
    unconfirmed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Bundles whose owners died one after the other, by the same decision.
    fatal: Mapping[str, FatalBundle] = field(default_factory=dict)
    execution: ExecutionFacts = field(default_factory=ExecutionFacts)
    signing_key: SigningKeyFacts = field(default_factory=SigningKeyFacts)
    #: What persons exclude; empty, too, where the controls cannot be read.
    excluded: tuple[ExcludedName, ...] = ()
    #: Why the controls cannot be read, although the election answers.
    controls_error: str = ""
    #: The newest tick's interval in the log, epoch ms; None: there is none.
    last_tick: int | None = None
    last_tick_error: str = ""
