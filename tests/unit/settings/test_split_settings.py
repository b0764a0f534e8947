"""The options of broker.conf about splitting and topics, and the policy made from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controller.cycle import Policy
from controller.model.errors import SettingsError
from controller.settings.policy import read_assignment, read_policy
from controller.settings.trimtab_toml import read_settings
from controller.strategies.assignment.consistent_hashing import ConsistentHashingTopicBundleAssigner
from controller.strategies.assignment.round_robin import RoundRobinTopicBundleAssigner
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
)
from controller.strategies.splitting.hot_topic_isolation import HotTopicIsolation
from controller.strategies.splitting.large_partition import WithPartitionAdvice
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from controller.strategies.splitting.split_hours import WithinHours
from controller.strategies.splitting.topic_count_equally_divide import TopicCountEquallyDivide

CONF = Path(__file__).parents[3] / "conf"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
CONSISTENT = "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner"


def policy(tmp_path: Path, **conf: object) -> Policy:
    text = {"trimtabMaxPartitionMbytes": 0} | conf
    (tmp_path / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in text.items()))
    (tmp_path / "trimtab.toml").write_text((CONF / "trimtab.toml").read_text())
    return read_policy(read_settings(tmp_path / "trimtab.toml"))


def refusal(tmp_path: Path, **conf: object) -> str:
    with pytest.raises(SettingsError) as caught:
        policy(tmp_path, **conf)
    return str(caught.value).removeprefix(f"{tmp_path / 'broker.conf'}: ")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", BundleSplitterTask),
        ("ModularLoadManagerImpl", BundleSplitterTask),
        ("org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl", BundleSplitterTask),
        (EXTENSIBLE, DefaultNamespaceBundleSplitStrategyImpl),
    ],
)
def test_the_load_manager_says_when_bundles_are_split(tmp_path: Path, name: str, kind: type) -> None:
    assert type(policy(tmp_path, loadManagerClassName=name).split_policy) is kind


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("org.apache.pulsar.broker.loadbalance.NoopLoadManager", "that of a single broker"),
        ("org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl", "set another load manager"),
        ("a.b.SimpleLoadManagerImpl", "set another load manager"),
        (
            "org.apache.pulsar.broker.loadbalance.ModularLoadManagerImpl",
            "did you mean org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
        ),
        ("a.b.C", "no load manager of Pulsar"),
    ],
)
def test_another_load_manager_is_refused_with_the_reason_and_what_to_do(tmp_path: Path, name: str, why: str) -> None:
    text = refusal(tmp_path, loadManagerClassName=name)
    assert text.startswith(f"loadManagerClassName={name}: ")
    assert why in text
    assert text.endswith("allowed: ExtensibleLoadManagerImpl, ModularLoadManagerImpl")


def test_the_extensible_managers_policy_knows_where_a_bundle_will_be_cut(tmp_path: Path) -> None:
    conf = {"loadManagerClassName": EXTENSIBLE, "loadBalancerMaxNumberOfBundlesToSplitPerCycle": 3}
    found = policy(tmp_path, **conf, defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide")
    assert found.split_policy == DefaultNamespaceBundleSplitStrategyImpl(
        max_splits=3, algorithm=TopicCountEquallyDivide()
    )
    assert found.split_algorithm == TopicCountEquallyDivide()


def test_brokers_of_the_extensible_load_manager_keep_the_parts_of_a_split_whatever_the_option_says(
    tmp_path: Path,
) -> None:
    # Java: NamespaceService.splitAndOwnBundle passes on all but whether to unload.
    for manager, asked, leave in (("", True, True), ("", False, False), (EXTENSIBLE, True, False)):
        conf = {"loadManagerClassName": manager, "loadBalancerAutoUnloadSplitBundlesEnabled": str(asked).lower()}
        assert policy(tmp_path, **conf).balancer.unload_split_bundles is leave


def test_hot_topics_are_isolated_before_the_algorithm_is_asked(tmp_path: Path) -> None:
    algorithm = policy(
        tmp_path,
        trimtabIsolateHotTopicPercentage=70,
        defaultNamespaceBundleSplitAlgorithm="specified_positions_divide",
    ).split_algorithm
    assert isinstance(algorithm, HotTopicIsolation)
    assert (algorithm.hot.percent, algorithm.otherwise) == (70, SpecifiedPositionsDivide())


def test_hours_and_advice_are_put_around_the_policy(tmp_path: Path) -> None:
    outer: Any = policy(tmp_path, trimtabSplitHours="1-5,22-24", trimtabMaxPartitionMbytes=30).split_policy
    assert isinstance(outer, WithinHours)
    assert outer.hours.text == "1-5,22-24"
    assert isinstance(outer.policy, WithPartitionAdvice)
    assert outer.policy.large.max_mbytes == 30
    assert outer.policy.policy == BundleSplitterTask()


def test_invalid_hours_are_refused_with_the_file(tmp_path: Path) -> None:
    assert refusal(tmp_path, trimtabSplitHours="25").startswith("trimtabSplitHours=25: '25' is no span of hours")


@pytest.mark.parametrize(
    ("conf", "kind"),
    [
        ({}, ConsistentHashingTopicBundleAssigner),
        ({"topicBundleAssignmentStrategy": CONSISTENT}, ConsistentHashingTopicBundleAssigner),
        ({"topicBundleAssignmentStrategy": f"{CONSISTENT}.class"}, ConsistentHashingTopicBundleAssigner),
        (
            {"topicBundleAssignmentStrategy": "ConsistentHashingTopicBundleAssigner.class"},
            ConsistentHashingTopicBundleAssigner,
        ),
        ({"topicBundleAssignmentStrategy": "RoundRobinTopicBundleAssigner.class"}, RoundRobinTopicBundleAssigner),
        ({"topicBundleAssignmentStrategy": "com.example.RoundRobinTopicBundleAssigner"}, RoundRobinTopicBundleAssigner),
    ],
)
def test_topics_are_assigned_as_the_brokers_do_it(conf: Mapping[str, str], kind: type) -> None:
    assert type(read_assignment(conf)) is kind


def test_an_assignment_that_is_not_known_is_refused_before_anything_runs(tmp_path: Path) -> None:
    assert refusal(tmp_path, topicBundleAssignmentStrategy="Mine").startswith(
        "topicBundleAssignmentStrategy=Mine: allowed: ConsistentHashingTopicBundleAssigner, Round"
    )
