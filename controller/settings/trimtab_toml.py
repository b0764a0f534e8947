"""trimtab's own settings: conf/trimtab.toml, read once at the start.

What Pulsar has a name for is read from its broker.conf instead (controller.settings.broker_conf).  The brokers' own
switches loadBalancerSheddingEnabled and loadBalancerAutoBundleSplitEnabled are not read at all: they must be
false on the brokers, and ``[decisions] shed`` and ``split`` are trimtab's.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from controller.model.errors import SettingsError
from controller.model.pulsar_version import PulsarVersion
from controller.model.topic_name import is_named_entity
from controller.settings.access import PulsarLogin, TlsSettings, ZooKeeperAuthSettings
from controller.settings.addresses import AdminUrls, ListenAddress, ServiceUrl, TraceReceiver, ZooKeeperServers
from controller.settings.approvals import ApprovalSettings
from controller.settings.election import ElectionOnLog, ElectionSettings
from controller.settings.guardrails import GuardrailSettings
from controller.settings.kafka_client import Scalar
from controller.settings.log import LogInFolder, LogSettings
from controller.settings.notifications import NotificationSettings
from controller.settings.problems import lines_of, problems
from controller.settings.pulsar_names import namespace_or_bundle, namespace_or_pattern
from controller.settings.pulsar_version import AUTO, PulsarSetting
from controller.settings.section import PathText, Section, Text, is_uri
from controller.settings.small_file import read_tables
from controller.settings.web import WebSettings


class TracingSettings(Section):
    """Traces for OpenTelemetry: what each interval spent its time on, from the sweep to the commands."""

    endpoint: TraceReceiver = ""
    """Where an OpenTelemetry collector takes OTLP over HTTP: http://host:4318, without a path.  Without it nothing is
    sent."""


class MetricsSettings(Section):
    """The addresses, host:port, at which trimtab's processes show their state.  Without one, nothing is served."""

    controller: ListenAddress = ""
    """Of `trimtab run`.  A second one on the same host needs another port: its option --metrics.  Whoever can reach the
    address can read the metrics: they hold no secrets, but names of the cluster and its activity."""
    collector: ListenAddress = ""
    """Of `trimtab collect`."""
    executor: ListenAddress = ""
    """Of `trimtab execute`."""
    web: ListenAddress = ""
    """Of `trimtab serve`."""


#: Collectors write a state again at least this many times before it is forgotten.
_WRITTEN_BEFORE_FORGOTTEN: Final = 3
#: Of an interval, for brokers to be asked in it and their answers to be written.
_SHORTEST_DEADLINE_SECONDS: Final = 0.1
#: Spark makes a task of each, in every micro-batch.
_MOST_TASKS: Final = 10_000
#: A controller that starts reads at most this many entries of the journal: a day of minutes.
_MOST_DELTAS: Final = 1440
#: Each takes a thread and a connection.
_MOST_AT_ONCE: Final = 1000
#: Of an array in the JVM.
_LARGEST_BATCH: Final = (1 << 31) - (1 << 16)


def _cluster_name(name: str) -> str:
    if not is_named_entity(name) or name in (".", ".."):
        raise ValueError(
            "allowed are ASCII letters, digits and -=:._ as in Pulsar, and neither . nor ..: nodes in ZooKeeper, and"
            " folders, have the name"
        )
    return name


Only: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(namespace_or_pattern)], ...], Field(strict=False)]
Excluded: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(namespace_or_bundle)], ...], Field(strict=False)]


class ClusterSettings(Section):
    """Which cluster is balanced."""

    name: Annotated[str, AfterValidator(_cluster_name)]
    """The Pulsar cluster's name, of ASCII letters, digits and -=:._  A log (topics in Kafka, a namespace in Pulsar, a
    folder), the folder of a file election and a checkpoint are one cluster's: those of another one are refused."""
    broker_conf: PathText = "broker.conf"
    """The brokers' own configuration file: strategies and their thresholds are read from it."""
    pulsar: PulsarSetting = AUTO
    """The version of Pulsar whose defaults apply to options that broker.conf does not set: "auto" takes that of the
    brokers, during an upgrade that of Pulsar's leader, interval by interval.  A version, such as 4.0 or 5.0.1, applies
    whatever the brokers run; set it if the records do not say which version they run."""


