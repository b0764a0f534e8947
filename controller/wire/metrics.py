"""Records of the metrics topic, and the one way to read them.

Pulsar: LocalBrokerData, BundleData, TimeAverageMessageData, ResourceQuota, NamespaceBundles.
"""

import re
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from controller.model.balancing import Balancing
from controller.model.names import FULL_LOWER, FULL_UPPER, is_name
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT
from controller.wire.arrow_stream import ARROW_MAGIC, ArrowStream
from controller.wire.base import (
    MAX_RECORD_BYTES,
    AnyText,
    Boundary,
    BundleText,
    Count,
    Entries,
    Envelope,
    Items,
    Limit,
    Millis,
    Name,
    NameOrEmpty,
    Rate,
    Record,
    Tally,
    Topic,
    bad_value,
    believed,
    check_interval,
    check_version,
    is_foreign,
    missing,
    model_for,
    read_object,
    reader,
    refuse_not_finite,
    refuse_too_large,
    validate,
)
from controller.wire.sweep import ArrowSweep, BrokerSweep, BundleTotals, ReportedUsage, SweepHeader, arrow_sweep

#: Host and port in a broker's address; streaming/jvm/RecordRows.java has the same.
#: More partitions than any topic has, more brokers than any cluster: ten times the largest known.
MAX_PARTITIONS: Final = 10_000
MAX_BROKERS: Final = 10_000
#: More bundles than any namespace has.
MAX_BUNDLES: Final = 100_000

ADDRESS: Final = r"\A[A-Za-z][A-Za-z0-9+.-]*://([^/?#]+)"


class TopicStats(Envelope):
    """One topic, from a producer of statistics other than the collector; the last of a topic wins."""

    type: Literal["topic_stats"] = "topic_stats"
    broker: Name
    bundle: BundleText
    topic: Topic
    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate
    producer_count: Tally
    consumer_count: Tally


