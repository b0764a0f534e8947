"""The demo on real Pulsar, without Pulsar: its settings, and that its strategy evens its traffic out."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.cycle import Policy, decide
from controller.lab.pulsar_demo import SCENARIO, write_conf
from controller.lab.pulsar_server import PulsarCluster
from controller.lab.pulsar_stage import RATES
from controller.model.balancing import Balancing
from controller.model.controls import Controls
from controller.model.load import RATE_IN
from controller.model.records import CommandResult
from controller.settings.broker_conf import read_broker_conf
from controller.settings.known_options import options_table
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.demo.view import ImbalanceLine
from tests.cluster import INTERVAL, broker, bundle, view

BROKERS = ("127.0.0.1:20001", "127.0.0.1:20002", "127.0.0.1:20003")
CLUSTER = cast(
    PulsarCluster,
    SimpleNamespace(admin_urls=tuple(f"http://{each}" for each in BROKERS), service_url="pulsar://127.0.0.1:20004"),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(write_conf(tmp_path, CLUSTER))


def test_a_run_has_its_own_brokers_and_keeps_everything_in_its_folder(tmp_path: Path, settings: Settings) -> None:
    assert settings.pulsar is not None
    assert settings.pulsar.admin_url == CLUSTER.admin_urls
    assert settings.log.pulsar is not None
    assert settings.log.pulsar.admin_url == CLUSTER.admin_urls
    assert settings.log.pulsar.service_url == CLUSTER.service_url
    places = (settings.election.path, settings.checkpoint.path, settings.cluster.broker_conf)
    assert {Path(place).parent for place in places} == {tmp_path}


def test_every_key_of_its_broker_conf_is_an_option_that_is_read() -> None:
    known = {row.key for row in options_table()}
    assert set(read_broker_conf(SCENARIO.with_name("pulsar.broker.conf"))) <= known


def test_everything_on_one_broker_is_even_within_ten_intervals_and_then_at_rest(settings: Settings) -> None:
    policy = read_policy(settings)
    traffic = {f"demo/orders/0x{n:08x}_0x{n + 1:08x}": 2 * RATES[n % len(RATES)] for n in range(24)}
    where = dict.fromkeys(traffic, BROKERS[0])
    played = play(policy, traffic, where, intervals=20)
    assert played[0] == (3.0, 0)
    assert max(over for over, _ in played[10:]) <= 1.2
    assert sum(commands for _, commands in played[10:]) == 0
    assert max(commands for _, commands in played) == 4, "a few at a time"


#: As the lab's brokers are configured.
OFF = Balancing(enabled=True, shedding=False, splitting=False)


def play(
    policy: Policy, traffic: dict[str, float], where: dict[str, str], *, intervals: int
) -> list[tuple[float, int]]:
    """max/mean before, and the commands of, each interval; all of them are obeyed at once."""
    memory, played = policy.initial_memory(0), []
    answers: tuple[CommandResult, ...] = ()
    for number in range(intervals):
        made: dict[str, Any] = {name: {} for name in BROKERS}
        for name, owner in where.items():
            made[owner][name] = bundle(0.01, msg_rate=traffic[name], topics=1)
        cluster = view(
            *(replace(broker(name, usage=0.5), bundles=bundles) for name, bundles in made.items()),
            recently_unloaded=memory.recently_unloaded,
        )
        cluster = replace(cluster, as_of_ms=INTERVAL + number * policy.period_ms, balancing=dict.fromkeys(BROKERS, OFF))
        decision, memory = decide(cluster, answers, memory, Controls(mode="active"), policy)
        played.append((ImbalanceLine.of(cluster.brokers.load[:, RATE_IN]).max_over_mean, len(decision.commands)))
        where |= {command.bundle: command.destination for command in decision.commands}
        answers = tuple(CommandResult(id=command.id, status="done") for command in decision.commands)
    return played
