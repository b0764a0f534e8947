"""`trimtab collect` on real brokers with real traffic: both load managers, and brokers that demand a token."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pulsar as pulsar_client
import pytest
import urllib3

from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.admin import Credentials, PulsarAdmin, Tls
from controller.adapters.pulsar.load_data import PulsarLoadData
from controller.collector.reports import SweepName
from controller.collector.sweeper import Sweeper
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import next_entry
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.servers import free_port
from controller.model.journal import JournalEntry
from controller.model.memory import OwnBalancing
from controller.settings.capacity import CapacityOverrides
from controller.settings.trimtab_toml import read_settings
from controller.wire.chunks import json_chunks
from controller.wire.metrics import BrokerStateRecord, NamespaceStateRecord, TickRecord, decode_metric
from controller.wire.sweep import BrokerSweep
from tests.pulsar_tokens import demanding_tokens, token

pytestmark = pytest.mark.integration

RANGES = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")
TOPICS = 8
MESSAGES_PER_SECOND = 50
PERIOD_SECONDS = 4
PATIENCE_SECONDS = 60.0


def make_namespace(cluster: PulsarCluster, headers: dict[str, str]) -> str:
    name = f"swept/ns-{uuid4().hex[:8]}"
    bundles = {"bundles": {"boundaries": RANGES, "numBundles": 4}, "replication_clusters": [CLUSTER]}
    for path, body in (("/tenants/swept", {"allowedClusters": [CLUSTER]}), (f"/namespaces/{name}", bundles)):
        url = f"{cluster.admin_urls[0]}/admin/v2{path}"
        given = {"Content-Type": "application/json", **headers}
        answer = urllib3.request("PUT", url, body=json.dumps(body).encode(), headers=given)
        assert answer.status in (204, 409), answer.data
    return name


@contextmanager
def pulsar_to(cluster: PulsarCluster, credentials: Credentials | None = None) -> Iterator[pulsar_client.Client]:
    authentication = pulsar_client.AuthenticationToken(credentials.token) if credentials else None
    quiet = pulsar_client.ConsoleLogger(pulsar_client.LoggerLevel.Error)
    client = pulsar_client.Client(cluster.service_url, authentication=authentication, logger=quiet)
    yield client
    client.close()


@contextmanager
def traffic(client: pulsar_client.Client, namespace: str) -> Iterator[Callable[[], None]]:
    """Call it now and then: it has sent MESSAGES_PER_SECOND to every topic since."""
    producers = [client.create_producer(f"persistent://{namespace}/topic-{number}") for number in range(TOPICS)]
    started, sent = time.monotonic(), 0

    def go_on() -> None:
        nonlocal sent
        due = int((time.monotonic() - started) * MESSAGES_PER_SECOND)
        for _ in range(due - sent):
            for producer in producers:
                producer.send_async(b"x" * 100, lambda *_: None)
        sent = due

    yield go_on
    for producer in producers:
        producer.close()


def eventually(done: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, "waited in vain"
        meanwhile()


def test_rates_of_real_traffic_arrive_with_what_is_known_of_brokers_and_namespaces(
    pulsar: PulsarCluster, pulsar_release: PulsarRelease, tmp_path: Path
) -> None:
    def meanwhile() -> None:
        go_on()
        time.sleep(0.2)

    namespace = make_namespace(pulsar, {})
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{period_seconds = {PERIOD_SECONDS}}}
        log = {{kind = "folder", folder = {{path = "log"}}}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        collector = {{zookeeper = "{pulsar.zookeeper}", state_every = 1}}
        """,
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "controller.cli", "collect", "--conf", str(conf)]
    client = pulsar_client.Client(
        pulsar.service_url, logger=pulsar_client.ConsoleLogger(pulsar_client.LoggerLevel.Error)
    )
    with traffic(client, namespace) as go_on, subprocess.Popen(command) as collector:
        try:
            wanted = TOPICS * MESSAGES_PER_SECOND
            eventually(lambda: _rate_of(tmp_path, namespace) > 0.8 * wanted, meanwhile)
            # Sweeps end the interval.  Namespaces may come right behind it, and brokers' states with the next sweeps.
            eventually(lambda: _states_of(tmp_path, namespace) != [], meanwhile)
            eventually(lambda: len(_brokers_of(tmp_path)) == len(pulsar.brokers), meanwhile)
        finally:
            collector.terminate()
            assert collector.wait(20) == 0
    records = _records(tmp_path)
    ticks = [each for each in records if isinstance(each, TickRecord)]
    assert [entry.broker for entry in ticks[-1].roster or ()] == sorted(pulsar.brokers)
    state = _states_of(tmp_path, namespace)[-1]
    assert state.boundaries == tuple(int(boundary, 16) for boundary in RANGES)
    assert {each.broker_version_string for each in _brokers_of(tmp_path).values()} == {pulsar_release.version}
    assert sum(each.leader is True for each in _brokers_of(tmp_path).values()) == 1
    assert _rate_of(tmp_path, namespace) < 1.5 * wanted, "no topic counts twice"


