"""State records of namespaces, brokers and stored averages, and when they are due.  Pure.

They are written when they change, and again every few intervals for new readers.  Stored averages change all the time,
and only readers without own averages of a bundle use them, so they are written once, and again much later.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from controller.collector.reports import BrokerReport
from controller.model.balancing import Balancing
from controller.model.errors import WireError
from controller.model.isolation import Isolation
from controller.model.isolation_policies import isolation_policy
from controller.wire.base import MAX_RATE, encode, printable, validate
from controller.wire.chunks import KeyValue
from controller.wire.metrics import (
    AutoScalePolicy,
    BalancingSwitches,
    BrokerStateRecord,
    BundleData,
    Capacity,
    NamespaceStateRecord,
    ResourceQuota,
    StoredBundleData,
)

#: The stored averages of a bundle are written again after so many times the time of other states: for a controller
#: that began since without a checkpoint.
_BUNDLES_AGAIN: Final = 36

State: TypeAlias = NamespaceStateRecord | BrokerStateRecord | BundleData
_BUNDLE: Final = "bundle_data"
#: A policy that lists more namespaces is not published whole with each of them: all of it would grow as their square.
_MOST_LISTED: Final = 100
#: What a controller would not read of a long list must be in the record of each namespace that it might name.  So here
#: more expressions are read than there: policies are read anew only when they change.
_MOST_EXPRESSIONS: Final = 20_000
#: An expression of these is the name itself.
_PLAIN: Final = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
#: Characters of such a list that name others, in the record of one namespace.
_MOST_BESIDE: Final = 100_000


class ClusterPolicies:
    """The isolation policies of a cluster, by name in Pulsar's order.

    A policy that cannot be read counts as naming every namespace that it could name.
    """

    def __init__(self, policies: Mapping[str, Mapping[str, Any]]) -> None:
        self.policies = policies
        self._policies = list(policies.values())
        self._rules = Isolation(tuple(map(isolation_policy, self._policies)), max_patterns=_MOST_EXPRESSIONS)
        self._naming = dict[str, list[int]]()

    def ask_about(self, namespaces: Sequence[str]) -> None:
        """Match all *namespaces* at once, which is faster than one by one."""
        self._naming = self._rules.naming(namespaces)

    def naming(self, namespace: str, beside: "Unread | None" = None) -> Iterator[Mapping[str, Any]]:
        """Those that name *namespace*, as they were given; of a long list of namespaces what names this one alone.

        *beside* it a long list has what names namespaces that could not be read.
        """
        if namespace not in self._naming:
            self._naming |= self._rules.naming([namespace])
        for row in self._naming[namespace]:
            if beside is not None:
                beside.is_named(row)
            if self._is_short(row):
                yield self._policies[row]
            else:
                others = beside.next_of(row) if beside is not None else []
                names = list(dict.fromkeys([*self._rules.that_name(row, namespace), *others]))
                yield {**self._policies[row], "namespaces": names}

    def unread(self, namespaces: Sequence[str]) -> "Unread":
        """The policies that name *namespaces*, whose own records are older than these policies."""
        if not namespaces:
            return Unread({}, {})
        return Unread(
            {row: self._left_of(row, namespaces) for row in range(len(self._policies)) if not self._is_short(row)},
            dict(enumerate(self._policies)),
        )

    def _left_of(self, row: int, namespaces: Sequence[str]) -> list[str]:
        listed = self._rules.policies[row].namespaces
        plain = {regex for regex in listed if _PLAIN.fullmatch(regex)}
        return [*(name for name in namespaces if name in plain), *(regex for regex in listed if regex not in plain)]

    def _is_short(self, row: int) -> bool:
        return len(self._rules.policies[row].namespaces) <= _MOST_LISTED


class Unread:
    """Expressions of long policies that name namespaces that could not be read: others' records have them.

    The record of such a namespace may be older than the policy.  Without this its bundles could go to brokers that the
    policy forbids.  A policy that names only such namespaces is added to any record.
    """

    def __init__(self, remaining: dict[int, list[str]], unnamed: dict[int, Mapping[str, Any]]) -> None:
        """*remaining*: row of a long policy -> expressions without a record.  *unnamed*: policies without a record."""
        self._remaining, self._unnamed = remaining, unnamed

    def is_named(self, row: int) -> None:
        """A record has the policy *row*."""
        self._unnamed.pop(row, None)

    def added_to(self, states: Iterable[NamespaceStateRecord]) -> Iterator[NamespaceStateRecord]:
        """*states*, with the policies that none of them has, as many as each can hold beside all else."""
        missing = (
            {**policy_fields, "namespaces": names} if names is not None else dict(policy_fields)
            for row, policy_fields in self._unnamed.items()
            if (names := self.next_of(row) if row in self._remaining else None) != []
        )
        waiting = deque((len(json.dumps(policy)), policy) for policy in missing)
        for state in states:
            added, size = list[dict[str, Any]](), 0
            while waiting and (not added or size + waiting[0][0] <= _MOST_BESIDE):
                more, policy = waiting.popleft()
                size += more
                added.append(policy)
            own = state.isolation_policies or ()
            yield state.model_copy(update={"isolation_policies": (*own, *added)}) if added else state

    def next_of(self, row: int) -> list[str]:
        """Those of the policy *row* that the next record has: as many as one can hold beside all else."""
        remaining, size, count = self._remaining.get(row, []), 0, 0
        while count < len(remaining) and (size := size + len(remaining[count])) <= _MOST_BESIDE:
            count += 1
        self._remaining[row] = remaining[count:]
        return remaining[:count]


class Namespace(NamedTuple):
    """What was read of one namespace."""

    name: str
    boundaries: tuple[int, ...]
    anti_affinity_group: str = ""
    #: As the admin API gives it.
    auto_scale: Mapping[str, Any] = {}


def auto_scale_policy(stored: Mapping[str, Any]) -> AutoScalePolicy | None:
    """The policy *stored* of a namespace's segments; None where it says nothing.

    A broker that cannot obey a policy splits and merges nothing; what is above all rates is never reached.
    """
    capped = {
        key: min(value, MAX_RATE) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for key, value in stored.items()
    }
    try:
        policy = AutoScalePolicy.model_validate(capped)
    except ValidationError:
        return AutoScalePolicy(enabled=False)
    return policy if policy.overrides else None


def namespace_state(
    cluster: str, namespace: Namespace, policies: ClusterPolicies, *, version: int, beside: Unread | None = None
) -> NamespaceStateRecord:
    """*namespace*, with those of the cluster's isolation *policies* that name it, in Pulsar's order.

    *beside*: see ``ClusterPolicies.naming``.  ValueError where its boundaries are none.
    """
    own = tuple(dict(policy) for policy in policies.naming(namespace.name, beside))
    return NamespaceStateRecord(
        cluster=cluster,
        namespace=namespace.name,
        version=version,
        boundaries=namespace.boundaries,
        anti_affinity_group=namespace.anti_affinity_group or None,
        isolation_policies=own or None,
        auto_scale_policy=auto_scale_policy(namespace.auto_scale),
    )


class BrokerSettings(NamedTuple):
    """Of the settings that a broker runs with those that trimtab asks for."""

    #: None where it could not be read.
    balancing: Balancing | None
    #: Whether it serves topics of these kinds; None where its settings do not say.
    persistent_topics: bool | None
    non_persistent_topics: bool | None


def broker_state(
    cluster: str,
    broker: str,
    report: BrokerReport,
    *,
    version: int,
    failure_domain: str | None,
    capacity: Mapping[str, float],
    settings: BrokerSettings | None = None,
    leads: bool = False,
) -> BrokerStateRecord:
    """The state of *broker* besides its load.

    *settings*: what it runs with, as far as that is known.  *leads*: it leads Pulsar's own load manager.

    Which kinds of topics it serves is taken from its load report, which the extensible load manager does not have, and
    else from its settings.
    """
    persistent, non_persistent = report.persistent_topics, report.non_persistent_topics
    if settings is not None:
        persistent = settings.persistent_topics if persistent is None else persistent
        non_persistent = settings.non_persistent_topics if non_persistent is None else non_persistent
    return BrokerStateRecord(
        cluster=cluster,
        broker=broker,
        version=version,
        failure_domain=failure_domain,
        broker_version_string=report.broker_version,
        persistent_topics_enabled=persistent,
        non_persistent_topics_enabled=non_persistent,
        capacity=Capacity(**capacity) if capacity else None,
        balancing=None if settings is None or settings.balancing is None else BalancingSwitches.of(settings.balancing),
        leader=leads or None,
    )


def bundle_data(cluster: str, bundle: str, kind: str, stored: bytes) -> BundleData:
    """Pulsar's stored averages of *bundle* (*kind* ``bundle_data``) or its quota.  WireError: it is unusable."""
    try:
        if kind == "bundle_data":
            return BundleData(cluster=cluster, bundle=bundle, bundle_data=validate(StoredBundleData, stored))
        return BundleData(cluster=cluster, bundle=bundle, resource_quota=validate(ResourceQuota, stored))
    except ValueError as error:
        raise WireError("bad_value", printable(str(error))) from error


