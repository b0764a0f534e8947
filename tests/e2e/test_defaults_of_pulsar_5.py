"""trimtab takes over three brokers of Pulsar 5.0 with an empty broker.conf: what decides are the defaults of 5.0."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.app import app
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import answers_to, flowing, next_entry, start_all
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.model.balancing import SHEDDING, SPLITTING
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import read_settings

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

BUNDLES: Final = 16
#: msg/s of a topic.  In and out, half of the difference between two brokers is above minUnloadMessage (1000), and the
#: fifth that Pulsar 4.0 moves is below it.
RATES: Final = (90.0,)
PATIENCE_SECONDS: Final = 420.0


@pytest.fixture
def stage(pulsar: PulsarCluster, pulsar_release: PulsarRelease) -> Iterator[Stage]:
    """A namespace of the test's own, all of it on one broker, and brokers that balance by themselves."""
    if pulsar_release.version < "5":
        pytest.skip("the defaults are those of Pulsar 5.0")
    admin = StageAdmin(pulsar.admin_urls, cluster=CLUSTER)
    stage = set_stage(admin, f"e2e/ns-{uuid4().hex[:8]}", BUNDLES, RATES)
    stage.gather(pulsar.brokers[0])
    for switch in (SHEDDING, SPLITTING):
        admin.change_dynamic_configuration(switch, "true")
    yield stage
    for switch in (SHEDDING, SPLITTING):
        admin.change_dynamic_configuration(switch, "false")
    admin.close()


@pytest.fixture
def conf(tmp_path: Path, pulsar: PulsarCluster) -> Path:
    """Settings whose broker.conf is empty.

    Brokers of one machine all report its processors, so each is given a share of them: the first one a small one.
    """
    (tmp_path / "broker.conf").touch()
    (tmp_path / "capacity.toml").write_text(
        f'[[brokers]]\nmatch = ".*"\ncpu_cores = 1000\n[[brokers]]\nmatch = "{pulsar.brokers[0]}"\ncpu_cores = 0.5\n'
    )
    file = tmp_path / "trimtab.toml"
    file.write_text(
        f"""
        cluster = {{name = "{CLUSTER}", broker_conf = "broker.conf"}}
        intervals = {{period_seconds = 20, shards = 4}}
        log = {{kind = "folder", folder.path = "log"}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        decisions.mode = "dry_run"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        collector.capacity_overrides = "capacity.toml"
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        """
    )
    return file


def run(*words: str, conf: Path) -> str:
    result = CliRunner().invoke(app, [*words, "--conf", str(conf)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_an_empty_broker_conf_decides_by_the_defaults_of_5_0_after_the_take_over(
    stage: Stage, pulsar: PulsarCluster, conf: Path
) -> None:
    settings, first = read_settings(conf), pulsar.brokers[0]
    with Traffic(pulsar.service_url, stage.rates, conf.with_name("traffic.log")) as traffic:
        flowing(stage, pulsar.brokers)
        with Processes(conf, conf.parent) as processes:
            start_all(processes)
            entry = next_entry(settings, 0, processes)
            assert not any(command.mode == "active" for command in entry.decision.commands)
            said = run("take-over", "--yes", conf=conf)
            assert f"{SHEDDING}=false is set for all brokers" in said
            moves = moved(entry, settings_of=conf, source=first, processes=processes)
            status = json.loads(run("status", "--json", conf=conf))
            processes.stop()
        missing = traffic.drain(30)
    assert (status["last"]["pulsar"]["version"], status["last"]["pulsar"]["source"]) == ("5.0.1", "leader")
    for by, source, destination, status in moves:
        assert (by, source, status) == ("AvgShedder", first, "done")
        assert destination in pulsar.brokers[1:]
    assert stage.admin.owned(first) & set(stage.bundles)
    assert missing == {}


def moved(
    entry: JournalEntry, *, settings_of: Path, source: str, processes: Processes
) -> list[tuple[str, str, str, str]]:
    """Who decided the first real moves, from where, to where, and the statuses of their answers."""
    settings, deadline = read_settings(settings_of), time.monotonic() + PATIENCE_SECONDS
    while True:
        entry = next_entry(settings, entry.interval, processes)
        used = entry.decision.pulsar
        assert used is not None
        assert (str(used.version), used.source) == ("5.0.1", "leader")
        commands = [command for command in entry.decision.commands if command.mode == "active"]
        if commands:
            answers = answers_to(entry, settings, processes)
            return [
                (each.why.by, each.source, each.destination, answer.status if (answer := answers[each.id]) else "none")
                for each in commands
            ]
        assert time.monotonic() < deadline, entry.decision.summary


def test_brokers_themselves_run_with_those_defaults(pulsar: PulsarCluster, pulsar_release: PulsarRelease) -> None:
    if pulsar_release.version < "5":
        pytest.skip("the defaults are those of Pulsar 5.0")
    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)
    shown = admin.configuration(pulsar.brokers[0])
    admin.close()
    for option in ("loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"):
        assert shown[option].rpartition(".")[2] == "AvgShedder"