def _records(folder: Path) -> list[Any]:
    lines = (
        line for path in sorted((folder / "log" / "metrics").glob("*.jsonl")) for line in path.read_bytes().split(b"\n")
    )
    return [decode_metric(line, cluster=CLUSTER, period_ms=PERIOD_SECONDS * 1000) for line in lines if line]


def _states_of(folder: Path, namespace: str) -> list[NamespaceStateRecord]:
    return [each for each in _records(folder) if isinstance(each, NamespaceStateRecord) and each.namespace == namespace]


def _brokers_of(folder: Path) -> dict[str, BrokerStateRecord]:
    return {each.broker: each for each in _records(folder) if isinstance(each, BrokerStateRecord)}


def _rate_of(folder: Path, namespace: str) -> float:
    """msg/s into *namespace*, by the sweeps of the last complete interval."""
    records = _records(folder)
    ticks = [
        each for each in records if isinstance(each, TickRecord) and all(entry.sweep_id for entry in each.roster or ())
    ]
    if not ticks:
        return 0.0
    counted = {entry.sweep_id for entry in ticks[-1].roster or ()}
    stats = [
        bundle
        for each in records
        if isinstance(each, BrokerSweep) and each.sweep_id in counted
        for bundle in each.bundle_stats
        if bundle.bundle.startswith(f"{namespace}/")
    ]
    return sum(sum(bundle.msg_rate_in) for bundle in stats)


def test_extensible_brokers_that_demand_a_token_are_swept_with_the_load_data_from_their_topic(
    tmp_path: Path, pulsar_release: PulsarRelease
) -> None:
    mine = Credentials(token=token("admin"))
    settings = {
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
        **demanding_tokens(),
    }
    with pulsar_cluster(tmp_path / "pulsar", settings=settings, release=pulsar_release) as cluster:
        admin = PulsarAdmin(cluster.admin_urls, cluster=CLUSTER, credentials=mine)
        load_data = PulsarLoadData(lambda: cluster.service_url, lambda: mine, Tls())
        sweeper = Sweeper(admin, CapacityOverrides(), load_data, form=json_chunks, timeout_seconds=10)

        def rate() -> float:
            return sum(sum(stats.msg_rate_in) for each in sweep() for stats in each.bundle_stats)

        def sweep() -> list[BrokerSweep]:
            found = []
            for broker in admin.brokers():
                name = SweepName(cluster=CLUSTER, broker=broker, interval=0, sweep_id="s")
                [(_, value)] = sweeper.sweep(name, 0).records
                read = decode_metric(value, cluster=CLUSTER, period_ms=1000)
                assert isinstance(read, BrokerSweep)
                found.append(read)
            return found

        def meanwhile() -> None:
            go_on()
            time.sleep(0.2)

        eventually(lambda: len(admin.brokers()) == 3, lambda: time.sleep(0.2))
        namespace = make_namespace(cluster, mine.headers())
        with pulsar_to(cluster, mine) as client, traffic(client, namespace) as go_on:
            eventually(lambda: any(load_data.of(broker) for broker in admin.brokers()), meanwhile)
            eventually(lambda: rate() > 0.8 * TOPICS * MESSAGES_PER_SECOND, meanwhile)
            found = sweep()
        load_data.close()
        for part in cluster.parts.values():
            part.stop(signal.SIGKILL)  # in good order it takes half a minute
        assert len(found) == 3
        # A Gbit/s for each network card that the brokers find, in kbit/s: 0 where they find none.
        limits = {each.bandwidth_in.limit for each in found}
        assert any(limit % 1_000_000 == 0 for limit in limits), f"of the topic; metrics are in percent: {limits}"
        bundles = [stats.bundle for each in found for stats in each.bundle_stats]
        assert len(set(bundles)) == len(bundles), "no bundle is with two brokers"
        assert {name for name in bundles if name.startswith(namespace)}


