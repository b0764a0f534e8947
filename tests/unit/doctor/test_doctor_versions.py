"""The doctor on versions of Pulsar: which one decides, and what broker.conf leaves to it."""

from typing import Any

from controller.doctor.checks import judge
from controller.doctor.facts import BrokerConfFacts
from controller.doctor.finding import Finding
from tests.doctor import A, B, C, broker, facts, pulsar, settings


def of(
    *versions: str, leader: str = "", conf: dict[str, str] | None = None, pinned: str = "auto"
) -> dict[str, Finding]:
    """Code -> finding about brokers of these *versions*."""
    brokers = [broker(name, version=text) for name, text in zip((A, B, C), versions, strict=False)]
    cluster: Any = {"name": "demo", "pulsar": pinned}
    found = judge(
        facts(
            settings=settings(cluster=cluster),
            pulsar=pulsar(*brokers, leader=leader),
            broker_conf=BrokerConfFacts(options=conf or {}),
        )
    )
    return {each.code: each for each in found}


def test_the_version_in_force_is_named_with_who_says_so() -> None:
    assert (
        of("5.0.1", "5.0.1", leader=B)["pulsar-version"].observed
        == f"decided as Pulsar 5.0.1, that of Pulsar's leader, {B}"
    )


def test_brokers_that_say_no_version_are_a_warning_that_names_the_one_assumed() -> None:
    found = of("", "nightly")["pulsar-version-unknown"]
    assert found.severity == "warning"
    assert "decides as 4.0" in found.advice


def test_a_version_in_the_settings_that_brokers_do_not_run_is_named() -> None:
    found = of("5.0.1", "5.0.1", pinned="4.0")["pulsar-version-not-the-brokers"]
    assert found.objects == (A, B)
    assert found.observed == f"the settings say 4.0; 5.0.1: {A}, {B}"
    assert "pulsar-version-not-the-brokers" not in of("5.0.1", "5.0.2", pinned="5.0")


def test_brokers_older_than_all_that_is_known_are_named() -> None:
    assert of("2.7.2")["pulsar-version-too-old"].expected == "2.8 or later"
    assert "pulsar-version-too-old" not in of("2.8.0")


def test_an_option_that_the_version_does_not_know_is_named_and_one_that_it_knows_is_not() -> None:
    conf = {"loadBalancerSheddingExcludedNamespaces": "acme/quiet", "maxUnloadPercentage": "0.3"}
    found = of("4.0.8", conf=conf)["option-unknown-to-brokers"]
    assert found.objects == ("loadBalancerSheddingExcludedNamespaces",)
    assert "option-unknown-to-brokers" not in of("4.2.4", conf=conf)


def test_defaults_of_the_version_that_the_file_leaves_out_are_listed_and_written_ones_are_not() -> None:
    seen = of("5.0.1", conf={"maxUnloadPercentage": "0.2"})["defaults-by-version"].observed
    assert "loadBalancerLoadSheddingStrategy=AvgShedder" in seen
    assert "loadBalancerDistributeBundlesEvenlyEnabled=false" in seen
    assert "maxUnloadPercentage" not in seen
    assert "defaults-by-version" not in of("4.0.8")


def test_with_the_extensible_load_manager_no_default_of_the_modular_strategies_is_listed() -> None:
    conf = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"}
    assert "AvgShedder" not in of("5.0.1", conf=conf)["defaults-by-version"].observed


def test_during_an_upgrade_a_default_that_changes_is_named_with_the_value_that_holds_now() -> None:
    found = of("4.2.4", "5.0.1", leader=A, conf={"loadBalancerLoadPlacementStrategy": "LeastLongTermMessageRate"})
    assert found["default-changes"].severity == "warning"
    assert "holds now" in found["default-changes"].observed
    assert "broker-versions-differ" in found


def test_each_default_that_changes_is_a_finding_of_its_own() -> None:
    brokers = [broker(A, version="4.2.4"), broker(B, version="5.0.1")]
    found = judge(facts(pulsar=pulsar(*brokers, leader=B)))
    changes = [each.advice.removesuffix(" keeps the current value") for each in found if each.code == "default-changes"]
    assert changes == [
        "loadBalancerDistributeBundlesEvenlyEnabled=false",
        "loadBalancerLoadPlacementStrategy=AvgShedder",
        "loadBalancerLoadSheddingStrategy=AvgShedder",
        "maxUnloadPercentage=0.5",
        "trimtabAvgShedderPlansByBundle=true",
        "trimtabIsolationPoliciesMatchBrokerIds=true",
    ]


def test_a_placement_that_stays_what_it_was_beside_a_classic_shedder_is_no_change() -> None:
    brokers = [broker(A, version="4.2.4"), broker(B, version="5.0.1")]
    conf = {"loadBalancerLoadSheddingStrategy": "ThresholdShedder"}
    found = judge(facts(pulsar=pulsar(*brokers, leader=B), broker_conf=BrokerConfFacts(options=conf)))
    changes = [each.objects[0] for each in found if each.code == "default-changes"]
    assert changes == [
        "loadBalancerDistributeBundlesEvenlyEnabled",
        "maxUnloadPercentage",
        "trimtabIsolationPoliciesMatchBrokerIds",
    ]


def test_a_classic_shedder_without_a_placement_is_told_that_5_0_places_by_message_rate() -> None:
    conf = {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"}
    found = of("5.0.1", conf=conf)["placement-replaced"]
    assert found.advice == "loadBalancerLoadPlacementStrategy=LeastLongTermMessageRate"
    assert "placement-replaced" not in of("4.2.4", conf=conf)
    assert "placement-replaced" not in of("5.0.1")
