"""Three real brokers are upgraded from Pulsar 4.0 to 5.0, one after the other, while trimtab balances them.

ZooKeeper, the bookie and each broker are processes of their own; trimtab's log lies in the same cluster.  Between two
upgrades all load is put on the broker that was upgraded last, so that bundles move between the two versions.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.pulsar.http import PulsarError
from controller.lab import pulsar_stage
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import answers_to, flowing, next_entry, start_all, write_conf
from controller.lab.pulsar_release import PulsarRelease, find_release
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.settings.trimtab_toml import Settings, read_settings

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

OLD, NEW = find_release("4.0"), find_release("5.0")
BUNDLES: Final = 24
RATES: Final = tuple(rate / 4 for rate in pulsar_stage.RATES)
#: To move bundles off one broker: commands are held back for some intervals after a broker came back.
PATIENCE_SECONDS: Final = 240.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PulsarCluster]:
    with pulsar_cluster(tmp_path / "pulsar", processes=True, release=OLD) as cluster:
        yield cluster


def upgrade(cluster: PulsarCluster, part: str, to: PulsarRelease) -> None:
    """End *part* as an operator does, and start it again as *to*."""
    cluster.parts[part].stop()
    cluster.parts[part].release = to
    cluster.parts[part].start()


def gather(stage: Stage, broker: str) -> None:
    """Bring all bundles to *broker*, beside a controller that may be moving some."""
    for bundle in stage.bundles:
        try:
            stage.bring(bundle, broker)
        except PulsarError:
            continue


def done_from(source: str, settings: Settings, after: int, processes: Processes) -> tuple[int, Counter[str]]:
    """Wait for an interval in which bundles left *source*; returns it and the answers to all commands until then."""
    statuses, deadline = Counter[str](), time.monotonic() + PATIENCE_SECONDS
    while True:
        entry = next_entry(settings, after, processes)
        after, answers = entry.interval, answers_to(entry, settings, processes)
        statuses.update(answer.status if answer else "none" for answer in answers.values())
        moved = [command for command in entry.decision.commands if command.source == source]
        if any((answer := answers[command.id]) is not None and answer.status == "done" for command in moved):
            return after, statuses
        assert time.monotonic() < deadline, f"nothing left {source}: {statuses}"


def test_brokers_are_upgraded_one_by_one_and_bundles_move_between_the_versions(
    cluster: PulsarCluster, tmp_path: Path
) -> None:
    admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
    stage = set_stage(admin, "upgrade/orders", BUNDLES, RATES)
    stage.gather(cluster.brokers[0])
    conf = write_conf(tmp_path, cluster)
    settings, statuses = read_settings(conf), Counter[str]()
    with Traffic(cluster.service_url, stage.rates, tmp_path / "traffic.log") as traffic:
        flowing(stage, cluster.brokers)
        with Processes(conf, tmp_path) as processes:
            start_all(processes)
            after, answered = done_from(cluster.brokers[0], settings, 0, processes)
            statuses += answered
            for number, broker in enumerate(cluster.brokers):
                upgrade(cluster, f"broker-{number}", NEW)
                assert [admin.version(each)[0] for each in cluster.brokers] == [
                    (NEW if nth <= number else OLD).version for nth in range(len(cluster.brokers))
                ]
                gather(stage, broker)
                after, answered = done_from(broker, settings, after, processes)
                statuses += answered
            assert processes.stop() == {"collect": 0, "run": 0, "execute": 0}
        missing = traffic.drain(60)
    admin.close()
    assert missing == {}
    assert traffic.total_acknowledged > 0.95 * sum(traffic.sent)
