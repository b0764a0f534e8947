"""`trimtab execute` as a process: commands on real Kafka, bundles on real Pulsar, results on real Kafka."""

import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.servers import KafkaServer
from controller.model.decision import Command
from controller.settings.log import KafkaLogSettings
from tests.commands import unload
from tests.integration.execute import executing, issue, now_ms, results, wait_for_results, write_conf
from tests.integration.test_pulsar_cluster import RANGES, put
from tests.kafka_log import own_topics

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(pulsar: PulsarCluster) -> PulsarAdmin:
    put(pulsar, "/tenants/moved", {"allowedClusters": [CLUSTER]}, also_there=True)
    return PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)


@pytest.fixture
def commands(pulsar: PulsarCluster, admin: PulsarAdmin) -> list[Command]:
    """Every bundle of two new namespaces to another broker than its own."""
    found = []
    for _ in range(2):
        namespace = f"moved/ns-{uuid4().hex[:8]}"
        put(pulsar, f"/namespaces/{namespace}", {"bundles": {"boundaries": RANGES}, "replication_clusters": [CLUSTER]})
        for lower, upper in pairwise(RANGES):
            bundle = f"{namespace}/{lower}_{upper}"
            owner = admin.lookup(bundle)
            destination = next(broker for broker in pulsar.brokers if broker != owner)
            found.append(unload(bundle, source=owner, destination=destination, expires_at_ms=now_ms() + 120_000))
    return found


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    return own_topics(kafka.bootstrap)


def test_commands_move_bundles_and_their_results_come_back(
    pulsar: PulsarCluster, admin: PulsarAdmin, commands: list[Command], log: KafkaLogSettings, tmp_path: Path
) -> None:
    late = replace(commands[0], id="late", expires_at_ms=now_ms() - 1)
    issue(log, [late, *commands])
    issue(log, [replace(commands[1], id="dead epoch")], epoch=0)
    with executing(write_conf(tmp_path, pulsar, log)) as executor:
        found = wait_for_results(log, len(commands) + 2, executor)
        executor.send_signal(signal.SIGTERM)
        assert executor.wait(30) == 0
    assert {each.id: each.status for each in found} == {
        **{command.id: "done" for command in commands},
        "late": "expired",
        "dead epoch": "fenced",
    }
    assert {each.bundle: admin.owner(each.bundle) for each in commands} == {
        each.bundle: each.destination for each in commands
    }
    told = {each.id: (each.owner_before, each.owner_after, each.attempts) for each in found if each.status == "done"}
    assert told == {command.id: (command.source, command.destination, 1) for command in commands}


def test_what_a_killed_executor_did_is_found_done_and_what_it_did_not_begin_is_carried_out(
    pulsar: PulsarCluster, admin: PulsarAdmin, commands: list[Command], log: KafkaLogSettings, tmp_path: Path
) -> None:
    conf = write_conf(tmp_path, pulsar, log)
    issue(log, commands)
    # The third bundle is without an owner then, and the brokers' leader knows where it is to go.
    with executing(conf, dies_at="after-act:3") as killed:
        assert killed.wait(60) == -signal.SIGKILL
    assert results(log) == []
    with executing(conf) as successor:
        found = wait_for_results(log, len(commands), successor)
    assert sorted(each.id for each in found) == sorted(command.id for command in commands)
    by_id = {each.id: each for each in found}
    acted = [each for each in found if each.attempts]
    # Whatever was begun was not begun again, and every bundle that was acted on is where it was to go.
    assert 1 <= len(found) - len(acted) <= 4
    assert {each.status for each in acted} == {"done"}
    looked_at = {each.status for each in found if not each.attempts}
    assert "already_done" in looked_at
    assert looked_at <= {"already_done", "unknown"}
    for command in commands:
        if by_id[command.id].status != "unknown":
            assert admin.owner(command.bundle) == command.destination
