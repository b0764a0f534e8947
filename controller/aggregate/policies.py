"""Makes the policies that filters read from the states of namespaces and brokers in the log.

Each namespace's record has the isolation policies that name it, as Pulsar's admin API returns them; together they are
the cluster's policies.
"""

from collections.abc import Iterable
from typing import Any

from controller.model.isolation import IsolationPolicy
from controller.model.isolation_policies import isolation_policy
from controller.model.policies import Policies
from controller.model.records import BrokerState, NamespaceState


def policies_of(namespaces: Iterable[NamespaceState], brokers: Iterable[BrokerState]) -> Policies:
    """The policies of a cluster.

    Isolation policies are in the order in which the namespaces, sorted by name, list them.  O(namespaces + brokers).
    """
    rows, known = dict[IsolationPolicy, int](), dict[int, int]()
    listed, groups, auto_scale = {}, {}, {}
    spaces = list(namespaces)  # while they live, no two of their policies have the same id
    for state in spaces:
        if state.isolation_policies:
            listed[state.namespace] = tuple(_row(each, rows, known) for each in state.isolation_policies)
        if state.anti_affinity_group:
            groups[state.namespace] = state.anti_affinity_group
        if state.auto_scale:
            auto_scale[state.namespace] = state.auto_scale
    states = list(brokers)
    return Policies(
        isolation=tuple(rows),
        listed=listed,
        anti_affinity_group=groups,
        auto_scale=auto_scale,
        failure_domain={state.broker: state.failure_domain for state in states if state.failure_domain},
        broker_version={state.broker: state.broker_version for state in states if state.broker_version},
        without_persistent=frozenset(state.broker for state in states if not state.persistent_topics),
        without_non_persistent=frozenset(state.broker for state in states if not state.non_persistent_topics),
    )


def _row(stored: Any, rows: dict[IsolationPolicy, int], known: dict[int, int]) -> int:
    """The row of the policy *stored*, which many namespaces may share; *known*: its id -> its row."""
    if id(stored) not in known:
        known[id(stored)] = rows.setdefault(isolation_policy(stored), len(rows))
    return known[id(stored)]