class IntervalSettings(Section):
    """Intervals: their length, and how much is kept of them."""

    period_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Seconds from one interval to the next; 60, since brokers update their statistics once a minute."""
    shards: Annotated[int, Field(ge=1, le=4096)] = 16
    """Number of parts that the bundles' state is divided into.  It cannot change during the life of a checkpoint.
    Choose more than the number of cores that will ever process it."""
    warm_up_samples: PositiveInt = 2
    """Closed intervals without a gap before the first command: one sample is not enough for an average."""
    stale_after_seconds: PositiveInt = 300
    """An interval decided later than this after its end is too old to act on; it still updates the averages."""
    stalled_after_seconds: PositiveInt = 600
    """A controller whose query has finished no micro-batch for this long while ticks arrive ends with exit code 70, so
    that it is restarted.  Choose well above the duration of a micro-batch of a few intervals."""
    bundle_ttl_intervals: PositiveInt = 10
    """Intervals for which a bundle that no broker lists is remembered: it may be moving between two owners."""
    close_at_most: PositiveInt = 20
    """Intervals that one micro-batch closes at most, so that catching up does not exhaust the driver's memory; later
    batches close the rest.  At 100,000 bundles an interval comes to 22 MB: twenty are two fifths of what Spark takes
    from one batch (spark.driver.maxResultSize, 1 GiB).  Lower it for a larger cluster; a small one catches up faster
    with more.  A log in a folder is read by whole files instead, so that nothing stays open when no more ticks come."""
    waiting_intervals: Annotated[int, Field(ge=2)] = 10
    """Sweeps that wait for a tick are kept for this many intervals, the newest ones.  When ticks stop, 100,000
    bundles come to 16 MB an interval.  A tick that is late by more intervals finds no sweeps, and its brokers are
    without data."""
    waiting_mbytes: Annotated[int, Field(ge=16)] = 512
    """MB of records at most that wait for a tick, for each partition; the oldest are dropped first.  A bundle takes 160
    bytes, and so does a topic in a record of its own: a million topics in one partition come to 160 MB an interval.
    The limit protects the memory against a flood of forged records; brokers with dropped records are without data for
    that interval."""
    state_ttl_intervals: PositiveInt = 1440
    """Namespaces, states of brokers and stored averages of bundles are forgotten when no record renews them for this
    many closed intervals; a day.  Collectors write them every collector.state_every intervals, so a deleted namespace
    goes, and one that collectors could not read for a while stays."""
    detail_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """For bundles at this share of a split threshold or above, topics are stored one by one; lower costs memory,
    higher makes more splits wait an interval for detail."""
    detail_topics: Annotated[int, Field(ge=1000)] = 1_000_000
    """Maximum number of topics one by one that an interval gives to the driver, 40 bytes each.  If bundles near a split
    threshold have more, some of them wait for a later interval: their verdict is NoTopicDetail."""
    max_record_bytes: Annotated[int, Field(ge=65_536, le=1 << 30)] = 8 * 1024 * 1024
    """Bytes; a longer record becomes a dead letter without being read."""

    @property
    def period_ms(self) -> int:
        """The period in milliseconds, as intervals are."""
        return self.period_seconds * 1000

    @property
    def max_batch_bytes(self) -> int:
        """To how many bytes a batch of records in Kafka may unpack: the longest record fits, and what goes with it."""
        return min(2 * self.max_record_bytes, _LARGEST_BATCH)

    @model_validator(mode="after")
    def _does_not_call_everything_stale(self) -> Self:
        if self.stale_after_seconds < self.period_seconds:
            raise ValueError(
                f"stale_after_seconds ({self.stale_after_seconds}) is shorter than period_seconds"
                f" ({self.period_seconds}): allowed is the period or more"
            )
        if self.stalled_after_seconds < 2 * self.period_seconds:
            raise ValueError(
                f"stalled_after_seconds ({self.stalled_after_seconds}) is shorter than two periods"
                f" (period_seconds = {self.period_seconds}): allowed is {2 * self.period_seconds} or more"
            )
        return self


class CheckpointSettings(Section):
    """Where Spark keeps the state of the stream."""

    path: PathText
    """Folder, or URI of a file system that Spark can read and write (hdfs://, s3a:// ...); where several controllers
    run, one that all of them share.  A file system of its own needs its jars in [spark.conf] "spark.jars" or
    "spark.jars.packages"."""


class JournalSettings(Section):
    """How long decisions and their verdicts are kept."""

    retention_days: PositiveInt = 30
    """Days after which decisions leave the journal.  The last entry with the whole memory stays, however old it is, and
    so does everything that Spark has not committed."""
    whole_every_intervals: Annotated[int, Field(ge=1, le=_MOST_DELTAS)] = 60
    """Once in this many intervals an entry holds the whole memory, the others the changes.  More makes the journal
    smaller, and a controller that starts reads more entries, of which 1,000 brokers write up to 96 KB each: 1440, the
    most that is allowed, come to 140 MB and some ten seconds in which nobody leads."""
    verdicts_intervals: PositiveInt = 60
    """Verdicts of this many last intervals are kept: what was considered, and why it was or was not acted on."""
    verdicts_megabytes: PositiveInt = 256
    """Verdicts take at most this much space; the oldest are deleted first."""
    verdicts_path: PathText | None = None
    """Folder of the verdicts; without it, "verdicts" in the checkpoint's folder.  Needed where the checkpoint is a URI,
    such as s3a://bucket/path: `trimtab status` reads verdicts without Spark."""

    @model_validator(mode="after")
    def _keeps_verdicts_in_a_folder(self) -> Self:
        if self.verdicts_path is not None and is_uri(self.verdicts_path):
            raise ValueError(f"verdicts_path is the URI {self.verdicts_path!r}: allowed is a folder")
        return self


class SparkSettings(Section):
    """The Spark session."""

    master: Text = "local[*]"
    """Where Spark runs: all cores of this machine, or a cluster's URL."""
    shuffle_partitions: Annotated[int, Field(ge=1, le=_MOST_TASKS)] = 2
    """Tasks of the stateful step.  Near the number of cores: committing state costs more than folding it.
    Fixed for the life of a checkpoint."""
    max_offsets_per_trigger: PositiveInt = 50_000
    """Records (in a folder: files) of one micro-batch at most, so that catching up after a pause does not exhaust the
    memory: about the records of an interval, which are a sweep a broker or a record a topic, times the intervals that
    one batch may close."""
    conf: dict[str, Scalar] = Field(default_factory=dict, repr=False)
    """Further Spark options under Spark's names.  ``spark.jars`` are added to trimtab's own; an option that the query
    depends on is refused by name."""
    log_path: PathText | None = None
    """A folder on this machine for Spark's own log: its warnings and errors, with traces.  Each process writes a file,
    which has 10 MB at most, and three older parts; those of the last five processes are kept.  Without it,
    "spark-logs" beside the verdicts, so in the checkpoint's folder unless that is a URI."""


class DecisionSettings(Section):
    """What the controller may do to the cluster."""

    mode: Literal["active", "approve", "dry_run", "observe"] = "dry_run"
    """active moves load; approve moves what persons approve; dry_run issues commands that executors answer without
    acting; observe issues none.
    The default is dry_run, so that a new installation moves nothing.  It holds until somebody runs `trimtab mode`."""
    paused: bool = False
    """Issue no commands, but update averages.  It holds until somebody runs `trimtab pause` or `trimtab resume`."""
    shed: bool = True
    """Unload bundles from overloaded brokers."""
    split: bool = True
    """Split bundles over a threshold."""
    command_ttl_seconds: PositiveInt = 300
    """A command that has not started by this long after its interval is not executed: the load has changed since."""
    executor_timeout_seconds: PositiveInt = 60
    """An executor gives up a command after this long.  A command without a result counts as lost after this time and
    command_ttl_seconds."""
    retry_failed_after_seconds: PositiveInt = 300
    """A bundle is left alone for this long when a command about it failed, twice as long with each further failure, and
    for an hour at most."""
    excluded: Excluded = ()
    """Namespaces (tenant/namespace) and bundles (tenant/namespace/0xLLLLLLLL_0xUUUUUUUU) that are never touched,
    besides Pulsar's own.  In a namespace * stands for any text without a slash: tenant/*, tenant/prod-*.
    `trimtab doctor` warns of what matches nothing in the cluster."""
    only: Only = ()
    """Only bundles of these namespaces are moved and split, to begin with a few: tenant/namespace, or a pattern as
    above.  What `excluded` names is still not touched.  Empty: every namespace."""
    seed: NonNegativeInt = 0
    """Seed of the choice among equally good brokers: the same seed gives the same choices."""


class PulsarSettings(PulsarLogin):
    """How the brokers' admin API is reached."""

    admin_url: AdminUrls = ("http://127.0.0.1:8080",)
    """http(s)://host:port of some brokers, or of a proxy.  They list the active brokers and redirect requests to
    them; credentials are sent to no other server."""
    connect_timeout_seconds: PositiveInt = 5
    """A broker that accepts no connection within this time counts as gone."""
    tls: TlsSettings = TlsSettings()
    """For admin URLs that begin with https."""


class ExecutorSettings(Section):
    """How commands are carried out."""

    group: Text = "trimtab-executor"
    """Kafka: executors of a cluster share the command topic in the consumer group "<group>-<cluster name>"."""
    session_timeout_seconds: Annotated[int, Field(ge=6)] = 10
    """An executor that stays silent for this long is replaced; it carries out no more commands when it comes back."""
    max_concurrent: Annotated[int, Field(ge=1, le=_MOST_AT_ONCE)] = 4
    """Maximum number of namespaces with a running command; within a namespace commands run one after the other."""
    max_per_second: Annotated[float, Field(gt=0)] = 5.0
    """Maximum number of commands started in one second: every unload makes clients reconnect."""
    batch: Annotated[int, Field(ge=1, le=64)] = 16
    """Number of commands that are read and answered together."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Maximum number of attempts for a command that the brokers refuse for a temporary reason."""
    dry_run: bool = False
    """Check each command and report what would be done, but change nothing, whatever the command's mode."""


class CollectorSettings(Section):
    """How collectors read the brokers' load."""

    timeout_seconds: Annotated[float, Field(gt=0)] = 10.0
    """A broker that takes longer to answer has no sweep in this interval."""
    max_concurrent: Annotated[int, Field(ge=1, le=_MOST_AT_ONCE)] = 16
    """Number of brokers that a collector queries at once, without those that do not begin to answer."""
    deadline_share: Annotated[float, Field(gt=0, le=0.9)] = 0.5
    """Of the period: an interval ends this long after its T, with whatever has arrived; sooner, once all has.  It has
    to be a tenth of a second or more."""
    state_every: PositiveInt = 10
    """Intervals after which namespaces, brokers and stored averages are published again, changed or not."""
    capacity_overrides: PathText | None = None
    """A TOML file with the real capacity of brokers that report wrong limits."""
    zookeeper: ZooKeeperServers = ""
    """Pulsar's own metadata store, host:port[,host:port ...][/chroot], for the averages and quotas of bundles that
    Pulsar keeps there; without it new bundles start from Pulsar's defaults."""
    zookeeper_auth: ZooKeeperAuthSettings | None = None
    """trimtab's credentials in Pulsar's metadata store; it only reads there."""
    zookeeper_tls: TlsSettings | None = None
    """With this section, connections to Pulsar's metadata store use TLS."""
    service_url: ServiceUrl = ""
    """With the extensible load manager, pulsar:// or pulsar+ssl://host:port of some broker; without it, what the
    cluster's own data says."""


class Settings(Section):
    """All settings of conf/trimtab.toml."""

    cluster: ClusterSettings
    intervals: IntervalSettings = IntervalSettings()
    log: LogSettings
    election: ElectionSettings
    checkpoint: CheckpointSettings
    journal: JournalSettings = JournalSettings()
    spark: SparkSettings = SparkSettings()
    decisions: DecisionSettings = DecisionSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    pulsar: PulsarSettings | None = None
    executor: ExecutorSettings = ExecutorSettings()
    collector: CollectorSettings = CollectorSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    web: WebSettings = WebSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    notifications: NotificationSettings = NotificationSettings()

    def as_version(self, pulsar: PulsarVersion | None) -> Self:
        """These settings with *pulsar* in [cluster]; None: as they are."""
        if pulsar is None:
            return self
        return self.model_copy(update={"cluster": self.cluster.model_copy(update={"pulsar": str(pulsar)})})

    @property
    def elects_on_log(self) -> bool:
        """Whether the election lies in a topic of the log."""
        return isinstance(self.election, ElectionOnLog)

    @property
    def whole_every_ms(self) -> int:
        """How far apart entries with the whole memory are in the journal, ms."""
        return self.journal.whole_every_intervals * self.intervals.period_ms

    @property
    def folder_kept_ms(self) -> int:
        """How long a log in a folder keeps records, ms: its retention, but no less than what is still needed of them.

        Executors need commands until they expire, and their results; controllers the intervals in which bundles are
        remembered, and states until collectors write them again.
        """
        hours = self.log.folder.retention_hours if self.log.folder is not None else 0
        intervals, decisions, every = self.intervals, self.decisions, self.collector.state_every
        periods = max(intervals.bundle_ttl_intervals + intervals.warm_up_samples, _WRITTEN_BEFORE_FORGOTTEN * every)
        expires = 1000 * (decisions.command_ttl_seconds + decisions.executor_timeout_seconds)
        return max(hours * 3_600_000, periods * intervals.period_ms, expires + 2 * intervals.period_ms)

    @property
    def verdicts_folder(self) -> str:
        """Where verdicts are kept."""
        return self.journal.verdicts_path or str(Path(self.checkpoint.path) / "verdicts")

    @property
    def spark_log_folder(self) -> str:
        """Where Spark's own log is kept."""
        return self.spark.log_path or str(Path(self.verdicts_folder).with_name("spark-logs"))

    @model_validator(mode="after")
    def _an_election_on_the_log_has_a_server(self) -> Self:
        if self.elects_on_log and isinstance(self.log, LogInFolder):
            raise ValueError(
                "election.kind is 'log' and log.kind is 'folder': a folder is one machine's, so use election.kind ="
                " 'file', or a log in Kafka or Pulsar"
            )
        return self

    @model_validator(mode="after")
    def _verdicts_lie_in_a_folder(self) -> Self:
        if is_uri(self.checkpoint.path) and self.journal.verdicts_path is None:
            raise ValueError(
                f"checkpoint.path is the URI {self.checkpoint.path!r}, so journal.verdicts_path is needed: a folder for"
                " what `trimtab status` reads"
            )
        return self

    @model_validator(mode="after")
    def _states_are_written_before_they_are_forgotten(self) -> Self:
        ttl, every = self.intervals.state_ttl_intervals, self.collector.state_every
        if ttl < _WRITTEN_BEFORE_FORGOTTEN * every:
            raise ValueError(
                f"intervals.state_ttl_intervals = {ttl} is too short for collector.state_every = {every}: allowed is"
                f" {_WRITTEN_BEFORE_FORGOTTEN} times that or more, because a collector may miss some"
            )
        return self

    @model_validator(mode="after")
    def _brokers_can_be_asked_before_the_deadline(self) -> Self:
        share, period = self.collector.deadline_share, self.intervals.period_seconds
        least = _SHORTEST_DEADLINE_SECONDS / period
        if share < least:
            raise ValueError(
                f"collector.deadline_share = {share:g} of intervals.period_seconds = {period} leaves"
                f" {share * period:.2g} s to query all brokers: allowed is a share of {least:.2g} or more"
            )
        return self

    # Of the next three, what nobody has set is no mistake of the file's.

    @model_validator(mode="after")
    def _commands_last_an_interval(self) -> Self:
        ttl, period = self.decisions.command_ttl_seconds, self.intervals.period_seconds
        if "command_ttl_seconds" in self.decisions.model_fields_set and ttl < period:
            raise ValueError(
                f"decisions.command_ttl_seconds = {ttl} is shorter than intervals.period_seconds = {period}: allowed is"
                " the period or more, because commands are issued some time after the end of their interval"
            )
        return self

    @model_validator(mode="after")
    def _windows_count_earlier_intervals(self) -> Self:
        window, period = self.guardrails.window_seconds, self.intervals.period_seconds
        if "window_seconds" in self.guardrails.model_fields_set and window <= period:
            raise ValueError(
                f"guardrails.window_seconds = {window} is not longer than intervals.period_seconds = {period}: allowed"
                " is more than the period, because no other interval would count in the window"
            )
        return self

    @model_validator(mode="after")
    def _executors_at_work_do_not_count_as_stalled(self) -> Self:
        rate, timeout = self.executor.max_per_second, self.decisions.executor_timeout_seconds
        longest, stalled = timeout + 1 / rate, self.intervals.stalled_after_seconds
        fields_set = self.decisions.model_fields_set | self.executor.model_fields_set
        if longest > stalled and fields_set & {"executor_timeout_seconds", "max_per_second"}:
            raise ValueError(
                f"decisions.executor_timeout_seconds = {timeout} and executor.max_per_second = {rate:g} let one command"
                f" take {longest:.0f} s, and an executor counts as stalled after intervals.stalled_after_seconds ="
                f" {stalled}: raise that, or give commands less time"
            )
        return self


def read_settings(path: Path) -> Settings:
    """The settings in the file *path*, or SettingsError naming file, key, value and what is allowed."""
    try:
        values = tomllib.loads(read_tables(path).decode())
    except FileNotFoundError as error:
        message = f"{path}: {error.strerror}; --conf names the settings file, `trimtab init` writes one"
        raise SettingsError(message) from error
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also for numbers too long or nesting too deep
        raise SettingsError(f"{path}: not TOML: {error}") from error
    try:
        return Settings.model_validate(values, context=path.parent)
    except ValidationError as error:
        message = lines_of(path, [*problems(error, Settings)])
    # Not "from error": that error holds the values, secrets too.
    raise SettingsError(message)
