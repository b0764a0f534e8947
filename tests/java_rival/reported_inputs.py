"""Cases that users of Pulsar reported, in the form of ``tests/vectors`` without "expected", by the names of reports."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Case = dict[str, Any]


def _broker(name: str, percent: float, bundles: Mapping[str, Sequence[float]], row: int) -> dict[str, Any]:
    load = [sum(bundle[column] for bundle in bundles.values() if bundle[4] == row) for column in range(4)]
    return {"name": name, "cpu": [percent, 100.0], "load": load}


def _small_traffic() -> Case:
    """Issue 21905: with less than 1,000 msg/s all bundles went to the new broker."""
    bundles = {f"acme/a/0x{i:08x}_0x{i + 1:08x}": [100.0 + i, 0.0, 10_000.0 + i, 0.0, 0] for i in range(6)}
    brokers = [_broker(f"b{row + 1}:8080", 50.0 - row, bundles, row) for row in range(2)]
    config = {
        "loadBalancerMsgRateDifferenceShedderThreshold": 50.0,
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 4.0,
        "minUnloadMessage": 0,
        "minUnloadMessageThroughput": 0,
        "maxUnloadPercentage": 0.2,
    }
    return {"case": "issue-21905", "config": config, "input": _one_round(brokers, bundles)}


def _equal_statistics() -> Case:
    """Pull request 26246: of two bundles with equal statistics one went to the other's broker."""
    small, large = [1000.0, 0.0, 1e6, 0.0], [3000.0, 0.0, 3e6, 0.0]
    loads = [[*small, 0], [*large, 0], [*small, 1], [*large, 1]]
    bundles = {f"acme/a/0x{i:08x}_0x{i + 1:08x}": load for i, load in enumerate(loads)}
    brokers = [_broker(f"b{row + 1}:8080", percent, bundles, row) for row, percent in enumerate((90.0, 80.0, 5.0, 1.0))]
    config = {
        "loadBalancerAvgShedderLowThreshold": 5,
        "loadBalancerAvgShedderHighThreshold": 20,
        "loadBalancerAvgShedderHitCountLowThreshold": 1,
        "loadBalancerAvgShedderHitCountHighThreshold": 1,
        "minUnloadMessage": 10,
        "minUnloadMessageThroughput": 1000,
        "maxUnloadPercentage": 0.3,
    }
    return {"case": "pull-request-26246", "config": config, "input": _one_round(brokers, bundles)}


def _one_round(brokers: Sequence[Mapping[str, Any]], bundles: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return {"rounds": [{"brokers": brokers, "bundles": bundles, "recently_unloaded": []}]}


def _policy_with_ports() -> Case:
    """Issues 15419 and 15795: a policy that names brokers with their ports finds none."""
    policy = {"namespaces": ["acme/a"], "primary": ["b1:8080"], "secondary": ["b2:8080"]}
    given = {
        "policies": {"p": policy | {"min_limit": 1, "usage_threshold": 80}},
        "policies_lookup_fails": False,
        "namespace": "acme/a",
        "service_unit_is_bundle": True,
        "has_non_persistent_topic": False,
        "available_brokers": ["b1:8080", "b2:8080", "b3:8080"],
        "topic_modes": {},
    }
    return {"case": "issue-15419", "config": {}, "input": given}


CASES: Final[Mapping[str, Sequence[Case]]] = {
    "uniform_load_shedder": (_small_traffic(),),
    "avg_shedder": (_equal_statistics(),),
    "apply_namespace_policies": (_policy_with_ports(),),
}
