"""``python -m tests.rolling_restart``: restart three real brokers, one after the other, by a plan, under traffic.

``--pulsar 5.0``: brokers of that release, in place of the usual one.

``--extensible``: brokers with the extensible load manager, which keeps the planned destination in its own log of
ownership.  The modular one keeps it in its leader's memory, and forgets it at the first lookup.

``--hook``: `trimtab apply --hook` carries out the plan and restarts the brokers; it is killed once on the way.

ZooKeeper, a bookie and every broker are processes of their own, beside Kafka and trimtab's commands.  A thread asks
the brokers every second who owns which bundle.  Printed are the moves of each bundle beside those of the plan and the
fewest that any order needs, how full each broker was, and messages that were acknowledged and not received.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any, Final

import typer

from controller.adapters.kafka.specs import create_topics
from controller.adapters.process.tied_child import tied_child
from controller.adapters.pulsar.http import PulsarError
from controller.cli.controls import release
from controller.lab import pulsar_stage
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import flowing, start_all
from controller.lab.pulsar_release import USUAL, PulsarRelease, find_release
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.lab.servers import kafka_server, zookeeper_server
from controller.settings.trimtab_toml import read_settings
from tests.maintenance import carried_out, decided, planned, run, write_settings
from tests.rolling_restart.restarter import Restarter

BUNDLES: Final = 24
RATES: Final = tuple(rate / 4 for rate in pulsar_stage.RATES)
#: Two brokers that carry everything are this full.
_FULL: Final = 0.75
_PERIOD_SECONDS: Final = 20
#: Pulsar's rates are those of the last seconds.
_SETTLE_SECONDS: Final = 15.0
_MESSAGES_SECONDS: Final = 120.0
EXTENSIBLE: Final = {
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
}


class Owners:
    """Who owned which bundle, asked every second."""

    def __init__(self, stage: Stage, brokers: Sequence[str]) -> None:
        self._stage, self._brokers = stage, brokers
        self._now: dict[str, str] = {}
        #: Bundle -> the brokers that it came to.
        self.came: dict[str, list[str]] = {bundle: [] for bundle in stage.bundles}
        self._end = threading.Event()
        self._asking = threading.Thread(target=self._ask, daemon=True)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Ask until the block ends."""
        self.look()
        self.came = {bundle: [] for bundle in self._stage.bundles}
        self._asking.start()
        try:
            yield
        finally:
            self._end.set()
            self._asking.join()

    def look(self) -> None:
        """Ask once."""
        for broker in self._brokers:
            try:
                owned = self._stage.admin.owned(broker)
            except PulsarError:
                continue
            for bundle in owned & self.came.keys():
                if self._now.get(bundle) != broker:
                    self.came[bundle].append(broker)
                    self._now[bundle] = broker

    def _ask(self) -> None:
        while not self._end.wait(1.0):
            self.look()


def restarted(cluster: PulsarCluster, broker: str) -> None:
    """End *broker* as an operator does, and start it again."""
    part = cluster.parts[f"broker-{cluster.brokers.index(broker)}"]
    part.stop()
    part.start()


def carried(stage: Stage, brokers: Sequence[str], capacity: float) -> dict[str, float]:
    """How full each broker is, by its message rate."""
    time.sleep(_SETTLE_SECONDS)
    rates = stage.msg_rates(brokers) / capacity
    return dict(zip(brokers, [round(float(rate), 2) for rate in rates], strict=True))


def told(said: Mapping[str, Any], owners: Owners, missing: Mapping[str, list[int]], traffic: Traffic) -> bool:
    """Print what came of it; whether all of it is as the plan says."""
    wanted = Counter(move["bundle"] for step in said["steps"] for wave in step["waves"] for move in wave)
    seen = {bundle: len(came) for bundle, came in owners.came.items()}
    more = {bundle: (times, wanted[bundle]) for bundle, times in seen.items() if times > wanted[bundle]}
    print(f"the fewest moves that any order needs {said['fewestMoves']}, planned {said['moves']}")
    print(f"moves seen {sum(seen.values())}, for each bundle {sorted(seen.values())}")
    print(f"times a bundle moved: planned {Counter(wanted.values())}, seen {Counter(seen.values())}")
    print(f"bundles that moved more often than planned (seen, planned): {more or 'none'}")
    print(f"messages: {traffic.total_acknowledged} acknowledged of {sum(traffic.sent)}, lost {missing or 'none'}")
    return not more and not missing


