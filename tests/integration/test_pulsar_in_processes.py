"""A Pulsar cluster whose brokers are processes of their own, so that one can die in the middle of a command."""

import os
import signal
from collections.abc import Iterator
from threading import Timer

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.executor.attempt import PulsarTarget, carry_out
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.model.decision import Command
from tests.commands import unload
from tests.integration.test_pulsar_cluster import RANGES, SECOND, put

pytestmark = pytest.mark.integration

BUNDLE = f"lab/parts/{SECOND}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, pulsar_release: PulsarRelease) -> Iterator[PulsarCluster]:
    folder = tmp_path_factory.mktemp("pulsar")
    with pulsar_cluster(folder, processes=True, release=pulsar_release) as cluster:
        put(cluster, "/tenants/lab", {"allowedClusters": [CLUSTER]})
        put(cluster, "/namespaces/lab/parts", {"bundles": {"boundaries": RANGES}, "replication_clusters": [CLUSTER]})
        yield cluster


def test_a_broker_killed_while_a_bundle_leaves_it_is_told_as_it_ended(cluster: PulsarCluster) -> None:
    admin = PulsarAdmin(cluster.admin_urls, cluster=CLUSTER)
    owner = admin.lookup(BUNDLE)
    destination = next(broker for broker in cluster.brokers if broker not in (owner, admin.leader()))
    others = PulsarAdmin([url for url in cluster.admin_urls if not url.endswith(owner)], cluster=CLUSTER)
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

    command = unload(BUNDLE, source=owner, destination=destination)
    outcome = carry_out(command, Killing(others).within(60), may_act=lambda: None)
    assert outcome.owner_before == owner
    assert outcome.attempts == 1
    # The brokers place it when the dead one's session ends; whoever has it then, the answer says so.
    assert outcome.owner_after == others.owner(BUNDLE)
    assert outcome.owner_after in set(cluster.brokers) - {owner}
    assert outcome.answer.status == ("done" if outcome.owner_after == destination else "failed")
