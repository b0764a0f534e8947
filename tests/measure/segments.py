"""How evenly the segments of a scalable topic lie on brokers: Pulsar 5.0's own balancing beside PeakShedder's.

A real cluster of Pulsar 5.0, a topic with one hot half of its keys, and thresholds that make brokers split its segments
within the first minute.  Runs of both take turns, each on a cluster of its own; both runs of a pair have a topic of the
same name, so that the hashes of its segments are the same.  Pulsar's own balancing is AvgShedder, the default of 5.0,
and UniformLoadShedder, which compares messages and bytes: brokers of one machine report its CPU, which is the same for
all.  Messages come from Pulsar's Java client v5: no other client produces to scalable topics.  It needs a JDK.  That
client sometimes stops at a split for good; then it is started again, and the run says how often.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import urllib3

from controller.adapters.network.deadline import Deadline
from controller.adapters.process.tied_child import foreign, tied_child
from controller.lab.processes import Processes
from controller.lab.pulsar_conf import CLUSTER, JAVA_OPTIONS
from controller.lab.pulsar_demo import start_all
from controller.lab.pulsar_release import PulsarRelease, find_release
from controller.lab.pulsar_server import PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import StageAdmin
from controller.model.errors import TrimtabError
from controller.model.load import Floats
from controller.model.topic_name import parse_topic

_SOURCE: Final = Path(__file__).parent / "java" / "SegmentTraffic.java"
_NAMESPACE: Final = "bench/segments"
_BUNDLES: Final = 32
_RATE, _BYTES, _HOT_PERCENT = 400, 1024, 90
#: Brokers split what has more than a tenth of the messages, every few seconds.
_SCALING: Final[Mapping[str, str]] = {
    "scalableTopicSplitMsgRateInThreshold": "40",
    "scalableTopicMergeMsgRateInThreshold": "1",
    "scalableTopicSplitCooldownSeconds": "5",
    "scalableTopicAutoScaleIntervalSeconds": "5",
    "scalableTopicLoadReportIntervalSeconds": "2",
    "scalableTopicLoadReportRateChangeThreshold": "0.05",
    "loadBalancerSheddingIntervalMinutes": "1",
}
#: AvgShedder otherwise waits for eight rounds of a minute: longer than a run.
_OWN: Final = {
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerSheddingGracePeriodMinutes": "1",
    "loadBalancerAvgShedderHitCountLowThreshold": "1",
    "loadBalancerAvgShedderHitCountHighThreshold": "1",
}
_UNIFORM: Final = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
#: Who balances -> what the brokers run with besides.
BALANCERS: Final[Mapping[str, Mapping[str, str]]] = {
    "Pulsar, AvgShedder": _OWN,
    "Pulsar, UniformLoadShedder": {
        **_OWN,
        "loadBalancerLoadSheddingStrategy": _UNIFORM,
        "loadBalancerLoadPlacementStrategy": "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate",
        "loadBalancerMsgRateDifferenceShedderThreshold": "10",
        "minUnloadMessage": "1",
        "minUnloadMessageThroughput": "1",
    },
    "trimtab, PeakShedder": {},
}
_TRIMTAB: Final = "trimtab, PeakShedder"
_PERIOD: Final = 10
_SETTINGS: Final = """\
[cluster]
name = "{cluster}"
broker_conf = "broker.conf"
[intervals]
period_seconds = {period}
shards = 2
warm_up_samples = 1
[log]
kind = "folder"
[log.folder]
path = "log"
[election]
kind = "file"
path = "election"
[checkpoint]
path = "checkpoint"
[spark]
master = "local[2]"
shuffle_partitions = 1
conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
[decisions]
mode = "active"
split = false
[guardrails]
freeze_intervals = 0
[pulsar]
admin_url = ["{admin}"]
"""
_BROKER_CONF: Final[Mapping[str, str]] = {
    "loadBalancerLoadSheddingStrategy": "PeakShedder",
    "loadBalancerCPUResourceWeight": "0",
    "loadBalancerBandwidthInResourceWeight": "0",
    "loadBalancerBandwidthOutResourceWeight": "0",
    "loadBalancerDirectMemoryResourceWeight": "0",
    # Twice the mean of three brokers.
    "trimtabPeakShedderBrokerMsgRate": str(2 * _RATE // 3),
    "trimtabPeakShedderSegmentPercentage": "5",
    "trimtabPeakShedderSettleMinutes": "0",
    "loadBalancerSheddingGracePeriodMinutes": "1",
}
_CONFLICT: Final = 409
_SAMPLE_SECONDS: Final = 5.0
_START_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRun:
    """One run; unevenness is the highest msgThroughputIn of a broker over the mean of all."""

    pair: int
    balancer: str
    client: str
    #: How often the client had stopped, and was started again: before it was measured, and while it was.
    stops: tuple[int, int]
    #: Active segments at the end, and brokers that serve them.
    segments: int
    serving: int
    #: Mean and highest over the samples at the end.
    unevenness: float
    worst: float
    samples: int
    #: Bytes/s in of each broker at the end.
    throughput_in: tuple[float, ...]
    #: Mean unevenness of each half minute since the client began.
    course: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A run that says nothing, and why."""

    pair: int
    balancer: str
    failed: str