def _bool_or_none(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


class LocalBrokerDataRecord(Record):
    """A broker's load report exactly as it lies at /loadbalance/brokers.  Pulsar: LocalBrokerData."""

    web_service_url: str | None = None
    web_service_url_tls: str | None = None
    last_update: Millis
    cpu: ReportedUsage
    memory: ReportedUsage
    direct_memory: ReportedUsage
    bandwidth_in: ReportedUsage
    bandwidth_out: ReportedUsage
    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate
    num_topics: Tally
    num_bundles: Tally
    num_producers: Tally
    num_consumers: Tally
    last_stats: Entries[BundleText, BundleTotals]
    persistent_topics_enabled: Annotated[bool | None, BeforeValidator(_bool_or_none)] = None
    non_persistent_topics_enabled: Annotated[bool | None, BeforeValidator(_bool_or_none)] = None

    @property
    def kinds_off(self) -> int:
        """The kinds of topics that the broker does not serve, as flags of controller.model.topic_kinds."""
        persistent, other = self.persistent_topics_enabled, self.non_persistent_topics_enabled
        return PERSISTENT * (persistent is False) | NON_PERSISTENT * (other is False)

    @property
    def broker(self) -> str:
        """``host:port``, from the TLS address where there is no other, as brokers are named in ZooKeeper."""
        match = re.match(ADDRESS, self.web_service_url or self.web_service_url_tls or "")
        return match[1] if match else ""

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if is_name(self.broker):
            return self
        if self.web_service_url or self.web_service_url_tls:
            raise bad_value(
                "the host in webServiceUrl is not a valid name" if self.broker else "webServiceUrl has no host"
            )
        raise missing("webServiceUrl")


class BrokerLoadRecord(Envelope):
    """A load report in an envelope; its lastStats stand in for topic stats."""

    type: Literal["broker_load"] = "broker_load"
    broker: Name | None = None
    """Where the report's own address is not the broker's name."""
    report: LocalBrokerDataRecord

    @property
    def broker_name(self) -> str:
        """``host:port``."""
        return self.broker or self.report.broker


def _objects(policies: Any) -> Any:
    """*policies* as a list of objects: a namespace must not go free because its policies have another form."""
    if policies is None:
        return None
    listed = policies if isinstance(policies, list | tuple) else [policies]
    return tuple(each if isinstance(each, dict) else {"unreadable": each} for each in listed)


class AutoScalePolicy(Record):
    """When brokers split and merge the segments of a namespace's topics, where that is not as in their settings.

    What is left out is as there.  Pulsar: AutoScalePolicyOverride, without its cool-downs.
    """

    enabled: bool | None = None
    max_segments: Tally | None = None
    min_segments: Tally | None = None
    split_msg_rate_in_threshold: Rate | None = None
    split_msg_rate_out_threshold: Rate | None = None
    split_bytes_rate_in_threshold: Rate | None = None
    split_bytes_rate_out_threshold: Rate | None = None
    merge_msg_rate_in_threshold: Rate | None = None
    merge_msg_rate_out_threshold: Rate | None = None
    merge_bytes_rate_in_threshold: Rate | None = None
    merge_bytes_rate_out_threshold: Rate | None = None

    @property
    def overrides(self) -> dict[str, Any] | None:
        """What it says, by Pulsar's names; None where it says nothing."""
        return self.model_dump(by_alias=True, exclude_none=True) or None


class NamespaceStateRecord(Envelope):
    """The bundles of a namespace and its policies.  Pulsar: BundlesData, LocalPolicies."""

    type: Literal["namespace_state"] = "namespace_state"
    namespace: Name
    version: Millis
    """Grows with every change, the highest counts: a time, or a number that is counted up."""
    boundaries: Annotated[Items[Boundary], Field(max_length=MAX_BUNDLES + 1)]
    anti_affinity_group: NameOrEmpty | None = None
    isolation_policies: Annotated[Items[dict[str, Any]] | None, BeforeValidator(_objects)] = None
    """Those that name the namespace, in Pulsar's order, as its admin API gives them.  Where one lists many namespaces,
    what names this one, or cannot be read, is enough.

    Each with namespaces, primary, secondary (lists of Java regular expressions) and auto_failover_policy.  The bundles
    of a namespace with a policy that cannot be read stay where they are.
    """
    auto_scale_policy: AutoScalePolicy | None = None
    """Of scalable topics, where the namespace has one (Pulsar 5.0).  That of a single topic is in no record."""

    @model_validator(mode="after")
    def _boundaries_cut_the_whole_ring(self) -> Self:
        edges = self.boundaries
        if edges[:1] != (FULL_LOWER,) or edges[-1:] != (FULL_UPPER,) or sorted(set(edges)) != [*edges]:
            raise bad_value("boundaries must grow strictly from 0x00000000 to 0xffffffff")
        return self


class Capacity(Record):
    """What a broker can do where its own limits are not to be believed; units as in its report."""

    cpu: Limit | None = None
    memory: Limit | None = None
    direct_memory: Limit | None = None
    bandwidth_in: Limit | None = None
    bandwidth_out: Limit | None = None


class BalancingSwitches(Record):
    """The switches of a broker's own balancing, as it runs with them.  Pulsar: ServiceConfiguration."""

    load_balancer_enabled: bool
    load_balancer_shedding_enabled: bool
    load_balancer_auto_bundle_split_enabled: bool
    extensible_load_manager: bool = False
    """Whether it runs ExtensibleLoadManagerImpl, which does not split without loadBalancerEnabled."""

    @classmethod
    def of(cls, balancing: Balancing) -> Self:
        """*balancing* as a record."""
        return cls(
            load_balancer_enabled=balancing.enabled,
            load_balancer_shedding_enabled=balancing.shedding,
            load_balancer_auto_bundle_split_enabled=balancing.splitting,
            extensible_load_manager=balancing.extensible,
        )

    @property
    def balancing(self) -> Balancing:
        """The switches as a value."""
        return Balancing(
            enabled=self.load_balancer_enabled,
            shedding=self.load_balancer_shedding_enabled,
            splitting=self.load_balancer_auto_bundle_split_enabled,
            extensible=self.extensible_load_manager,
        )


class BrokerStateRecord(Envelope):
    """What is known of a broker besides its load.  Pulsar: FailureDomain."""

    type: Literal["broker_state"] = "broker_state"
    broker: Name
    version: Millis
    """As a namespace's."""
    failure_domain: NameOrEmpty | None = None
    broker_version_string: AnyText | None = None
    """Version of Pulsar that it runs, as its load report or GET /admin/v2/brokers/version says it."""
    persistent_topics_enabled: bool | None = None
    """True where nothing is said."""
    non_persistent_topics_enabled: bool | None = None
    """True where nothing is said."""
    capacity: Capacity | None = None
    balancing: BalancingSwitches | None = None
    """Without it nobody knows whether the broker balances by itself: see guardrails.brokers_balance_unknown."""
    leader: bool | None = None
    """True: it leads Pulsar's own load manager (GET /admin/v2/brokers/leaderBroker).  While a cluster is upgraded, the
    version of this broker decides: see docs/upgrade.md."""


class TimeAverage(Record):
    """A running average.  Pulsar: TimeAverageMessageData."""

    max_samples: Annotated[Count, Field(ge=1)]
    num_samples: Count
    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate


class StoredBundleData(Record):
    """The averages at /loadbalance/bundle-data.  Pulsar: BundleData."""

    short_term_data: TimeAverage
    long_term_data: TimeAverage
    topics: Count


class ResourceQuota(Record):
    """An operator's estimate of a bundle's load.  Pulsar: ResourceQuota."""

    msg_rate_in: Rate
    msg_rate_out: Rate
    bandwidth_in: Rate
    """Bytes/s."""
    bandwidth_out: Rate
    """Bytes/s."""
    memory: Rate
    """Bytes."""
    dynamic: bool


class BundleData(Envelope):
    """What a new bundle's averages start from: Pulsar's stored averages, or a quota at full samples."""

    type: Literal["bundle_data"] = "bundle_data"
    bundle: BundleText
    bundle_data: StoredBundleData | None = None
    resource_quota: ResourceQuota | None = None

    @model_validator(mode="after")
    def _is_one_of_the_two(self) -> Self:
        if self.bundle_data is None and self.resource_quota is None:
            raise missing("bundleData or resourceQuota")
        if self.bundle_data is not None and self.resource_quota is not None:
            raise bad_value("bundleData and resourceQuota exclude each other")
        return self


class Partitions(Record):
    """How many partitions a tick of this interval was written to."""

    metrics: Annotated[int, Field(ge=1, le=MAX_PARTITIONS)]
    results: Annotated[int, Field(ge=0, le=MAX_PARTITIONS)]
    """0 in a recording that has no results."""


class RosterEntry(Record):
    """An active broker, and the sweep of it that counts; none when the broker stayed silent."""

    broker: Name
    sweep_id: Name | None = None


class TickRecord(Envelope):
    """Interval T ends here in this partition."""

    type: Literal["tick"] = "tick"
    interval: Millis
    partitions: Partitions
    roster: Annotated[Items[RosterEntry], Field(max_length=MAX_BROKERS)] | None = None
    """Every active broker; in partition 0 of the metrics topic only, and ignored elsewhere."""

    @model_validator(mode="after")
    def _lists_a_broker_once(self) -> Self:
        names = [entry.broker for entry in self.roster or ()]
        if len(set(names)) < len(names):
            raise bad_value("roster lists a broker twice")
        return self


MetricRecord: TypeAlias = (
    BrokerSweep
    | ArrowSweep
    | TopicStats
    | BrokerLoadRecord
    | NamespaceStateRecord
    | BrokerStateRecord
    | BundleData
    | TickRecord
)

S = TypeVar("S", BrokerSweep, ArrowSweep, LocalBrokerDataRecord)

MODELS: Final[dict[str, type[Any]]] = {
    "broker_sweep": BrokerSweep,
    "topic_stats": TopicStats,
    "broker_load": BrokerLoadRecord,
    "namespace_state": NamespaceStateRecord,
    "broker_state": BrokerStateRecord,
    "bundle_data": BundleData,
    "tick": TickRecord,
}


@reader
def decode_metric(
    value: bytes,
    *,
    cluster: str,
    period_ms: int,
    append_time_ms: int | None = None,
    max_bytes: int = MAX_RECORD_BYTES,
) -> MetricRecord | None:
    """The record that *value* holds; None for a valid-looking one of another cluster than *cluster*.

    JSON, a bare LocalBrokerData as brokers write it, or Arrow.  *append_time_ms* is when the log took
    the record, None where the log does not say.  Raises WireError, and nothing else, with a dead letter's reason; one
    flawed bundle is enough, as it is for the query (streaming.decode).  What a record says of time reaches a period
    beyond its append time at most: a later interval or version is refused, a later ``lastUpdate`` is taken for 0.
    """
    refuse_too_large(value, max_bytes)
    read = _read_arrow_sweep if value.startswith(ARROW_MAGIC) else _read_json
    return _in_time(read(value, cluster), period_ms, append_time_ms)


def _in_time(record: MetricRecord | None, period_ms: int, append_time_ms: int | None) -> MetricRecord | None:
    """*record* with no time in it that lies too far ahead of its append time, or WireError."""
    if isinstance(record, SweepHeader | TickRecord):
        check_interval(record.interval, period_ms=period_ms, append_time_ms=append_time_ms)
    if isinstance(record, NamespaceStateRecord | BrokerStateRecord):
        check_version(record.version, period_ms=period_ms, append_time_ms=append_time_ms)
    if isinstance(record, BrokerLoadRecord):
        return record.model_copy(update={"report": _believed(record.report, period_ms, append_time_ms)})
    if isinstance(record, BrokerSweep):
        return _believed(record, period_ms, append_time_ms)
    return _believed(record, period_ms, append_time_ms) if isinstance(record, ArrowSweep) else record


def _believed(value: S, period_ms: int, append_time_ms: int | None) -> S:
    last_update = believed(value.last_update, period_ms=period_ms, append_time_ms=append_time_ms)
    return value if last_update == value.last_update else value.model_copy(update={"last_update": last_update})


def _read_arrow_sweep(value: bytes, cluster: str) -> ArrowSweep | None:
    stream = ArrowStream(value)
    fields = read_object(stream.header)
    if is_foreign(fields, cluster):
        return None
    model_for(fields, {"broker_sweep": SweepHeader})
    sweep = arrow_sweep(stream)
    refuse_not_finite(stream.header)
    return sweep


def _read_json(value: bytes, cluster: str) -> MetricRecord | None:
    fields = read_object(value)
    if _is_bare_report(fields):
        report = validate(LocalBrokerDataRecord, value)
        refuse_not_finite(value)
        return BrokerLoadRecord(cluster=cluster, report=report)
    if is_foreign(fields, cluster):
        return None
    record: MetricRecord = validate(model_for(fields, MODELS), value, fields)
    refuse_not_finite(value)
    return record


def _is_bare_report(fields: dict[str, Any]) -> bool:
    return fields.get("type") is None and ("lastStats" in fields or fields.get("loadReportType") == "LocalBrokerData")
