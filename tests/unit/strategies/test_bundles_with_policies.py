from dataclasses import replace

import numpy as np

from controller.model.policies import IsolationPolicy, Policies
from controller.strategies.filters.bundles_with_policies import BundlesWithPolicies
from tests.cluster import broker, view
from tests.filters import accepted_brokers

FREE, GROUPED, ISOLATED = "acme/a/0", "acme/b/0", "acme/c/0"
CLUSTER = replace(
    view(broker("x", **dict.fromkeys((FREE, GROUPED, ISOLATED), 1.0)), broker("y")),
    policies=Policies(
        anti_affinity_group={"acme/b": "red"}, isolation=(IsolationPolicy(namespaces=("acme/c",), primary=("x",)),)
    ),
)


def leaving(by: BundlesWithPolicies) -> list[str]:
    everyone = np.arange(2, dtype=np.int64)
    return [name for name, row in CLUSTER.bundles.code_of.items() if by.may_leave(CLUSTER, row, everyone)]


def test_bundles_of_namespaces_with_a_group_or_an_isolation_policy_stay() -> None:
    assert leaving(BundlesWithPolicies()) == [FREE]
    assert leaving(BundlesWithPolicies(shed=True)) == [FREE, GROUPED, ISOLATED]


def test_it_does_not_say_where_to() -> None:
    assert accepted_brokers(BundlesWithPolicies(), CLUSTER, GROUPED) == ["x", "y"]