def segment_runs(
    pairs: Sequence[int], folder: Path, balancers: Sequence[str], *, settle_seconds: float, measure_seconds: float
) -> Iterator[SegmentRun | FailedRun]:
    """A run of each of *balancers* for each number of *pairs*, in turns."""
    release = find_release("5")
    for pair in pairs:
        # Who comes first changes, too.
        names = list(balancers) if pair % 2 == 0 else list(balancers)[::-1]
        for name in names:
            place = folder / f"{pair}-{list(BALANCERS).index(name)}"
            try:
                yield _run(pair, name, release, place, settle_seconds, measure_seconds)
            except TrimtabError as error:
                yield FailedRun(pair=pair, balancer=name, failed=str(error))


def _run(
    pair: int, balancer: str, release: PulsarRelease, folder: Path, settle_seconds: float, measure_seconds: float
) -> SegmentRun:
    folder.mkdir(parents=True)
    topic = f"orders-{pair}"
    with ExitStack() as running:
        settings = dict(_SCALING) | dict(BALANCERS[balancer])
        cluster = running.enter_context(pulsar_cluster(folder / "pulsar", settings=settings, release=release))
        admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
        running.callback(admin.close)
        admin.create_namespace(_NAMESPACE, _BUNDLES)
        _put(cluster, f"/scalable/{_NAMESPACE}/{topic}?numInitialSegments=2")
        name = parse_topic(f"topic://{_NAMESPACE}/{topic}")
        # Of a topic with producers alone nobody is the controller, and nothing is split, until it is asked for.
        admin.scalable_topic(name)
        traffic = running.enter_context(_traffic(cluster, release, str(name), folder / "traffic.log"))
        settled = Deadline.after(settle_seconds)
        if balancer == _TRIMTAB:
            start_all(running.enter_context(Processes(_conf(folder, cluster), folder)))
        before = _samples(admin, cluster, settled)
        stopped_before = traffic.stops
        samples = _samples(admin, cluster, Deadline.after(measure_seconds))
        layout = admin.scalable_topic(name)["layout"]["segments"].values()
    if samples.mean(axis=0).sum() < _RATE * _BYTES / 2:
        raise TrimtabError(f"{samples.mean(axis=0).sum():.0f} bytes/s come in: the client has stopped, see {folder}")
    active = [each for each in layout if each["state"] == "ACTIVE"]
    factors = _unevenness(samples)
    return SegmentRun(
        pair=pair,
        balancer=balancer,
        client=f"pulsar-client-v5 {release.version} (Java)",
        stops=(stopped_before, traffic.stops - stopped_before),
        segments=len(active),
        serving=len({each["ownerBroker"] for each in active}),
        unevenness=float(factors.mean()),
        worst=float(factors.max()),
        samples=len(samples),
        throughput_in=tuple(samples.mean(axis=0).round(0).tolist()),
        course=_course(_unevenness(np.vstack([before, samples]))),
    )


