"""Other expressions for those of isolation policies: they match the pseudonyms of what the given ones match."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from controller.aggregate.policies import isolation_policy
from controller.model.java_regex import java_pattern, matches
from controller.offline.pseudonyms.names import Pseudonyms

#: An expression that trimtab does not understand, in place of one that it does not understand either.
_NOT_UNDERSTOOD: Final = r"\G"
#: Matches no name, for a policy lists one expression for namespaces at least.
_NONE: Final = r"\Qnone\E"
#: So many policies are kept; a cluster has a few, each of which stands in many namespaces' records.
_MOST_POLICIES: Final = 4096


class IsolationPseudonyms:
    """Replaces the expressions of isolation policies for *brokers* and *namespaces*, all that there are."""

    def __init__(self, names: Pseudonyms, brokers: Iterable[str], namespaces: Iterable[str]) -> None:
        with_port = [name for name in brokers if ":" in name]
        self._hosts = {_host(name): _host(names.broker(name)) for name in sorted(with_port)}
        self._namespaces = {name: names.namespace(name) for name in sorted(namespaces)}
        self._tenants: dict[str, list[str]] = {}
        for name in self._namespaces:
            self._tenants.setdefault(_tenant(name), []).append(name)
        self._replaced = lru_cache(maxsize=_MOST_POLICIES)(self._replace)

    def policy(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """*given*, a valid policy, without its names; of its fail-over policy only the numbers."""
        replaced: dict[str, Any] = json.loads(self._replaced(json.dumps(given, sort_keys=True)))
        return replaced

    def _replace(self, given: str) -> str:
        policy = isolation_policy(json.loads(given))
        failover = policy.auto_failover
        numbers = {"min_limit": failover.min_limit, "usage_threshold": failover.usage_threshold}
        return json.dumps(
            {
                "namespaces": self._of_namespaces(policy.namespaces) or [_NONE],
                "primary": self._of_hosts(policy.primary),
                "secondary": self._of_hosts(policy.secondary),
                "auto_failover_policy": {"policy_type": "min_available", "parameters": numbers},
            }
        )

    def _of_hosts(self, regexes: tuple[str, ...]) -> list[str]:
        found = [other for name, other in self._hosts.items() if matches(regexes, name)]
        return [*map(_quoted, found), *_not_understood(regexes)]

    def _of_namespaces(self, regexes: tuple[str, ...]) -> list[str]:
        """A tenant all of whose namespaces match is one expression: a policy of thousands stays short."""
        found = list[str]()
        for names in self._tenants.values():
            matched = [self._namespaces[name] for name in names if matches(regexes, name)]
            if matched and len(matched) == len(names) and len({_tenant(other) for other in matched}) == 1:
                found.append(f"{_quoted(_tenant(matched[0]) + '/')}.*")
            else:
                found += map(_quoted, matched)
        return [*found, *_not_understood(regexes)]


def _quoted(name: str) -> str:
    return f"\\Q{name}\\E"


def _not_understood(regexes: Iterable[str]) -> list[str]:
    return [_NOT_UNDERSTOOD] if any(java_pattern(each) is None for each in regexes) else []


def _host(broker: str) -> str:
    return broker.rpartition(":")[0]


def _tenant(namespace: str) -> str:
    return namespace.partition("/")[0]
