from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.model.load import ClusterView
from controller.model.policies import Policies
from controller.strategies.filters.broker_version import BrokerVersion, precedence
from tests.cluster import broker, view
from tests.filters import accepted_brokers

LATER = BrokerVersion(prefer_later=True)


def cluster(**versions: str) -> ClusterView:
    made = view(broker("x", a=1), broker("y"), broker("z"))
    return replace(made, policies=Policies(broker_version=versions))


def test_by_default_every_version_does() -> None:
    assert accepted_brokers(BrokerVersion(), cluster(x="1.0.0"), "a") == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("versions", "latest"),
    [
        ({"x": "4.0.8", "y": "4.0.10", "z": "3.9.9"}, ["y"]),
        ({"x": "4.1.0-SNAPSHOT", "y": "4.0.8", "z": "4.0.8"}, ["x"]),
        ({"x": "4.1.0-rc.2", "y": "4.1.0-rc.10", "z": "4.1.0-rc"}, ["y"]),
        ({"x": "4.1.0-rc", "y": "4.1.0-1", "z": "4.1.0-1.9"}, ["x"]),
        ({"x": "4.0.8", "y": "4.0.8+build.2", "z": "4.0.8-rc.1"}, ["x", "y"]),
    ],
)
def test_the_latest_version_is_kept_whatever_its_build(versions: Mapping[str, str], latest: list[str]) -> None:
    assert accepted_brokers(LATER, cluster(**versions), "a") == latest


@pytest.mark.parametrize("strange", ["", "4.0", "v4.0.8", "4.00.8", "4.0.8-01", "4.0.8-", "4.0.8+", "٤.0.8"])
def test_where_one_version_says_nothing_no_broker_is_kept_which_means_the_filter_is_ignored(strange: str) -> None:
    mixed = cluster(x="4.0.8", y="4.0.9", z=strange)
    assert precedence(strange) is None
    assert accepted_brokers(LATER, mixed, "a") == []
    assert accepted_brokers(LATER, mixed, "a", of=("x", "y")) == ["y"]


def test_of_no_candidates_none_are_kept() -> None:
    assert accepted_brokers(LATER, cluster(), "a", of=()) == []