def _samples(admin: StageAdmin, cluster: PulsarCluster, deadline: Deadline) -> Floats:
    """(samples, brokers) msgThroughputIn of the brokers' own reports, one each few seconds."""
    samples = list[list[float]]()
    while not samples or not deadline.passed:
        samples.append([float(admin.load_report(broker)["msgThroughputIn"]) for broker in cluster.brokers])
        time.sleep(_SAMPLE_SECONDS)
    return np.array(samples)


def _unevenness(samples: Floats) -> Floats:
    """(samples,) the highest of *samples* (samples, brokers) over the mean; 1 where nothing came in."""
    mean = samples.mean(axis=1)
    unevenness: Floats = np.divide(samples.max(axis=1), mean, out=np.ones(len(samples)), where=mean > 0)
    return unevenness


def _course(unevenness: Floats) -> tuple[float, ...]:
    """The mean of *unevenness* (samples,) for each half minute."""
    step = int(30 / _SAMPLE_SECONDS)
    return tuple(round(float(unevenness[i : i + step].mean()), 2) for i in range(0, len(unevenness), step))


class _Traffic:
    """The client, started again whenever it ends."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.stops = 0
        self._command, self._log, self._over = command, log, threading.Event()
        self._thread = threading.Thread(target=self._keep, name="traffic", daemon=True)

    def start(self) -> None:
        """Begin, and wait until it sends."""
        self._thread.start()
        deadline = Deadline.after(_START_SECONDS)
        while not self._log.exists() or b"sending" not in self._log.read_bytes():
            if deadline.passed or self.stops:
                raise TrimtabError(f"the client does not send: see {self._log}")
            time.sleep(1.0)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._over.is_set():
            with (
                self._log.open("ab") as out,
                tied_child(self._command, stdout=out, stderr=out, environment=os.environ) as child,
            ):
                while child.poll() is None and not self._over.wait(0.5):
                    pass
                self.stops += child.poll() is not None


@contextmanager
def _traffic(cluster: PulsarCluster, release: PulsarRelease, topic: str, log: Path) -> Iterator[_Traffic]:
    """Messages to *topic* for the length of the block."""
    path = os.pathsep.join([release.classpath(), str(log.parent)])
    # The client takes one address.
    words = [cluster.service_url.split(",")[0], topic, str(_RATE), str(_BYTES), str(_HOT_PERCENT)]
    # Janino, which compiles the lab's Java, knows no static methods of interfaces.
    subprocess.run(["javac", "-nowarn", "-cp", path, "-d", str(log.parent), str(_SOURCE)], check=True)
    command = foreign([release.java(), "-Xmx192m", *JAVA_OPTIONS, "-cp", path, "SegmentTraffic", *words])
    traffic = _Traffic(command, log)
    try:
        traffic.start()
        yield traffic
    finally:
        traffic.stop()


def _put(cluster: PulsarCluster, path: str) -> None:
    answer = urllib3.request("PUT", f"{cluster.admin_urls[0]}/admin/v2{path}")
    if answer.status >= 300 and answer.status != _CONFLICT:  # a try before this one was carried out
        raise TrimtabError(f"PUT {path}: {answer.status} {answer.data[:200]!r}")


def _conf(folder: Path, cluster: PulsarCluster) -> Path:
    """The settings of trimtab."""
    conf = folder / "trimtab.toml"
    conf.write_text(_SETTINGS.format(cluster=CLUSTER, period=_PERIOD, admin=cluster.admin_urls[0]), encoding="utf-8")
    options = dict(_SCALING) | dict(_BROKER_CONF)
    lines = [f"{key}={value}\n" for key, value in options.items()]
    (folder / "broker.conf").write_text("".join(lines), encoding="utf-8")
    return conf
