"""What real Pulsar answers, and what the executor makes of it: one test for each trap that its REST API has."""

import json
import time
from contextlib import suppress
from typing import Self
from uuid import uuid4

import pytest
import urllib3
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.executor.attempt import Outcome, PulsarTarget, carry_out
from controller.executor.judge import Answer, Observation
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.model.decision import Command
from tests.commands import split, unload

pytestmark = pytest.mark.integration

RANGES = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")
SECOND = "0x40000000_0x80000000"
#: The broker that leads Pulsar's own load manager, in ZooKeeper.
_LEADER = "/loadbalance/leader"


@pytest.fixture(scope="module")
def admin(pulsar: PulsarCluster) -> PulsarAdmin:
    put(pulsar, "/tenants/lab", {"allowedClusters": [CLUSTER]}, also_there=True)
    return PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)


@pytest.fixture
def namespace(pulsar: PulsarCluster, admin: PulsarAdmin) -> str:
    """A new one of four bundles, which nobody has yet."""
    name = f"lab/ns-{uuid4().hex[:8]}"
    put(pulsar, f"/namespaces/{name}", {"bundles": {"boundaries": RANGES}, "replication_clusters": [CLUSTER]})
    return name


def put(pulsar: PulsarCluster, path: str, body: object = None, *, also_there: bool = False) -> None:
    # Topics are made by the broker that owns their bundle; for these calls a client that follows is good enough.
    url = f"{pulsar.admin_urls[0]}/admin/v2{path}"
    headers = {"Content-Type": "application/json"}
    content = json.dumps(body).encode() if body else None
    # A second request, after too short a time, would find there what the first one has made.
    answer = urllib3.request("PUT", url, body=content, headers=headers, timeout=60, retries=urllib3.Retry(read=0))
    assert answer.status < 300 or (also_there and answer.status == 409), answer.data


def fill(pulsar: PulsarCluster, namespace: str) -> None:
    """Topics in every bundle: a bundle of fewer than two is not split at positions."""
    for number in range(24):
        put(pulsar, f"/persistent/{namespace}/topic-{number}")


def another(pulsar: PulsarCluster, owner: str) -> str:
    return next(broker for broker in pulsar.brokers if broker != owner)


def obey(admin: PulsarAdmin, command: Command) -> Outcome:
    return carry_out(command, PulsarTarget(admin).within(60), may_act=lambda: None)


def test_the_brokers_leave_balancing_to_others(pulsar: PulsarCluster, admin: PulsarAdmin) -> None:
    assert admin.brokers() == tuple(sorted(pulsar.brokers))
    assert admin.leader() in pulsar.brokers
    settings = admin.configuration()
    assert settings["loadBalancerEnabled"] == "true"
    assert settings["loadBalancerSheddingEnabled"] == settings["loadBalancerAutoBundleSplitEnabled"] == "false"
    for broker in pulsar.brokers:
        assert admin.load_report(broker)["webServiceUrl"] == f"http://{broker}"
        assert isinstance(admin.topic_stats(broker), dict)


