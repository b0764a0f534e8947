"""Settings of broker.conf that work together and that do not, and environment variables that replace them."""

from pathlib import Path

import pytest

from controller.cycle import Policy
from controller.model.errors import SettingsError
from controller.settings.broker_conf import read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.known_options import options_table
from controller.settings.pairs import with_requested
from controller.settings.policy import policy_of, read_policy
from controller.settings.trimtab_toml import DecisionSettings, Settings, read_settings
from controller.strategies.shedding.peak_shedder import PeakShedder

CONF = Path(__file__).parents[3] / "conf"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
TRANSFER = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"


def policy(**conf: object) -> Policy:
    return policy_of(
        {key: str(value) for key, value in conf.items()}, DecisionSettings(), GuardrailSettings(), 2, "lab", 60_000
    )


def refusal(**conf: object) -> str:
    with pytest.raises(SettingsError) as caught:
        policy(**conf)
    return str(caught.value)


def settings(tmp_path: Path, broker_conf: str) -> Settings:
    (tmp_path / "broker.conf").write_text(broker_conf)
    (tmp_path / "trimtab.toml").write_text((CONF / "trimtab.toml").read_text())
    return read_settings(tmp_path / "trimtab.toml")


def kinds(found: Policy) -> list[str]:
    return [type(one).__name__ for one in (found.shedder, found.placement, found.split_policy)]


def test_the_extensible_load_manager_brings_its_own_strategies_where_none_is_named() -> None:
    found = policy(loadManagerClassName=EXTENSIBLE)
    assert kinds(found)[:2] == ["TransferShedder", "ExtLeastResourceUsageWithWeight"]
    assert policy(loadManagerClassName=EXTENSIBLE, loadBalancerLoadSheddingStrategy=TRANSFER) == found


def test_the_filters_are_those_of_the_load_manager() -> None:
    names = {
        manager: [type(one).__name__ for one in policy(loadManagerClassName=manager).filters]
        for manager in (EXTENSIBLE, "ModularLoadManagerImpl")
    }
    assert "BundlesWithPolicies" in names[EXTENSIBLE]
    assert "FewestBundles" not in names[EXTENSIBLE]
    assert "FewestBundles" in names["ModularLoadManagerImpl"]


def test_a_placement_that_belongs_to_another_shedder_gives_way_to_the_one_asked_for() -> None:
    shedder, placement = "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"
    avg = {shedder: "AvgShedder", placement: "AvgShedder", "x": "y"}
    assert with_requested(avg, {shedder: "ThresholdShedder"}) == {shedder: "ThresholdShedder", "x": "y"}
    assert with_requested(avg, {shedder: "AvgShedder"}) == avg
    assert with_requested(avg, {"x": "z"}) == {**avg, "x": "z"}
    assert with_requested(avg, {shedder: "ThresholdShedder", placement: "AvgShedder"})[placement] == "AvgShedder"
    least = {placement: "LeastResourceUsageWithWeight"}
    assert with_requested(least, {shedder: "PeakShedder"}) == {**least, shedder: "PeakShedder"}


def test_transfer_shedder_is_refused_without_its_load_manager() -> None:
    assert refusal(loadBalancerLoadSheddingStrategy=TRANSFER) == (
        f"loadBalancerLoadSheddingStrategy={TRANSFER} does not go with loadManagerClassName=ModularLoadManagerImpl:"
        " only the extensible load manager knows it, and brokers with another one do not start with it;"
        " allowed: loadManagerClassName=ExtensibleLoadManagerImpl"
    )


def test_another_shedder_is_refused_with_the_extensible_load_manager() -> None:
    said = refusal(loadManagerClassName=EXTENSIBLE, loadBalancerLoadSheddingStrategy="ThresholdShedder")
    assert said.endswith("allowed: loadBalancerLoadSheddingStrategy=PeakShedder or TransferShedder")


@pytest.mark.parametrize("manager", ["ModularLoadManagerImpl", EXTENSIBLE])
def test_peak_shedder_goes_with_either_load_manager_and_asks_its_filters(manager: str) -> None:
    made = policy(loadManagerClassName=manager, loadBalancerLoadSheddingStrategy="PeakShedder")
    assert isinstance(made.shedder, PeakShedder)
    assert made.shedder.filters == made.filters
    assert made.filters


def test_isolating_hot_topics_is_refused_where_two_cuts_are_never_made() -> None:
    conf = {"loadManagerClassName": EXTENSIBLE, "trimtabIsolateHotTopicPercentage": 50}
    assert refusal(**conf).endswith("allowed: trimtabSplitStrategySeveralCuts=true")
    assert kinds(policy(**conf, trimtabSplitStrategySeveralCuts="true"))[0] == "TransferShedder"
    assert kinds(policy(trimtabIsolateHotTopicPercentage=50))[0] == "ThresholdShedder"


@pytest.mark.parametrize(
    ("algorithm", "supported", "why"),
    [
        ("topic_count_equally_divide", "range_equally_divide", "it is not in that list"),
        ("topic_count_equally_divide", "topic_count_equally_divide", "specified_positions_divide is in that list"),
    ],
)
def test_a_split_that_the_brokers_would_refuse_is_refused_at_once(algorithm: str, supported: str, why: str) -> None:
    said = refusal(defaultNamespaceBundleSplitAlgorithm=algorithm, supportedNamespaceBundleSplitAlgorithms=supported)
    assert said.startswith(f"defaultNamespaceBundleSplitAlgorithm={algorithm} does not go with supported")
    assert said.endswith(why)


def test_brokers_that_only_halve_are_enough_for_halving() -> None:
    found = policy(supportedNamespaceBundleSplitAlgorithms="range_equally_divide")
    assert found.split_algorithm.name == "range_equally_divide"


def test_a_variable_with_the_prefix_overrides_the_file_and_adds_to_it(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("one=1\ntwo=2\n")
    environment = {"PULSAR_PREFIX_two": " 3 ", "PULSAR_PREFIX_four": "4", "one": "9", "PULSAR_MEM": "-Xmx1g"}
    assert read_broker_conf(path, environment) == {"one": "1", "two": "3", "four": "4"}


def test_the_environment_reaches_the_policy(tmp_path: Path) -> None:
    made = read_policy(
        settings(tmp_path, "loadBalancerSheddingGracePeriodMinutes=5\n"),
        {"PULSAR_PREFIX_loadBalancerSheddingGracePeriodMinutes": "7"},
    )
    assert made.balancer.grace_period_minutes == 7


def test_a_bad_value_from_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read_policy(settings(tmp_path, ""), {"PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes": "often"})
    assert str(caught.value) == (
        f"{tmp_path / 'broker.conf'} with PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes:"
        " loadBalancerSheddingIntervalMinutes=often: allowed: a whole number from 1 up"
    )


def test_options_that_only_brokers_use_are_listed_once_as_not_read() -> None:
    rows = options_table()
    assert len({row.key for row in rows}) == len(rows)
    left = {row.key for row in rows if row.meaning.startswith("not read: ")}
    assert {"loadBalancerSheddingEnabled", "loadBalancerReportUpdateMinIntervalMillis"} < left
    assert "loadBalancerEnabled" not in left
