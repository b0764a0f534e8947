"""Reads isolation policies as Pulsar's admin API returns them, with keys in snake case or in camel case."""

import re
from collections.abc import Mapping
from typing import Any, Final

from controller.model.isolation import Isolation, IsolationPolicy, MinAvailable

#: The one fail-over policy that Pulsar has.
_MIN_AVAILABLE = "min_available"


_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")


#: Characters of a value in a message.
_MAX_SHOWN_CHARS: Final = 100


def isolation_flaws(policies: Mapping[str, Any]) -> dict[str, str]:
    """Those of the isolation *policies* that cannot be read, by name, and why."""
    names = list(policies)
    rules = Isolation(tuple(map(isolation_policy, policies.values())))
    return {names[row]: why for row, why in rules.flaws}


def isolation_policy(stored: Any) -> IsolationPolicy:
    """The policy of *stored*, with keys in snake case, as in the admin API, or in camel case.

    What of it cannot be read is a flaw of the policy: it must not free the namespaces that it names.
    Pulsar: NamespaceIsolationDataImpl, AutoFailoverPolicyDataImpl.
    """
    flaws, lists = list[str](), dict[str, tuple[str, ...] | None]()
    for key in ("namespaces", "primary", "secondary"):
        try:
            lists[key] = _texts(stored, key)
        except ValueError as error:
            lists[key] = None
            flaws.append(str(error))
    if lists["namespaces"] == ():
        lists["namespaces"] = None
        flaws.append("namespaces must list regular expressions")
    try:
        failover = _auto_failover(_named(stored, "auto_failover_policy"))
    except ValueError as error:
        failover = MinAvailable()
        flaws.append(str(error))
    return IsolationPolicy(
        namespaces=lists["namespaces"] or (),
        primary=lists["primary"] or (),
        secondary=lists["secondary"] or (),
        auto_failover=failover,
        flaws=tuple(dict.fromkeys(flaws)),
        namespaces_known=lists["namespaces"] is not None,
        primary_known=lists["primary"] is not None,
    )


def _auto_failover(stored: Any) -> MinAvailable:
    if stored is None:
        return MinAvailable()
    kind = _named(stored, "policy_type")
    if kind not in (None, _MIN_AVAILABLE):
        raise ValueError(f"policy_type {_short(kind)} is unknown: {_MIN_AVAILABLE} is the only one")
    parameters = _named(stored, "parameters")
    numbers = {key: _named(parameters, key) for key in ("min_limit", "usage_threshold")}
    return MinAvailable(**{key: _number(key, value) for key, value in numbers.items() if value is not None})


def _named(stored: Any, key: str) -> Any:
    """The value of *key* in *stored*, under its snake case or camel case name, or None."""
    if stored is None:
        return None
    if not isinstance(stored, Mapping):
        raise ValueError(f"expected an object with {key}, got {_short(stored)}")
    head, *tail = key.split("_")
    return stored.get(key, stored.get(head + "".join(word.capitalize() for word in tail)))


def _texts(stored: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _named(stored, key)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(text, str) for text in values):
        raise ValueError(f"{key} must be a list of regular expressions, got {_short(values)}")
    return tuple(values)


def _number(key: str, value: Any) -> int:
    """*value* as an int; Pulsar stores parameters as text.  Java: Integer.parseInt."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError(f"{key} must be a whole number, got {_short(value)}")
    return int(text)


def _short(value: Any) -> str:
    """*value* for a message."""
    return repr(value)[:_MAX_SHOWN_CHARS]
