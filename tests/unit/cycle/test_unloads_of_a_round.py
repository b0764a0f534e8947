"""What the unloads of one round know of each other: as in Pulsar, nothing, unless an option or a plan says so."""

from dataclasses import replace

import pytest

from controller.cycle import BalancerOptions, Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.load import ClusterView
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from tests.cluster import INTERVAL, Broker, broker, bundle, view

#: Bundles of 10 MB/s and 10 messages/s each on a full broker, and three idle brokers, one more idle than the others.
NAMES = [f"acme/n{i}/0x00000000_0xffffffff" for i in range(8)]
HOT = view(
    Broker("a:80", cpu=0.95, bundles={name: bundle(10, msg_rate=10) for name in NAMES}),
    broker("b:80", usage=0.1, x=bundle(1, msg_rate=1)),
    broker("c:80", usage=0.1, y=bundle(1, msg_rate=2)),
    broker("d:80", usage=0.1, z=bundle(1, msg_rate=3)),
)


def policy(shedder: str, *, preallocates: bool) -> Policy:
    conf = {
        "loadBalancerLoadSheddingStrategy": shedder,
        "trimtabSheddingPreallocates": str(preallocates).lower(),
        "trimtabPeakShedderSettleMinutes": "0",
        "minUnloadMessage": "1",
        "maxUnloadPercentage": "0.5",
    }
    guardrails = GuardrailSettings(unproven_bundles="unlimited", brokers_balance_unknown="ignore")
    return policy_of(conf, DecisionSettings(mode="active"), guardrails, 0, "lab", 60_000)


def decided(policy: Policy, seen: ClusterView = HOT) -> Decision:
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - 60_000, samples=9)
    return decide(seen, [], memory, Controls(mode="active"), policy)[0]


def destinations(found: Decision) -> set[str]:
    return {command.destination for command in found.commands}


@pytest.mark.parametrize("shedder", ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder"])
def test_all_bundles_of_a_round_go_to_the_one_best_broker_unless_the_option_spreads_them(shedder: str) -> None:
    plain, spread = (decided(policy(shedder, preallocates=on)) for on in (False, True))
    assert len(plain.commands) > 1
    assert destinations(plain) == {"b:80"}
    assert [command.bundle for command in spread.commands] == [command.bundle for command in plain.commands]
    assert len(destinations(spread)) > 1


def test_pulsars_way_is_the_default() -> None:
    assert BalancerOptions().preallocates is False
    assert policy_of({}, DecisionSettings(), GuardrailSettings(), 0, "lab", 60_000).balancer.preallocates is False


def test_the_option_changes_no_move_of_a_plan() -> None:
    plain, spread = (decided(policy("PeakShedder", preallocates=on)) for on in (False, True))
    assert plain.commands
    assert plain.commands == spread.commands
    assert len(destinations(plain)) > 1