def by_steps(stage: Stage, cluster: PulsarCluster, conf: Path, said: dict[str, Any], capacity: float) -> None:
    """Carry out step after step, and restart and release the brokers of each as a person does."""
    for number, step in enumerate(said["steps"], 1):
        began = time.monotonic()
        halted = carried_out(conf, said, step=number, rest_seconds=3.0 * _PERIOD_SECONDS)
        full = carried(stage, cluster.brokers, capacity)
        moves = sum(map(len, step["waves"]))
        print(
            f"step {number}: {step['task']} {step['brokers']}, {moves} moves in"
            f" {time.monotonic() - began:.0f} s; promised {step['reached']:.2f}, carried {full};"
            f" planned anew {len(halted)} times {halted}",
            flush=True,
        )
        if step["task"] == "empty":
            for broker in step["brokers"]:
                assert stage.admin.owned(broker).isdisjoint(stage.bundles), broker
                restarted(cluster, broker)
                assert run(release, conf, broker).exit_code == 0
            # The controller freezes commands while brokers come and go.
            time.sleep(4.0 * _PERIOD_SECONDS)


def by_hook(stage: Stage, cluster: PulsarCluster, conf: Path, said: Mapping[str, Any]) -> None:
    """Carry out all steps by `trimtab apply --hook`, which is killed in the second broker's hook and started again."""
    began, with_bundles = time.monotonic(), list[str]()

    def restart(broker: str) -> None:
        if not stage.admin.owned(broker).isdisjoint(stage.bundles):
            with_bundles.append(broker)
        restarted(cluster, broker)

    with Restarter(restart).serving() as restarter, (conf.parent / "apply.log").open("ab") as log:
        words = ["apply", said["file"], "--hash", said["sha256"], "--hook", restarter.command, "--conf", str(conf)]
        command = [sys.executable, "-m", "controller.cli", *words]
        kill = True
        while True:
            with tied_child(command, stdout=log, stderr=log, environment=os.environ, new_session=True) as process:
                while process.poll() is None and not (kill and len(restarter.begun) == 2):
                    time.sleep(0.2)
                if process.poll() is None:
                    print(f"apply is killed {time.monotonic() - began:.0f} s after its start", flush=True)
                    process.kill()
                    kill = False
                    continue
                break
        print(f"apply ended with {process.returncode} after {time.monotonic() - began:.0f} s", flush=True)
        print((conf.parent / "apply.log").read_text(), flush=True)
        assert process.returncode == 0
        assert not with_bundles, f"restarted with bundles: {with_bundles}"
        assert set(restarter.begun) == set(cluster.brokers)
        assert len(restarter.begun) <= len(cluster.brokers) + 1


def restart_all(settings_of_brokers: Mapping[str, str], of: PulsarRelease, folder: Path, *, hook: bool = False) -> bool:
    """The whole run on brokers *of* a release.  False: a bundle moved more often than planned, or a message is lost.

    *hook*: `trimtab apply --hook` restarts them.
    """
    with (
        zookeeper_server(folder / "zookeeper") as zookeeper,
        kafka_server(folder / "kafka") as kafka,
        pulsar_cluster(folder / "pulsar", processes=True, settings=settings_of_brokers, release=of) as cluster,
    ):
        admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
        stage = set_stage(admin, "restart/orders", BUNDLES, RATES)
        for number, bundle in enumerate(stage.bundles):
            stage.bring(bundle, cluster.brokers[number % len(cluster.brokers)])
        capacity = 2 * sum(stage.rates.values()) / (2 * _FULL)
        conf = write_settings(folder, cluster, kafka, zookeeper, period_seconds=_PERIOD_SECONDS, msg_rate=capacity)
        settings = read_settings(conf)
        assert settings.log.kafka is not None
        create_topics(settings.log.kafka)
        with Traffic(cluster.service_url, stage.rates, folder / "traffic.log") as traffic:
            flowing(stage, cluster.brokers)
            with Processes(conf, folder) as processes:
                start_all(processes)
                decided(settings, processes, 3)
                said = planned(conf, "--rolling-restart", "-o", folder / "plan.json")
                owners = Owners(stage, cluster.brokers)
                with owners.followed():
                    if hook:
                        by_hook(stage, cluster, conf, said)
                    else:
                        by_steps(stage, cluster, conf, said, capacity)
                print("trimtab's processes ended with", processes.stop(), flush=True)
            missing = traffic.drain(_MESSAGES_SECONDS)
        as_planned = told(said, owners, missing, traffic)
        admin.close()
    return as_planned


def main(
    extensible: Annotated[bool, typer.Option("--extensible")] = False,
    hook: Annotated[bool, typer.Option("--hook")] = False,
    pulsar: Annotated[str, typer.Option(metavar="VERSION")] = USUAL.version,
) -> None:
    """Exits with 1 where a bundle moved more often than planned, or a message was lost."""
    folder = Path(mkdtemp(prefix="trimtab-rolling-restart-"))
    print(f"logs in {folder}", flush=True)
    settings = EXTENSIBLE if extensible else {}
    raise typer.Exit(0 if restart_all(settings, find_release(pulsar), folder, hook=hook) else 1)


if __name__ == "__main__":
    typer.run(main)
