"""Versions of Pulsar: how they are read and ordered, and what the table of differences says."""

import pytest

from controller.model import pulsar_version
from controller.model.pulsar_version import (
    ASSUMED,
    ClassMeaning,
    PulsarVersion,
    default_in,
    knows,
    not_known,
    other_defaults,
    strategy_meant,
)

SHEDDER = "loadBalancerLoadSheddingStrategy"


def version(text: str) -> PulsarVersion:
    found = PulsarVersion.parse(text)
    assert found is not None, text
    return found


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("4.0.8", "4.0.8"),
        ("5.0", "5.0"),
        ("v3.3.1", "3.3.1"),
        ("2.10.4.3", "2.10.4"),
        ("5.0.0-M2", "5.0.0"),
        ("4.2.0-SNAPSHOT", "4.2.0"),
        ("3.0.7+build.5", "3.0.7"),
        ("2.10_3.4", "2.10.3"),
        ("4.0.4.1-acme", "4.0.4"),
        ("3.1.2.Final", "3.1.2"),
    ],
)
def test_versions_as_brokers_report_them_are_read(text: str, read: str) -> None:
    assert str(version(text)) == read


@pytest.mark.parametrize("text", ["", "5", "unknown", "four.zero", "4.0.8 ", "4..8", "-1.2", "99999.0", "4.0.x", "٤.٠"])
def test_what_is_no_version_is_not_read(text: str) -> None:
    assert PulsarVersion.parse(text) is None


def test_versions_are_ordered_by_number_and_a_line_is_its_latest_patch() -> None:
    ordered = ["2.8.4", "2.10.0", "2.10", "3.0.6", "3.0", "4.0.8", "4.0", "5.0.1"]
    assert sorted(ordered, key=version) == ordered


@pytest.mark.parametrize(
    ("text", "shedder"),
    [
        ("1.0", "OverloadShedder"),
        ("2.9.3", "OverloadShedder"),
        ("2.10.0", "ThresholdShedder"),
        ("4.2.4", "ThresholdShedder"),
        ("5.0.0-M1", "AvgShedder"),
        ("7.0", "AvgShedder"),
    ],
)
def test_a_default_is_that_of_the_last_change_before_the_version(text: str, shedder: str) -> None:
    assert default_in(version(text), SHEDDER) == shedder


def test_what_differs_in_5_0_is_the_even_spreading_the_unload_share_the_strategies_and_isolation() -> None:
    assert other_defaults(version("5.0.1")) == {
        "defaultNumberOfNamespaceBundles": "32",
        "loadBalancerDistributeBundlesEvenlyEnabled": "false",
        "loadBalancerLoadPlacementStrategy": "AvgShedder",
        "loadBalancerLoadSheddingStrategy": "AvgShedder",
        "maxUnloadPercentage": "0.5",
        "trimtabAvgShedderPlansByBundle": "true",
        "trimtabIsolationPoliciesMatchBrokerIds": "true",
        "trimtabUniformLoadShedderSlack": "0",
    }


def test_nothing_differs_from_the_declared_defaults_in_the_version_that_is_assumed() -> None:
    assert other_defaults(ASSUMED) == {}
    assert other_defaults(version("4.0.0")) == {}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("3.0.5", False),
        ("3.0.6", True),
        ("3.1.3", False),
        ("3.2.3", False),
        ("3.2.4", True),
        ("3.3.0", False),
        ("3.3.1", True),
        ("3.0", True),
        ("5.0.1", True),
    ],
)
def test_an_option_that_came_to_several_lines_is_known_from_its_patch_on(text: str, known: bool) -> None:
    assert knows(version(text), "loadBalancerAvgShedderLowThreshold") is known


def test_options_that_a_version_does_not_know_are_listed_and_trimtabs_own_are_not() -> None:
    options = ["maxUnloadPercentage", "loadBalancerSheddingExcludedNamespaces", "trimtabPeakShedderMoveCost"]
    assert not_known(version("4.0.8"), options) == ["loadBalancerSheddingExcludedNamespaces"]
    assert not_known(version("4.2.0"), options) == []


def test_a_class_name_means_another_strategy_from_a_version_on(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = {(SHEDDER, "OverloadShedder"): (ClassMeaning(version("4.2.0"), "UniformLoadShedder"),)}
    monkeypatch.setattr(pulsar_version, "MEANINGS", toy)
    assert strategy_meant(version("4.1"), SHEDDER, "OverloadShedder") == "OverloadShedder"
    assert strategy_meant(version("4.2.0"), SHEDDER, "OverloadShedder") == "UniformLoadShedder"
    assert strategy_meant(version("5.0"), SHEDDER, "ThresholdShedder") == "ThresholdShedder"
