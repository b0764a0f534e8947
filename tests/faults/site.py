"""A site: two controllers, two executors, their log and a Pulsar, all of them processes but the last.

That one is modelled, or real brokers with a modelled load (real_pulsar).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias
from uuid import uuid4

from kazoo.client import KazooClient

from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.election.leadership import CONTENDERS
from controller.log.election.store import ElectionCells
from controller.log.factory import log_system
from controller.settings.log import KafkaLogSettings
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ModelledSweep
from controller.simulator.encode import json_records, namespace_record
from controller.wire.chunks import KeyValue
from streaming.assembly import Assembly
from tests.faults.audit import Findings, audit, differences
from tests.faults.clock import eventually, now_ms
from tests.faults.log import Answered, Decided, FolderSiteLog, KafkaSiteLog, SiteLog
from tests.faults.processes import Life, Service
from tests.faults.pulsar import LOOPBACK, PlayedPulsar, played_pulsar
from tests.faults.pulsar_log import PulsarSiteLog, log_section
from tests.faults.real_pulsar import RealPulsar, real_pulsar
from tests.faults.replay import undisturbed
from tests.kafka_log import as_toml, named_topics
from tests.protocol.site_trace import against_the_model

_START, _PERIOD = 1_735_689_600_000, 60_000
#: Of a site whose intervals end when they say so.
_REAL_PERIOD = 10_000
#: ZooKeeper's session, and an executor's, which cannot be shorter.
SESSION_SECONDS, EXECUTOR_SESSION_SECONDS = 4, 6
_BROKERS = 4
#: How often it is looked for what is new in a log: each look costs 25 ms of processor time, most of it Kafka's.
_LOOK_SECONDS = 0.4
#: Answers that say that the bundle is at its destination.
_IS_THERE = ("done", "already_done")
_LEADS, _STANDS_BY = "leads, epoch", "stands by"
_BROKER_CONF = """
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0
loadBalancerSheddingGracePeriodMinutes=0
"""
_CONF = """
[cluster]
name = "{cluster}"
[intervals]
period_seconds = {period}
shards = 4
stale_after_seconds = 3_153_600_000
[log]
{log}
[election]
{election}
[checkpoint]
path = "checkpoint"
[spark]
master = "local[2]"
shuffle_partitions = 2
# A short life: started quickly beats compiled well.
conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
[decisions]
mode = "active"
split = false
command_ttl_seconds = 3_153_600_000
[guardrails]
# The records are sweeps alone, and commands fail on purpose.
move_undescribed = true
brokers_balance_unknown = "ignore"
failures_in_a_row = "unlimited"
failures_in_window = "unlimited"
{guardrails}
"""
_EXECUTOR_CONF = """
[pulsar]
admin_url = ["{entrance}"]
[executor]
group = "{group}"
session_timeout_seconds = {session}
max_per_second = 100.0
"""

_SITE_LOGS: dict[str, Callable[[Settings], SiteLog]] = {
    "kafka": KafkaSiteLog,
    "pulsar": PulsarSiteLog,
    "folder": FolderSiteLog,
}

#: What is done between an interval's sweeps and its tick.
Between: TypeAlias = Callable[[Sequence[ModelledSweep]], None]


class Writer(Protocol):
    """Who writes intervals."""

    def publish(self, records: Iterable[KeyValue]) -> None:
        """Append *records* to the metrics."""
        ...

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """End *interval*."""
        ...


#: What the command of a process begins with, by the process's name.
Words: TypeAlias = Callable[[str], Sequence[str]]


def _nothing(_: Sequence[ModelledSweep]) -> None:
    """Between sweeps and tick."""


def _no_words(_: str) -> Sequence[str]:
    return ()


class Site:
    """See the module docstring.  Time passes only when an interval is published, unless it is *real_time*."""

    def __init__(
        self,
        folder: Path,
        conf: str,
        pulsar: PlayedPulsar | RealPulsar,
        *,
        controllers: int,
        broker_conf: str = _BROKER_CONF,
        words: Words = _no_words,
        real_time: bool = False,
    ) -> None:
        self.folder, self.pulsar, self._words = folder, pulsar, words
        (folder / "broker.conf").write_text(broker_conf)
        (folder / "controller.toml").write_text(conf)
        self.settings: Settings = read_settings(folder / "controller.toml")
        self.log: SiteLog = _SITE_LOGS[self.settings.log.kind](self.settings)
        self._real_time = real_time
        self.interval = now_ms() // _REAL_PERIOD * _REAL_PERIOD if real_time else _START
        self._rounds = 0
        #: The interval before the last pile.
        self._piled_at = self.interval
        #: Ids of commands that nobody of ours has issued.
        self.forged: set[str] = set()
        for number, entrance in enumerate(pulsar.entrances):
            executor = _EXECUTOR_CONF.format(entrance=entrance, group=folder.name, session=EXECUTOR_SESSION_SECONDS)
            (folder / f"executor-{number}.toml").write_text(conf + executor)
        self.controllers = [self._service(f"controller-{number}", "run") for number in range(controllers)]
        self.executors = [self._service(f"executor-{n}", "execute") for n in range(len(pulsar.entrances))]

    def _service(self, name: str, command: str) -> Service:
        conf = self.folder / f"{'controller' if command == 'run' else name}.toml"
        return Service(self.folder, name, command, "--conf", str(conf), words=self._words(name))

    def close(self) -> None:
        for service in (*self.controllers, *self.executors):
            service.stop()

    @property
    def checkpoint(self) -> Path:
        return Path(self.settings.checkpoint.path)

    @property
    def kafka(self) -> KafkaLogSettings:
        """The log, of a site that has it in Kafka."""
        assert self.settings.log.kafka is not None
        return self.settings.log.kafka

    def batches(self) -> int:
        """How many micro-batches the decision query has begun."""
        offsets = Path(Assembly(self.settings).checkpoint) / "offsets"
        return max((int(path.name) + 1 for path in offsets.iterdir() if path.name.isdigit()), default=0)

    def pile_up(self) -> None:
        """Make work: another broker gets too much."""
        self._rounds += 1
        self._piled_at = self.interval
        with self.pulsar.lock:
            self.pulsar.cluster.pile_up(self._rounds)

    def publish(self, between: Between = _nothing) -> int:
        """Sweep the brokers and end the interval, with *between* between both; nobody is waited for."""
        # A new one each time: a client that saw Kafka go needs up to ten seconds to see it come back.
        return self._publish(log_system(self.settings).metrics(), between)

    def publish_many(self, intervals: int) -> int:
        """So many intervals one after the other; returns the last."""
        metrics = log_system(self.settings).metrics()
        return [self._publish(metrics, _nothing) for _ in range(intervals)][-1]

    def publish_by(self, writer: Writer) -> int:
        """The same as :meth:`publish`, by *writer*."""
        return self._publish(writer, _nothing)

    def _publish(self, metrics: Writer, between: Between) -> int:
        self.interval = self._next_interval()
        with self.pulsar.lock:
            cluster = self.pulsar.cluster
            states, sweeps = cluster.changed_namespaces(), list(cluster.sweeps(self.interval))
        metrics.publish(namespace_record(CLUSTER, state) for state in states)
        metrics.publish(record for sweep in sweeps for record in json_records(sweep))
        between(sweeps)
        metrics.tick(self.interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        return self.interval

    def _next_interval(self) -> int:
        if not self._real_time:
            return self.interval + _PERIOD
        following = max(self.interval + _REAL_PERIOD, now_ms() // _REAL_PERIOD * _REAL_PERIOD)
        time.sleep(max(0, following - now_ms()) / 1000)
        return following

    def decision(self, interval: int) -> Decided | None:
        return next((each for each in reversed(self.log.decisions()) if each.entry.interval == interval), None)

    def wait_for_decision(self, interval: int, timeout_seconds: float = 180.0) -> Decided:
        what = f"interval {interval} is decided"
        eventually(lambda: self.decision(interval) is not None, what, timeout_seconds, every=_LOOK_SECONDS)
        decided = self.decision(interval)
        assert decided is not None
        return decided

    def answer(self, command: str) -> Answered | None:
        return next((each for each in self.log.answers() if each.result.id == command), None)

    def come_to_rest(self) -> None:
        """Wait until all that was published is decided, and all that was decided is answered."""
        self.wait_for_decision(self.interval)
        wanted = {command.id for each in self.log.decisions() for command in each.entry.decision.commands}

        def all_are_answered() -> bool:
            return wanted <= {each.result.id for each in self.log.answers()}

        eventually(all_are_answered, "all commands are answered", every=_LOOK_SECONDS)

    def leader(self) -> Life:
        """The process that leads, by what it says."""
        leading = max(self._alive(), key=_newest_epoch)
        assert _newest_epoch(leading), "nobody leads"
        return leading

    def leading(self) -> Service:
        """The service whose process leads."""
        leader = self.leader()
        return next(each for each in self.controllers if each.life is leader)

    def _alive(self) -> list[Life]:
        return [service.life for service in self.controllers if service.life.is_alive()]

    def leaders_epoch(self) -> int:
        return _newest_epoch(self.leader())

    def wait_for_standby(self) -> None:
        """Until every controller stands for election, and has rehearsed unless it leads; at once where one is alone."""
        if len(self.controllers) == 1:
            return
        with _contenders(self.settings) as contenders:
            eventually(lambda: contenders() in (None, len(self.controllers)), "all controllers contend")
            # On a busy machine sessions end by themselves, too: then both may be new, or one leads unrehearsed.
            eventually(lambda: any(map(_newest_epoch, self._alive())), "somebody leads")
            eventually(
                lambda: all(_newest_epoch(each.life) or each.life.says(_STANDS_BY) for each in self.controllers),
                "the others have rehearsed",
            )

    def warm_up(self) -> None:
        """The first intervals: nothing is issued before there are some."""
        eventually(self._first_leader, "somebody leads")
        for _ in range(2):
            self.publish()
            self.come_to_rest()

    def _first_leader(self) -> bool:
        for service in (*self.controllers, *self.executors):
            service.require_first_life()
        return any(_newest_epoch(each.life) for each in self.controllers)

    def audit(self) -> Findings:
        found = audit(self.log, list(self.pulsar.acts), self.forged, obeyed=self.pulsar.obeys)
        return replace(found, wrong=[*found.wrong, *self._misplaced(), *against_the_model(self.log, self.forged)])

    def _misplaced(self) -> Iterator[str]:
        """Bundles that are not where the last answer since they were piled up says."""
        result_of = {each.result.id: each.result for each in self.log.answers()}
        last: dict[str, str] = {}
        for each in self.log.decisions():
            for command in each.entry.decision.commands:
                result = result_of.get(command.id)
                if command.interval > self._piled_at and result is not None and result.status in _IS_THERE:
                    last[command.bundle] = command.destination
        for bundle, destination in last.items():
            if (owner := self.pulsar.cluster.owner(bundle)) != destination:
                yield f"{bundle} is at {owner}; the last answer says {destination}"

    def differences(self) -> list[str]:
        """Where the journal is not what follows from the log."""
        decided = self.log.decisions()
        controls = {each.entry.interval: each.entry.controls for each in decided}
        return differences(decided, undisturbed(self.settings, self.log.inputs(), controls))


@contextmanager
def _contenders(settings: Settings) -> Iterator[Callable[[], int | None]]:
    """Says how many controllers stand for election; None: who waits for a Lease is written down nowhere."""
    election = settings.election
    if election.lease is not None:
        yield lambda: None
        return
    if settings.elects_on_log:
        cells = ElectionCells(log_system(settings).connect_briefly, cluster=CLUSTER, session_seconds=SESSION_SECONDS)

        def count() -> int:
            cells.refresh()
            return len(cells.below(CONTENDERS))

        with closing(cells):
            yield count
        return
    client = KazooClient(hosts=election.hosts)
    client.start(30)
    try:
        path = f"{election.path}/{CLUSTER}/contenders"
        yield lambda: len(client.get_children(path))
    finally:
        client.stop()
        client.close()


def _newest_epoch(life: Life) -> int:
    lines = life.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return max((int(line.rpartition(_LEADS)[2]) for line in lines if _LEADS in line), default=0)


@contextmanager
def kafka_site(
    folder: Path,
    kafka: Sequence[KafkaServer],
    zookeeper: ZooKeeperServer | None,
    real: PulsarCluster | None = None,
    *,
    host: str = LOOPBACK,
    words: Words = _no_words,
    lease: str = "",
) -> Iterator[Site]:
    """Two controllers and two executors with their log in Kafka, and their election there or in *zookeeper*.

    *real*: brokers that carry out the commands.  *host*: where the modelled ones are.  *lease*: the keys of
    [election.lease], which then elects the leader.
    """
    name = uuid4().hex[:8]
    log = named_topics(",".join(each.bootstrap for each in kafka))
    log = log.model_copy(update={"replication_factor": len(kafka)})
    conf = _CONF.format(
        cluster=CLUSTER,
        period=_PERIOD // 1000,
        guardrails="",
        log=f'kind = "kafka"\n[log.kafka]\n{as_toml(log)}',
        election=_election("" if zookeeper is None else zookeeper.hosts, f"/{name}", lease),
    )
    with _site(folder, conf, controllers=2, executors=2, real=real, host=host, words=words) as site:
        yield site


@contextmanager
def pulsar_site(
    folder: Path,
    pulsar: PulsarCluster,
    real: PulsarCluster | None = None,
    *,
    elects_on_log: bool = False,
    sections: str = "",
    real_time: bool = False,
) -> Iterator[Site]:
    """Two controllers and two executors with their log in a real Pulsar, and their election there or in its ZooKeeper.

    *real*: brokers that carry out the commands, which may be the same.  *sections*: of the settings, besides.
    *real_time*: intervals have ten seconds, and end when they say so: signatures are of a time.
    """
    name = uuid4().hex[:8]
    log = PulsarLogSettings(
        service_url=pulsar.service_url, admin_url=pulsar.admin_urls, namespace=f"public/trimtab-{name}", partitions=2
    )
    conf = _CONF.format(
        cluster=CLUSTER,
        period=(_REAL_PERIOD if real_time else _PERIOD) // 1000,
        guardrails=sections,
        log=log_section(log),
        election=_election("" if elects_on_log else pulsar.zookeeper, f"/trimtab-{name}"),
    )
    with _site(folder, conf, controllers=2, executors=2, real=real, real_time=real_time) as site:
        yield site


def _election(zookeeper: str, path: str, lease: str = "") -> str:
    """The keys of [election]; without *zookeeper* it lies in the log.  *lease*: those of [election.lease]."""
    where = f'kind = "zookeeper"\nhosts = "{zookeeper}"\npath = "{path}"' if zookeeper else 'kind = "log"'
    below = f"\n[election.lease]\n{lease}" if lease else ""
    return f"{where}\nsession_timeout_seconds = {SESSION_SECONDS}{below}"


@contextmanager
def folder_site(folder: Path, *, broker_conf: str = _BROKER_CONF, guardrails: str = "") -> Iterator[Site]:
    """One controller and one executor with their log in a folder."""
    conf = _CONF.format(
        cluster=CLUSTER,
        period=_PERIOD // 1000,
        guardrails=guardrails,
        log='kind = "folder"\n[log.folder]\npath = "log"',
        election='kind = "file"\npath = "log/election"',
    )
    with _site(folder, conf, controllers=1, executors=1, broker_conf=broker_conf) as site:
        yield site


@contextmanager
def _site(
    folder: Path,
    conf: str,
    *,
    controllers: int,
    executors: int,
    broker_conf: str = _BROKER_CONF,
    real: PulsarCluster | None = None,
    host: str = LOOPBACK,
    words: Words = _no_words,
    real_time: bool = False,
) -> Iterator[Site]:
    folder.mkdir(parents=True, exist_ok=True)
    opened = (
        real_pulsar(real, entrances=executors)
        if real
        else played_pulsar(brokers=_BROKERS, entrances=executors, host=host)
    )
    with opened as pulsar:
        site = Site(
            folder,
            conf,
            pulsar,
            controllers=controllers,
            broker_conf=broker_conf,
            words=words,
            real_time=real_time,
        )
        try:
            site.warm_up()
            yield site
        finally:
            site.close()
