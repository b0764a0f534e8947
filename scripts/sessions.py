"""`scripts/session`: a real Pulsar of three brokers whose load changes all the time, recorded and replayed.

See docs/what_if.md.

One namespace has 32 bundles and 64 topics.  The rate of each topic drifts every 20 s, and every minute ten topics get 3
to 6 times their rate.  After a third of the time a broker is stopped (``--fault broker``) or killed (``kill``), and it
is started again a minute later; or the controller is killed and started again at once (``controller``).
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import typer

from controller.lab.processes import Processes
from controller.lab.pulsar_demo import start_all, write_conf
from controller.lab.pulsar_release import USUAL, find_release
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.model.errors import TrimtabError
from controller.model.load import Floats
from controller.model.names import topic_hash
from controller.settings.pairs import SHEDDER, needed_by

_BUNDLES, _TOPICS, _MSG_RATE = 32, 64, 250.0
_DRIFT_SECONDS, _MINUTE = 20, 60
_HOT, _HOT_FACTOR = 10, (3.0, 6.0)
_TRIES: Final = 3
#: Options of broker.conf: so sensitive that much is decided within minutes.
_OPTIONS: Final = {
    "loadBalancerMsgRateDifferenceShedderThreshold": "20",
    "minUnloadMessage": "10",
    "minUnloadMessageThroughput": "1000",
    "maxUnloadPercentage": "0.5",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerSheddingGracePeriodMinutes": "1",
    "loadBalancerDistributeBundlesEvenlyEnabled": "false",
    # The brokers share one busy machine: its CPU usage says nothing about them.
    "loadBalancerBrokerOverloadedThresholdPercentage": "1000",
    "loadBalancerNamespaceBundleMaxMsgRate": "110",
    "loadBalancerNamespaceMaximumBundles": "64",
    "trimtabSheddingIntervalSeconds": "20",
}
Fault = Literal["none", "broker", "kill", "controller"]

app = typer.Typer(add_completion=False)


class _Demand:
    """The rates of all topics, which change as the module docstring says."""

    def __init__(self, topics: list[str], seed: int) -> None:
        self.topics = topics
        self._chance = np.random.Generator(np.random.PCG64(seed))
        size = self._chance.permutation(1.0 / np.arange(1, len(topics) + 1) ** 0.5)
        self._mean: Floats = _MSG_RATE * size / size.sum()
        self._drift: Floats = np.zeros(len(topics))
        self._hot: Floats = np.ones(len(topics))

    def drift(self) -> None:
        """Let all rates wander."""
        self._drift = 0.9 * self._drift + 0.2 * self._chance.standard_normal(len(self.topics))

    def heat(self) -> None:
        """Choose the hot topics anew."""
        self._hot = np.ones(len(self.topics))
        self._hot[self._chance.permutation(len(self.topics))[:_HOT]] = self._chance.uniform(*_HOT_FACTOR, _HOT)

    def rates(self) -> dict[str, float]:
        """Topic -> msg/s."""
        return dict(zip(self.topics, (self._mean * self._hot * np.exp(self._drift)).tolist(), strict=True))


def _topics(namespace: str) -> list[str]:
    """Names of topics, two in each bundle."""
    found: dict[int, list[str]] = {}
    number = 0
    while sum(map(len, found.values())) < _TOPICS:
        topic = f"persistent://{namespace}/topic-{number}"
        inside = found.setdefault(topic_hash(topic) * _BUNDLES >> 32, [])
        if len(inside) < _TOPICS // _BUNDLES:
            inside.append(topic)
        number += 1
    return [topic for topics in found.values() for topic in topics]


def _start_again(cluster: PulsarCluster, part: str) -> None:
    """Start *part* again; on an overloaded machine it may not answer in time, so it is tried more than once."""
    for tried in range(1, _TRIES + 1):
        try:
            cluster.parts[part].start()
        except TrimtabError:
            if tried == _TRIES:
                raise
        else:
            return


def _inflict(fault: Fault, cluster: PulsarCluster, processes: Processes) -> None:
    match fault:
        case "broker" | "kill":
            cluster.parts["broker-1"].stop(signal.SIGKILL if fault == "kill" else signal.SIGTERM)
        case "controller":
            os.killpg(processes.pid("run"), signal.SIGKILL)
            processes.start("run")


def _play(
    minutes: float, fault: Fault, cluster: PulsarCluster, traffic: Traffic, demand: _Demand, run: Processes
) -> None:
    begun = time.monotonic()
    fault_at, back_at = 60 * minutes / 3, 60 * minutes / 3 + _MINUTE
    drifts = heats = 0
    while (elapsed := time.monotonic() - begun) < 60 * minutes:
        if elapsed >= _DRIFT_SECONDS * drifts:
            drifts += 1
            demand.drift()
            if elapsed >= _MINUTE * heats:
                heats += 1
                demand.heat()
            traffic.set_rates(demand.rates())
        if elapsed >= fault_at:
            typer.echo(f"{elapsed:.0f} s: {fault}")
            _inflict(fault, cluster, run)
            fault_at = float("inf")
        if fault in ("broker", "kill") and elapsed >= back_at:
            _start_again(cluster, "broker-1")
            typer.echo(f"{time.monotonic() - begun:.0f} s: the broker is back")
            back_at = float("inf")
        run.check()
        time.sleep(0.2)


def _conf(folder: Path, cluster: PulsarCluster, strategy: str, more: Sequence[str]) -> Path:
    conf = write_conf(folder, cluster)
    options = {SHEDDER: strategy, **needed_by(strategy), **_OPTIONS, **dict(each.split("=", 1) for each in more)}
    conf.with_name("pulsar.broker.conf").write_text("".join(f"{key}={value}\n" for key, value in options.items()))
    return conf


def _trimtab(*words: object) -> None:
    command = [sys.executable, "-m", "controller.cli", *map(str, words)]
    typer.echo(f"trimtab {' '.join(map(str, words))}")
    subprocess.run(command, check=True)


@app.command(help=__doc__)
def main(
    folder: Annotated[Path, typer.Argument(help="A new folder: logs, settings, and the recording.")],
    strategy: str = "UniformLoadShedder",
    minutes: float = 8.0,
    fault: Fault = "broker",
    seed: int = 1,
    pulsar: Annotated[str, typer.Option(metavar="VERSION", help="Release of the brokers: 4.0, 5.0.")] = USUAL.version,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of broker.conf; may be given again.")] = None,
) -> None:
    """Play the session, record its log to FOLDER/recording, and say what a replay makes of it."""
    folder.mkdir(parents=True)
    namespace = "session/orders"
    with pulsar_cluster(folder / "pulsar", processes=True, release=find_release(pulsar)) as cluster:
        conf = _conf(folder, cluster, strategy, option or ())
        admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
        stage = set_stage(admin, namespace, _BUNDLES)
        stage.gather(cluster.brokers[0])
        admin.close()
        demand = _Demand(_topics(namespace), seed)
        flowing = Traffic(cluster.service_url, demand.rates(), folder / "traffic.log")
        with flowing as traffic, Processes(conf, folder) as processes:
            start_all(processes)
            _play(minutes, fault, cluster, traffic, demand, processes)
        recording = folder / "recording"
        _trimtab("record", "--conf", conf, "-o", recording)
    _trimtab("replay", recording)
    _trimtab("what-if", recording)


if __name__ == "__main__":
    app()
