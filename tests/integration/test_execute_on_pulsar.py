"""`trimtab execute` as a process on real Pulsar, each part of which can be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Timer

import pytest

from controller.adapters.pulsar_admin import PulsarAdmin
from controller.adapters.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.executor.attempt import PulsarTarget, carry_out
from controller.model.decision import Command
from controller.wire.commands import command_event, epoch_event
from controller.wire.results import Result, decode_result
from tests.commands import unload
from tests.integration.test_pulsar_cluster import RANGES, put

pytestmark = pytest.mark.integration

BUNDLES = [f"lab/parts/{lower}_{upper}" for lower, upper in pairwise(RANGES)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarCluster]:
    with pulsar_cluster(tmp_path_factory.mktemp("pulsar"), processes=True) as cluster:
        put(cluster, "/tenants/lab", {"allowedClusters": [CLUSTER]})
        put(cluster, "/namespaces/lab/parts", {"bundles": {"boundaries": RANGES}, "replication_clusters": [CLUSTER]})
        yield cluster


def elsewhere(cluster: PulsarCluster, *owners: str) -> str:
    return next(broker for broker in cluster.brokers if broker not in owners)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def results(folder: Path) -> dict[str, Result]:
    lines = [line for path in folder.glob("results/*.jsonl") for line in path.read_bytes().splitlines()]
    read = [decode_result(line, cluster=CLUSTER, period_ms=60_000) for line in lines]
    return {each.id: each for each in read if isinstance(each, Result)}


def test_commands_of_a_folder_log_are_carried_out_by_the_command_line(cluster: PulsarCluster, tmp_path: Path) -> None:
    admin = PulsarAdmin(cluster.admin_urls, cluster=CLUSTER)
    owners = {bundle: admin.lookup(bundle) for bundle in BUNDLES}
    commands = [
        unload(bundle, source=owner, destination=elsewhere(cluster, owner), expires_at_ms=now_ms() + 60_000)
        for bundle, owner in owners.items()
    ]
    (tmp_path / "commands").mkdir()
    events = [epoch_event(CLUSTER, 1, now_ms()), *(command_event(each, 1, now_ms()) for each in commands)]
    (tmp_path / "commands" / "1.jsonl").write_bytes(b"\n".join(events))
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        f"""cluster.name = "{CLUSTER}"
log = {{kind = "folder", folder.path = "."}}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
pulsar.admin_url = ["{cluster.admin_urls[0]}"]
""",
        encoding="utf-8",
    )
    program = "from controller.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", program, "execute", "--conf", str(conf)]) as executor:
        deadline = time.monotonic() + 60
        while len(results(tmp_path)) < len(commands) and time.monotonic() < deadline and executor.poll() is None:
            time.sleep(0.1)
        executor.send_signal(signal.SIGTERM)
        assert executor.wait(20) == 0
    assert {name: each.status for name, each in results(tmp_path).items()} == {each.id: "done" for each in commands}
    assert {each.bundle: admin.owner(each.bundle) for each in commands} == {
        each.bundle: each.destination for each in commands
    }


def test_a_broker_killed_while_a_bundle_leaves_it_is_told_as_it_ended(cluster: PulsarCluster) -> None:
    bundle = BUNDLES[1]
    admin = PulsarAdmin(cluster.admin_urls, cluster=CLUSTER, read_seconds=30)
    owner = admin.lookup(bundle)
    destination = elsewhere(cluster, owner, admin.leader())
    others = [url for url in cluster.admin_urls if not url.endswith(owner)]
    part = cluster.parts[f"broker-{cluster.brokers.index(owner)}"]

    class Killing(PulsarTarget):
        def act(self, command: Command) -> None:
            # Stopped first: it takes the call, and dies before it can answer.
            pid = part.pid()
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            killer = Timer(1.0, part.stop, [signal.SIGKILL])
            killer.start()
            try:
                super().act(command)
            finally:
                killer.join()

    target = Killing(PulsarAdmin(others, cluster=CLUSTER, read_seconds=30))
    outcome = carry_out(unload(bundle, source=owner, destination=destination), target, may_act=lambda: None)
    assert outcome.owner_before == owner
    assert outcome.attempts == 1
    # The brokers place it when the dead one's session ends; whoever has it then, the answer says so.
    assert outcome.owner_after == PulsarAdmin(others, cluster=CLUSTER).owner(bundle)
    assert outcome.owner_after in set(cluster.brokers) - {owner}
    assert outcome.answer.status == ("done" if outcome.owner_after == destination else "failed")