SHEDDING = "loadBalancerSheddingEnabled"


def switch(pulsar: PulsarCluster, value: str) -> int:
    """As pulsar-admin brokers update-dynamic-config does; the interval that begins after every broker has it."""
    path = f"/admin/v2/brokers/configuration/{SHEDDING}/{value}"
    answer = urllib3.request("POST", pulsar.admin_urls[0] + path)
    assert answer.status < 300, answer.data
    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)
    wait_for(lambda: all(admin.configuration(broker)[SHEDDING] == value for broker in pulsar.brokers), 20, every=0.05)
    admin.close()
    return int(time.time() // PERIOD_SECONDS + 1) * PERIOD_SECONDS * 1000


def readiness(port: int) -> tuple[int, str]:
    answer = urllib3.request("GET", f"http://127.0.0.1:{port}/readyz")
    return answer.status, answer.data.decode()


def test_a_controller_waits_while_the_brokers_balance_and_goes_on_when_they_do_not(
    pulsar: PulsarCluster, tmp_path: Path
) -> None:
    """The switch is turned with one REST call, under processes that run; within an interval all of them know."""
    port = free_port()
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{period_seconds = {PERIOD_SECONDS}, shards = 2}}
        log = {{kind = "folder", folder = {{path = "log"}}}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        decisions.mode = "active"
        metrics.controller = "127.0.0.1:{port}"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        spark = {{master = "local[2]", shuffle_partitions = 1}}
        """,
        encoding="utf-8",
    )
    (tmp_path / "broker.conf").write_text("", encoding="utf-8")
    settings = read_settings(conf)

    def decided_from(interval: int) -> JournalEntry:
        return next_entry(settings, interval - 1, processes)

    with Processes(conf, tmp_path) as processes:
        processes.start("run")
        processes.start("collect")
        entry = decided_from(0)
        while entry.memory.balancing != OwnBalancing():  # until the switches of all brokers have been read
            entry = decided_from(entry.interval + 1)
        try:
            held = decided_from(switch(pulsar, "true"))
            assert ": BrokersBalance, " in held.decision.summary
            assert held.memory.balancing.on == len(pulsar.brokers)
            assert f"{SHEDDING}=true on {sorted(pulsar.brokers)[0]}" in held.memory.balancing.why
            assert decided_from(held.interval + 1).memory.balancing == held.memory.balancing
            status, text = readiness(port)
            assert (status, "the brokers' own balancing is on (brokers: 3)" in text) == (503, True), text
        finally:
            off = switch(pulsar, "false")
        freed = decided_from(off)
        assert freed.memory.balancing == OwnBalancing()
        assert "BrokersBalance" not in freed.decision.summary
        wait_for(lambda: readiness(port)[0] == 200, 20, every=0.1)
        assert processes.stop() == {"collect": 0, "run": 0}