def domains_by_broker(domains: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Broker -> its failure domain, from the admin API's domain -> brokers."""
    return {broker: name for name, domain in domains.items() for broker in domain.get("brokers") or ()}


@dataclass(slots=True)
class Due:
    """Selects states to write: those that differ from the last written ones, or were written too long ago."""

    #: After so long an unchanged state is written again, ms.
    again_ms: int
    _written: dict[tuple[str, str], tuple[bytes, int]] = field(default_factory=dict)

    def of(self, states: Iterable[State], interval: int) -> list[State]:
        """Those of *states* that are due in *interval*."""
        return [state for state in states if self._is_due(state, interval)]

    def written(self, states: Sequence[State], interval: int) -> None:
        """*states* lie in the log."""
        for state in states:
            self._written[key_of(state)] = _content(state), interval
        # States that are due again need no entry; many of them no longer exist.
        self._written = {
            key: known for key, known in self._written.items() if interval - known[1] < self._again_ms(key[0])
        }

    def bundles(self, interval: int) -> frozenset[str]:
        """The bundles whose stored averages are not due in *interval*."""
        return frozenset(
            name
            for (kind, name), (_, at) in self._written.items()
            if kind == _BUNDLE and interval - at < self._again_ms(kind)
        )

    def forget(self) -> None:
        """Make all states due, since others may have written meanwhile."""
        self._written.clear()

    def _again_ms(self, kind: str) -> int:
        return self.again_ms * (_BUNDLES_AGAIN if kind == _BUNDLE else 1)

    def _is_due(self, state: State, interval: int) -> bool:
        content, at = self._written.get(key_of(state), (b"", 0))
        if interval - at >= self._again_ms(state.type):
            return True
        return not isinstance(state, BundleData) and content != _content(state)


def records(states: Iterable[State]) -> list[KeyValue]:
    """*states* as records of the metrics topic."""
    return [(key_of(state)[1], encode(state)) for state in states]


def key_of(state: State) -> tuple[str, str]:
    """What *state* is about: its type, and whose it is."""
    if isinstance(state, NamespaceStateRecord):
        return state.type, state.namespace
    return state.type, state.broker if isinstance(state, BrokerStateRecord) else state.bundle


def _content(state: State) -> bytes:
    return b"" if isinstance(state, BundleData) else encode(state.model_copy(update={"version": 0}))
