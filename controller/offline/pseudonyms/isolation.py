"""Replaces the expressions of isolation policies by ones that match the pseudonyms of the same names."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from controller.model.isolation import BrokerAddresses
from controller.model.isolation_policies import isolation_policy
from controller.model.java_regex import Expressions, quoted
from controller.offline.pseudonyms.names import Pseudonyms

#: Behind a name: an expression that could match this name, and no other, and cannot be read.
_UNREAD: Final = "(?>|)"
#: Matches no name, for a policy lists one expression for namespaces at least.
_NONE: Final = quoted("none")
#: Maximum number of cached policies; a cluster has a few, each of them in many namespaces' records.
_MAX_POLICIES: Final = 4096


class IsolationPseudonyms:
    """Replaces the expressions of isolation policies for *brokers* and *namespaces*, all that there are."""

    def __init__(self, names: Pseudonyms, brokers: Iterable[str], namespaces: Iterable[str]) -> None:
        with_port = sorted(name for name in brokers if ":" in name)
        self._brokers = [names.broker(name) for name in with_port]
        self._addresses = BrokerAddresses.of(with_port, match_ids=True)
        self._namespaces = {name: names.namespace(name) for name in sorted(namespaces)}
        self._tenants: dict[str, list[str]] = {}
        for name in self._namespaces:
            self._tenants.setdefault(_tenant(name), []).append(name)
        self._replaced = lru_cache(maxsize=_MAX_POLICIES)(self._replace)

    def policy(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """*policy* without its names; of its fail-over policy only the numbers.  What cannot be read stays so."""
        replaced: dict[str, Any] = json.loads(self._replaced(json.dumps(policy, sort_keys=True)))
        return replaced

    def _replace(self, regex: str) -> str:
        policy = isolation_policy(json.loads(regex))
        failover = policy.auto_failover
        numbers = {"min_limit": failover.min_limit, "usage_threshold": failover.usage_threshold}
        return json.dumps(
            {
                "namespaces": self._of_namespaces(policy.namespaces) if policy.namespaces_known else None,
                "primary": self._of_brokers(policy.primary) if policy.primary_known else "unreadable",
                "secondary": self._of_brokers(policy.secondary),
                "auto_failover_policy": {
                    "policy_type": "unreadable" if policy.flaws else "min_available",
                    "parameters": numbers,
                },
            }
        )

    def _of_brokers(self, regexes: tuple[str, ...]) -> list[str]:
        """Hosts, and ``host:port`` of brokers that an expression with a colon matches by that alone (Pulsar 5.0)."""
        hosts, ids = self._addresses
        by_host = _matched(regexes, hosts)
        by_id = _matched(tuple(regex for regex in regexes if ":" in regex), filter(None, ids))
        sure, unsure = dict[str, None](), dict[str, None]()
        for broker, host, broker_id in zip(self._brokers, hosts, ids, strict=True):
            for name, address, (matched, might) in ((host, _host(broker), by_host), (broker_id, broker, by_id)):
                if name in matched:
                    sure[address] = None
                    break
                if name in might:
                    unsure[address] = None
        return [*map(quoted, sure), *self._unread(regexes, unsure)]

    def _of_namespaces(self, regexes: tuple[str, ...]) -> list[str]:
        """A tenant all of whose namespaces match is one expression: a policy of thousands stays short."""
        patterns = list[str]()
        sure, unsure = _matched(regexes, self._namespaces)
        for names in self._tenants.values():
            matched = [self._namespaces[name] for name in names if name in sure]
            if matched and len(matched) == len(names) and len({_tenant(other) for other in matched}) == 1:
                patterns.append(f"{quoted(_tenant(matched[0]) + '/')}.*")
            else:
                patterns += map(quoted, matched)
        patterns += self._unread(regexes, (self._namespaces[name] for name in self._namespaces if name in unsure))
        return patterns or [_NONE]

    @staticmethod
    def _unread(regexes: tuple[str, ...], might: Iterable[str]) -> list[str]:
        """For those of *regexes* that cannot be read: what they *might* match, and an expression at least."""
        patterns = [f"{quoted(other)}{_UNREAD}" for other in might]
        return patterns or ([f"{_NONE}{_UNREAD}"] if Expressions(regexes).refused else [])


def _matched(regexes: tuple[str, ...], names: Iterable[str]) -> tuple[set[str], set[str]]:
    """Those of *names* that one of *regexes* matches, and the others that one of them might match."""
    if not regexes:
        return set(), set()
    hits = Expressions(regexes).hits(list(names))
    sure = {name for name, hits_of_name in hits.items() if any(hit.sure for hit in hits_of_name)}
    return sure, hits.keys() - sure


def _host(broker: str) -> str:
    return broker.rpartition(":")[0]


def _tenant(namespace: str) -> str:
    return namespace.partition("/")[0]
