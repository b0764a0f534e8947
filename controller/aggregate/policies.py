"""Makes the policies that filters read from the states of namespaces and brokers in the log.

Each namespace's record has the isolation policies that name it, as Pulsar's admin API returns them; together they are
the cluster's policies.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.model.policies import IsolationPolicy, MinAvailable, Policies
from controller.model.records import BrokerState, NamespaceState

#: The one fail-over policy that Pulsar has.
_MIN_AVAILABLE = "min_available"


def policies_of(namespaces: Iterable[NamespaceState], brokers: Iterable[BrokerState]) -> Policies:
    """The policies of a cluster.

    Isolation policies are in the order in which the namespaces, sorted by name, list them.  O(namespaces + brokers).
    """
    rows, known = dict[IsolationPolicy, int](), dict[int, int]()
    listed, groups = {}, {}
    spaces = list(namespaces)  # while they live, no two of their policies have the same id
    for state in spaces:
        if state.isolation_policies:
            listed[state.namespace] = tuple(
                _row(each, state.namespace, rows, known) for each in state.isolation_policies
            )
        if state.anti_affinity_group:
            groups[state.namespace] = state.anti_affinity_group
    states = list(brokers)
    return Policies(
        isolation=tuple(rows),
        listed=listed,
        anti_affinity_group=groups,
        failure_domain={state.broker: state.failure_domain for state in states if state.failure_domain},
        broker_version={state.broker: state.broker_version for state in states if state.broker_version},
        without_persistent=frozenset(state.broker for state in states if not state.persistent_topics),
        without_non_persistent=frozenset(state.broker for state in states if not state.non_persistent_topics),
    )


def _row(given: Mapping[str, Any], namespace: str, rows: dict[IsolationPolicy, int], known: dict[int, int]) -> int:
    """The row of the policy *given*, which many namespaces may share; *known*: its id -> its row.

    If it is invalid (in states of older versions), that of one that lets *namespace* go to no broker.
    """
    if id(given) not in known:
        try:
            policy = isolation_policy(given)
        except ValueError:
            return rows.setdefault(IsolationPolicy(namespaces=(f"\\Q{namespace}\\E",), primary=()), len(rows))
        known[id(given)] = rows.setdefault(policy, len(rows))
    return known[id(given)]


def why_unusable(policies: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Those of the isolation *policies* that cannot be used, by name: what they allow, and to whom, is not known."""
    found = {}
    for name, given in policies.items():
        try:
            isolation_policy(given)
        except ValueError as error:
            found[name] = f"{name:.100} cannot be used: {error}"
    return found


def isolation_policy(given: Mapping[str, Any]) -> IsolationPolicy:
    """The policy of *given*, with keys in snake case, as in the admin API, or in camel case.

    Raises ValueError if it is invalid.  Pulsar: NamespaceIsolationDataImpl, AutoFailoverPolicyDataImpl.
    """
    namespaces = _texts(given, "namespaces")
    if not namespaces:
        raise ValueError("namespaces must list regular expressions")
    return IsolationPolicy(
        namespaces=namespaces,
        primary=_texts(given, "primary"),
        secondary=_texts(given, "secondary"),
        auto_failover=_auto_failover(_named(given, "auto_failover_policy")),
    )


def _auto_failover(given: Any) -> MinAvailable:
    if given is None:
        return MinAvailable()
    kind = _named(given, "policy_type")
    if kind not in (None, _MIN_AVAILABLE):
        raise ValueError(f"policy_type {kind!r} is unknown: {_MIN_AVAILABLE} is the only one")
    parameters = _named(given, "parameters")
    numbers = {key: _named(parameters, key) for key in ("min_limit", "usage_threshold")}
    return MinAvailable(**{key: _number(key, value) for key, value in numbers.items() if value is not None})


def _named(given: Any, key: str) -> Any:
    """The value of *key* in *given*, under its snake case or camel case name, or None."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"expected an object with {key}, got {given!r}")
    head, *tail = key.split("_")
    return given.get(key, given.get(head + "".join(word.capitalize() for word in tail)))


def _texts(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = _named(given, key)
    if found is None:
        return ()
    if not isinstance(found, list | tuple) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{key} must be a list of regular expressions, got {found!r}")
    return tuple(found)


def _number(key: str, value: Any) -> int:
    """*value* as an int; Pulsar stores parameters as text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key} must be a whole number, got {value!r}")
    return int(value)
