"""Plays one schedule: a fault-free beginning, faults, and a calm end in which everything is answered."""

import gc
import logging
import tempfile
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final

from controller.adapters.election.controls import ABSENT
from controller.cycle import Policy
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from tests.proposals import policy as approval_policy
from tests.protocol.linearizable import Call
from tests.protocol.rules import Event
from tests.simulation import commands
from tests.simulation.brokers import CLUSTER
from tests.simulation.faults import arrange
from tests.simulation.logs import SimulatedServer
from tests.simulation.loop import Simulation
from tests.simulation.oracle import Place, against_the_model, findings, histories, letters
from tests.simulation.processes import Site
from tests.simulation.query import TOPICS
from tests.simulation.replay import differences
from tests.simulation.schedule import PERIOD, Schedule
from tests.simulation.standins import standing_in
from tests.simulation.truth import untrue
from tests.simulation.world import World

#: Intervals without a fault at the end.
_CALM: Final = 6
_SETTINGS: Final = f"""cluster.name = "{CLUSTER}"
log = {{kind = "folder", folder.path = "log"}}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
pulsar.admin_url = ["http://broker-1.sim:8080"]
intervals = {{stale_after_seconds = 120, close_at_most = 4}}
decisions.mode = "active"
decisions.command_ttl_seconds = 60
decisions.executor_timeout_seconds = 20
decisions.retry_failed_after_seconds = 120
executor = {{batch = 4, max_concurrent = 2}}
collector = {{timeout_seconds = 5, state_every = 4}}
approvals.decision_minutes = 5
journal.whole_every_intervals = 6
guardrails.window_seconds = 360
guardrails.failures_in_window = "unlimited"
guardrails.interval = {{unloads = 3, splits = 1}}
guardrails.window = {{unloads = 8, splits = 3}}
"""
_BROKER_CONF: Final = """loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder
loadBalancerBrokerThresholdShedderPercentage=3
loadBalancerHistoryResourcePercentage=0.1
loadBalancerBundleUnloadMinThroughputThreshold=0
loadBalancerSheddingGracePeriodMinutes=0
loadBalancerAutoBundleSplitEnabled=true
loadBalancerNamespaceBundleMaxTopics=4
loadBalancerBrokerLoadDataTTLInSeconds=240
loadBalancerReportUpdateMaxIntervalMinutes=2
"""


@dataclass(kw_only=True)
class Outcome:
    """What came of a run."""

    schedule: Schedule
    trace: list[Event]
    calls: list[Call]
    world: World
    site: Site
    findings: list[str] = field(default_factory=list)


@cache
def site_settings() -> tuple[Settings, Policy]:
    """The settings of every run."""
    folder = Path(_folder().name)
    (folder / "broker.conf").write_text(_BROKER_CONF, encoding="utf-8")
    (folder / "trimtab.toml").write_text(_SETTINGS, encoding="utf-8")
    settings = read_settings(folder / "trimtab.toml")
    return settings, read_policy(settings)


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Where their files lie, as long as this process runs."""
    return tempfile.TemporaryDirectory()


def play(schedule: Schedule) -> Outcome:
    """Play *schedule*."""
    settings, policy = site_settings()
    if schedule.approvals:
        demanded = approval_policy(["ada", "bob"], expires_minutes=4, decision_minutes=5, controls_minutes=20)
        settings = settings.model_copy(update={"approvals": demanded})
    logging.disable(logging.CRITICAL)
    # A run makes little garbage in circles.  The product looks for it after each decision (streaming.sink).
    gc.disable()
    simulation = Simulation(schedule.seed)
    world = World(simulation)
    try:
        with standing_in(simulation):
            server = SimulatedServer(world, partitions=schedule.partitions, atomic=schedule.atomic, seed=schedule.seed)
            site = Site(world, settings, policy, server, shards=schedule.shards, elects_on_log=schedule.elects_on_log)
            with commands.commands_on(site):
                _run(site, schedule)
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
    outcome = Outcome(schedule=schedule, trace=world.trace, calls=world.calls, world=world, site=site)
    outcome.findings = _findings(site)
    return outcome


def _run(site: Site, schedule: Schedule) -> None:
    world, simulation = site.world, site.world.sim
    _begin(site, schedule)
    simulation.run((schedule.intervals + _CALM) * PERIOD)
    # Executors answer what is left.
    world.retire("controller")
    simulation.run(simulation.now + 1.5 * PERIOD)
    for role in ("controller", "collector", "executor"):
        world.retire(role)
    simulation.run(simulation.now)


def _findings(site: Site) -> list[str]:
    world = site.world
    kept = [record.value for record in site.server.topic("dead_letters")[0].records]
    read: dict[Place, tuple[int, bytes]] = {
        (topic, record.partition, record.position): (record.timestamp_ms, record.value)
        for topic in TOPICS.values()
        for partition in site.server.topic(topic)
        for record in partition.records
    }
    return [
        *world.sim.failures,
        *findings(world.trace, ended_ms=world.sim.true_ms()),
        *untrue(world.trace),
        *against_the_model(world.trace),
        *histories(world.calls, ABSENT),
        *letters(kept, site.poison, read),
        *differences(site),
    ]


def _begin(site: Site, schedule: Schedule) -> None:
    world = site.world
    for role, count in (
        ("controller", schedule.controllers),
        ("collector", schedule.collectors),
        ("executor", schedule.executors),
    ):
        for number in range(1, count + 1):
            world.start(f"{role}-{number}", getattr(site, role))
    if schedule.approvals:
        world.note("policy")
    for fault in schedule.faults:
        arrange(site, fault)
    world.sim.at(schedule.intervals * PERIOD, lambda: _calm(site))
    for interval in range(schedule.intervals + _CALM):
        world.sim.at(interval * PERIOD, partial(site.cluster.drift, interval))


def _calm(site: Site) -> None:
    """No more faults; what is still paused or forbidden is allowed again."""
    site.world.disarm()
    site.world.note("calm")
    site.cluster.be_honest()
    site.person(partial(commands.mode, site, "active", surely=True), "bob")
    # Under a policy the first one ends what is stored, and the second one what somebody has removed.
    for later in (1, 2) if site.settings.approvals.demanded else (1,):
        at = site.world.sim.now + later * PERIOD
        site.world.sim.at(at, lambda: site.person(partial(commands.resume, site, surely=True), "ada"))
