"""conf/broker.recommended.conf: that it loads, and that it means what it says."""

from dataclasses import replace
from pathlib import Path

from controller.cycle import Policy
from controller.settings.broker_conf import read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.known_options import options_table
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from controller.strategies.splitting.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from controller.strategies.splitting.large_partition import WithPartitionAdvice
from tests.cluster import broker, bundle, view

RECOMMENDED = Path(__file__).parents[3] / "conf" / "broker.recommended.conf"


def policy(conf: dict[str, str]) -> Policy:
    return policy_of(conf, DecisionSettings(), GuardrailSettings(), 1, "lab", 60_000)


def test_it_says_uniform_shedding_small_bundles_and_cuts_by_traffic() -> None:
    made = policy(read_broker_conf(RECOMMENDED))
    assert made.shedder == UniformLoadShedder(max_bundles=5, share_to_unload=0.5)
    assert type(made.placement) is LeastLongTermMessageRate
    assert made.selection == ModularSelectBroker(overloaded_percent=120)
    assert isinstance(made.split_algorithm, FlowOrQpsEquallyDivide)
    assert (made.split_algorithm.max_msg_rate, made.split_algorithm.max_bandwidth_mbytes) == (10_000, 100)
    assert isinstance(made.split_policy, WithPartitionAdvice)
    thresholds = made.split_policy.thresholds
    assert (thresholds.topics, thresholds.sessions, thresholds.msg_rate) == (100, 1000, 10_000)
    assert getattr(made.split_policy.policy, "max_bundles") == 512  # noqa: B009
    assert made.balancer.enabled
    assert not made.balancer.unload_split_bundles


def test_at_most_five_bundles_go_where_half_of_the_difference_would_be_more() -> None:
    busy = replace(broker("busy"), bundles={f"b{i}": bundle(1, msg_rate=200) for i in range(40)})
    uneven = view(busy, broker("idle", z=bundle(1, msg_rate=200)))
    shedder = policy(read_broker_conf(RECOMMENDED)).shedder
    assert isinstance(shedder, UniformLoadShedder)
    assert len(shedder.decide(uneven, shedder.initial_memory())[0].unloads) == 5
    unlimited = replace(shedder, max_bundles=-1)
    assert len(unlimited.decide(uneven, unlimited.initial_memory())[0].unloads) > 5


def test_the_getters_name_is_taken_for_the_options() -> None:
    conf = read_broker_conf(RECOMMENDED)
    misspelt = {key.replace("maxUnloadBundleNum", "getMaxUnloadBundleNum"): text for key, text in conf.items()}
    assert "getMaxUnloadBundleNumPerShedding" in misspelt
    assert policy(misspelt) == policy(conf)


def test_every_key_of_it_is_an_option_that_is_known() -> None:
    known = {row.key for row in options_table()}
    assert set(read_broker_conf(RECOMMENDED)) <= known