def test_a_bundle_goes_where_it_is_sent_whichever_broker_is_asked(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    for url in pulsar.admin_urls:
        destination = another(pulsar, owner)
        asked = PulsarAdmin([url], cluster=CLUSTER)
        for _ in range(3):  # Pulsar takes a destination for a wish; whatever it makes of it is told
            outcome = obey(asked, unload(bundle, source=owner, destination=destination))
            assert (outcome.owner_before, outcome.owner_after) == (owner, admin.owner(bundle))
            owner = outcome.owner_after
            if outcome.answer.status == "done":
                break
        assert (outcome.answer.status, owner) == ("done", destination)


def test_a_bundle_without_a_destination_is_placed_by_the_brokers(admin: PulsarAdmin, namespace: str) -> None:
    bundle = f"{namespace}/{SECOND}"
    outcome = obey(admin, unload(bundle, source=admin.lookup(bundle), destination=""))
    assert outcome.attempts == 1
    assert outcome.owner_after == admin.owner(bundle) != ""
    assert outcome.answer.status == ("failed" if outcome.owner_after == outcome.owner_before else "done")


def test_a_bundle_that_is_where_it_is_to_go_is_left_open(admin: PulsarAdmin, namespace: str) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    outcome = obey(admin, unload(bundle, source=owner, destination=owner))
    assert (outcome.answer.status, outcome.attempts) == ("already_done", 0)


def test_no_destination_is_sent_for_a_bundle_that_nobody_has(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    outcome = obey(admin, unload(f"{namespace}/{SECOND}", source=pulsar.brokers[0], destination=pulsar.brokers[1]))
    assert (outcome.answer.status, outcome.attempts, outcome.owner_before) == ("obsolete", 0, "")
    assert admin.owner(f"{namespace}/{SECOND}") == ""


def test_a_range_that_was_split_meanwhile_is_obsolete(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    admin.split(bundle, algorithm="range_equally_divide")
    with pytest.raises(PulsarError) as raised:
        admin.unload(bundle, another(pulsar, owner))
    assert raised.value.status == 412
    outcome = obey(admin, unload(bundle, source=owner, destination=another(pulsar, owner)))
    assert (outcome.answer.status, outcome.answer.detail, outcome.attempts) == ("obsolete", "no such bundle", 0)
    late = unload(bundle, source=owner, destination=another(pulsar, owner))
    outcome = carry_out(late, LooksTooEarly(admin).within(60), may_act=lambda: None)
    assert (outcome.answer.status, outcome.attempts) == ("obsolete", 1)


class LooksTooEarly(PulsarTarget):
    """Sees the bundle as it was before it was split."""

    def look(self, command: Command) -> Observation:
        return Observation(boundaries=tuple(int(each, 16) for each in RANGES), owner=command.source)


def test_a_bundle_whose_destination_a_new_leader_does_not_know_is_told_where_it_went(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner, leader = admin.lookup(bundle), admin.leader()
    command = unload(bundle, source=owner, destination=another(pulsar, owner))
    outcome = carry_out(command, DeposesTheLeader(admin, pulsar).within(60), may_act=lambda: None)
    assert admin.leader() != leader
    assert (outcome.owner_before, outcome.attempts) == (owner, 1)
    assert outcome.owner_after == admin.owner(bundle) != ""
    # The new leader places it by its own lights, if it does not come out the same by chance.
    if outcome.owner_after == command.destination:
        assert outcome.answer.status == "done"
    else:
        assert outcome.answer.status == "failed"
        assert outcome.owner_after in outcome.answer.detail or outcome.owner_after == owner


class DeposesTheLeader(PulsarTarget):
    """Another broker leads between the act and the first lookup."""

    def __init__(self, admin: PulsarAdmin, pulsar: PulsarCluster) -> None:
        super().__init__(admin)
        self._pulsar, self._deposed = pulsar, False

    def within(self, seconds: float) -> Self:
        return type(self)(self._admin.within(seconds), self._pulsar)

    def look_after(self, command: Command) -> Observation:
        if self._deposed:
            return super().look_after(command)
        self._deposed = True
        zookeeper = KazooClient(self._pulsar.zookeeper)
        zookeeper.start()
        try:
            leader = self._leader()
            deadline = time.monotonic() + 30
            while self._leader() in (leader, ""):
                assert time.monotonic() < deadline, f"{leader} is always elected again"
                # All brokers stand for election when it is gone, the old leader among them.
                with suppress(NoNodeError):
                    zookeeper.delete(_LEADER)
                time.sleep(0.5)
        finally:
            zookeeper.stop()
            zookeeper.close()
        return super().look_after(command)

    def _leader(self) -> str:
        try:
            return self._admin.leader()
        except PulsarError:
            return ""


def test_a_namespace_that_is_gone_is_obsolete(pulsar: PulsarCluster, admin: PulsarAdmin) -> None:
    bundle = f"lab/gone/{SECOND}"
    with pytest.raises(PulsarError) as raised:
        admin.unload(bundle)
    assert raised.value.status == 404
    outcome = obey(admin, unload(bundle, source=pulsar.brokers[0], destination=pulsar.brokers[1]))
    assert (outcome.answer.status, outcome.answer.detail) == ("obsolete", "no such namespace")


def test_a_bundle_is_split_where_the_command_says_and_once(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    fill(pulsar, namespace)
    command = split(bundle, source=owner, boundaries=(0x50000000, 0x60000000))
    assert obey(admin, command).answer.status == "done"
    assert admin.boundaries(namespace)[1:5] == (0x40000000, 0x50000000, 0x60000000, 0x80000000)
    again = obey(admin, command)
    assert (again.answer.status, again.attempts) == ("already_done", 0)


def test_a_split_that_pulsar_passes_over_is_not_taken_for_done(
    pulsar: PulsarCluster, admin: PulsarAdmin, namespace: str
) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    # No error, and nothing is split: there are no topics, or the boundary lies outside.
    admin.split(bundle, boundaries=[0x50000000])
    outcome = obey(admin, split(bundle, source=owner, boundaries=(0x50000000,)))
    assert (outcome.answer.status, outcome.attempts) == ("failed", 1)
    fill(pulsar, namespace)
    admin.split(bundle, boundaries=[0x90000000])
    assert len(admin.boundaries(namespace)) == len(RANGES)
    outcome = obey(admin, split(bundle, source=owner, boundaries=(0x90000000,)))
    assert (outcome.answer.status, outcome.attempts) == ("failed", 0)


def test_a_bundle_of_segments_is_halved_and_cut_nowhere_else(
    pulsar: PulsarCluster, pulsar_release: PulsarRelease, admin: PulsarAdmin
) -> None:
    if pulsar_release.version < "5":
        pytest.skip("scalable topics came with Pulsar 5.0")
    namespace, whole = f"lab/ns-{uuid4().hex[:8]}", (0x00000000, 0xFFFFFFFF)
    put(pulsar, f"/namespaces/{namespace}", {"bundles": {"numBundles": 1}, "replication_clusters": [CLUSTER]})
    put(pulsar, f"/scalable/{namespace}/orders?numInitialSegments=4")
    for number in range(4):
        # Loads the segment.
        urllib3.request("GET", f"{pulsar.admin_urls[0]}/admin/v2/scalable/{namespace}/orders/segments/{number}/stats")
    bundle = f"{namespace}/0x00000000_0xffffffff"
    owner = admin.lookup(bundle)
    for algorithm in ("flow_or_qps_equally_divide", "topic_count_equally_divide"):
        admin.split(bundle, algorithm=algorithm)  # 204
        assert admin.boundaries(namespace) == whole
    outcome = obey(admin, split(bundle, source=owner, boundaries=(0x50000000,)))
    assert (outcome.answer.status, outcome.attempts) == ("failed", 1)
    assert "only range_equally_divide splits a bundle of segments" in outcome.answer.detail
    assert admin.boundaries(namespace) == whole
    outcome = obey(admin, split(bundle, source=owner, algorithm="range_equally_divide", boundaries=()))
    assert outcome.answer == Answer(status="done")
    assert len(admin.boundaries(namespace)) == 3


def test_a_broker_that_does_not_exist_is_no_destination(admin: PulsarAdmin, namespace: str) -> None:
    bundle = f"{namespace}/{SECOND}"
    owner = admin.lookup(bundle)
    outcome = obey(admin, unload(bundle, source=owner, destination="127.0.0.1:1"))
    assert outcome.answer.status in ("failed", "unknown")
    assert outcome.owner_after != "127.0.0.1:1"
