"""Plans that are carried out on a real Pulsar cluster: its settings, and trimtab's commands."""

import json
import time
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import typer
from typer.testing import CliRunner, Result

from controller.cli.apply import apply
from controller.cli.plan import plan
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import SCENARIO, next_entry
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.settings.trimtab_toml import Settings
from tests.kafka_log import as_toml, named_topics

#: Pulsar's own lookups take a bundle now and then; what is left is planned anew so often.
REPAIRS: Final = 5
#: The brokers share one machine, so only message rates count; the controller itself moves nothing.
_RULES: Final = """
loadBalancerLoadSheddingStrategy=PeakShedder
trimtabPeakShedderMinGainPercentage=95
loadBalancerCPUResourceWeight=0
loadBalancerBandwidthInResourceWeight=0
loadBalancerBandwidthOutResourceWeight=0
"""


def write_settings(
    folder: Path,
    pulsar: PulsarCluster,
    kafka: KafkaServer,
    zookeeper: ZooKeeperServer,
    *,
    period_seconds: int = 10,
    msg_rate: float = 10_000.0,
) -> Path:
    """The settings file, with a broker.conf beside it; a broker can carry *msg_rate* messages/s, in and out."""
    kept = [
        line
        for line in SCENARIO.with_name("pulsar.broker.conf").read_text().splitlines()
        if line.startswith("loadBalancer") and "Deviation" not in line
    ]
    rules = "\n".join([*kept, _RULES, f"trimtabPeakShedderBrokerMsgRate={msg_rate:g}"])
    decisions = "retry_failed_after_seconds = 10"
    return site_settings(folder, pulsar, kafka, zookeeper, rules, period_seconds=period_seconds, decisions=decisions)


def site_settings(
    folder: Path,
    pulsar: PulsarCluster,
    kafka: KafkaServer,
    zookeeper: ZooKeeperServer,
    rules: str,
    *,
    period_seconds: int = 10,
    decisions: str = "",
) -> Path:
    """The settings file of a whole site, with *rules* as its broker.conf; *decisions*: more lines of that section."""
    (folder / "broker.conf").write_text(rules)
    name = uuid4().hex[:8]
    file = folder / "trimtab.toml"
    file.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{ period_seconds = {period_seconds}, shards = 4 }}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        [decisions]
        mode = "active"
        {decisions}
        [log]
        kind = "kafka"
        [log.kafka]
        {as_toml(named_topics(kafka.bootstrap))}
        [election]
        kind = "zookeeper"
        hosts = "{zookeeper.hosts}"
        path = "/site-{name}"
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        [executor]
        group = "executors-{name}"
        session_timeout_seconds = 6
        max_per_second = 20.0
        """
    )
    return file


def run(command: Any, conf: Path, *arguments: object) -> Result:
    """One of trimtab's commands, in this process."""
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [*map(str, arguments), "--conf", str(conf)])


def planned(conf: Path, *arguments: object) -> dict[str, Any]:
    """The answer of ``trimtab plan``, which leaves nothing behind."""
    result = run(plan, conf, *arguments, "--wave-moves", "16", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    said: dict[str, Any] = json.loads(result.stdout)
    return said


def decided(settings: Settings, processes: Processes, samples: int) -> None:
    """Wait until the controller has seen so many intervals in a row."""
    entry = next_entry(settings, 0, processes)
    while entry.memory.samples < samples:
        entry = next_entry(settings, entry.interval, processes)


def carried_out(conf: Path, said: dict[str, Any], *, step: int | None = None, rest_seconds: float = 30.0) -> list[str]:
    """Carry out a step of the plan of *said*, and what is left of it; what was said when a run ended early."""
    halted = list[str]()
    file, sha256 = Path(said["file"]), said["sha256"]
    which: tuple[object, ...] = () if step is None else ("--step", step)
    for number in range(REPAIRS + 1):
        result = run(apply, conf, file, "--hash", sha256, *which)
        if result.exit_code == 0:
            return halted
        halted.append(f"{result.output} {result.exception}")
        assert number < REPAIRS, halted
        new = file.with_name(f"repaired-{step or 1}-{number}.json")
        # A bundle that was unloaded is seen on its broker in an interval or two; one that came back rests before that.
        time.sleep(rest_seconds)
        repair = run(apply, conf, file, "--hash", sha256, *which, "--repair", "-o", new, "--json")
        assert repair.exit_code in (0, 1), (repair.output, repair.exception, halted)
        answer = json.loads(repair.stdout)
        if not answer["moves"]:  # then no plan is written
            return halted
        assert new.exists(), (repair.output, repair.exception, halted)
        file, sha256, which = new, answer["sha256"], ()
    return halted
