"""Three real brokers are upgraded from Pulsar 4.0 to 5.0, one after the other, while trimtab balances them.

ZooKeeper, the bookie and each broker are processes of their own; trimtab's log lies in the same cluster.  Between two
upgrades all load is put on the broker that was upgraded last, so that bundles move between the two versions.  The
version of Pulsar's own leader decides.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.results import Result

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


class Watched:
    """What the controller decided, interval by interval."""

    def __init__(self, settings: Settings, processes: Processes) -> None:
        self._settings, self._processes = settings, processes
        self._after = 0
        #: Status of an answer -> number; "none" for commands without one.
        self.statuses = Counter[str]()
        #: The version of Pulsar that decided, where it was known; each once in a row.
        self.versions: list[str] = []

    def wait_until(self, is_so: Callable[[JournalEntry, Mapping[str, Result | None]], bool], what: str) -> None:
        """Until an interval, and the answers to its commands, are so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            entry = next_entry(self._settings, self._after, self._processes)
            self._after, answers = entry.interval, answers_to(entry, self._settings, self._processes)
            self.statuses.update(answer.status if answer else "none" for answer in answers.values())
            used = entry.decision.pulsar
            if used is not None and used.source != "nobody" and [str(used.version)] != self.versions[-1:]:
                self.versions.append(str(used.version))
            if is_so(entry, answers):
                return
            assert time.monotonic() < deadline, f"not within time: {what}; {self.statuses}, {self.versions}"

    def wait_until_bundles_left(self, broker: str) -> None:
        """Until some are said to have left *broker*."""

        def left(entry: JournalEntry, answers: Mapping[str, Result | None]) -> bool:
            moved = [answers[command.id] for command in entry.decision.commands if command.source == broker]
            return any(answer is not None and answer.status == "done" for answer in moved)

        self.wait_until(left, f"bundles left {broker}")


def test_brokers_are_upgraded_one_by_one_and_bundles_move_between_the_versions(
    cluster: PulsarCluster, tmp_path: Path
) -> None:
    admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
    stage = set_stage(admin, "upgrade/orders", BUNDLES, RATES)
    stage.gather(cluster.brokers[0])
    conf = write_conf(tmp_path, cluster)
    with Traffic(cluster.service_url, stage.rates, tmp_path / "traffic.log") as traffic:
        flowing(stage, cluster.brokers)
        with Processes(conf, tmp_path) as processes:
            start_all(processes)
            watched = Watched(read_settings(conf), processes)
            watched.wait_until_bundles_left(cluster.brokers[0])
            for number, broker in enumerate(cluster.brokers):
                upgrade(cluster, f"broker-{number}", NEW)
                assert [admin.version(each)[0] for each in cluster.brokers] == [
                    (NEW if nth <= number else OLD).version for nth in range(len(cluster.brokers))
                ]
                gather(stage, broker)
                watched.wait_until_bundles_left(broker)
            watched.wait_until(lambda *_: watched.versions[-1:] == [NEW.version], "5.0 decides")
            assert processes.stop() == {"collect": 0, "run": 0, "execute": 0}
        missing = traffic.drain(60)
    admin.close()
    assert (watched.versions[0], watched.versions[-1]) == (OLD.version, NEW.version)
    assert set(watched.versions) == {OLD.version, NEW.version}
    # The test moves bundles, too: a command for one of those is obsolete.
    as_wished = sum(watched.statuses[status] for status in ("done", "already_done", "obsolete"))
    assert as_wished >= 0.9 * watched.statuses.total(), watched.statuses
    assert missing == {}
    assert traffic.total_acknowledged > 0.95 * sum(traffic.sent)
