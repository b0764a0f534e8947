"""From a vector's JSON to the tables and options that strategies take."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, MEMORY, ClusterView, Floats
from controller.model.policies import IsolationPolicy, MinAvailable
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.pulsar_versions import options_of

T = TypeVar("T")
Case = Mapping[str, Any]

_RESOURCES = {
    "cpu": CPU,
    "memory": MEMORY,
    "directMemory": DIRECT_MEMORY,
    "bandwidthIn": BANDWIDTH_IN,
    "bandwidthOut": BANDWIDTH_OUT,
}


def configured(
    cls: type[T], config: Mapping[str, Any], *, unused: Collection[str] = (), pulsar: str | None = None
) -> T:
    """A *cls* with the options of *config*, every one of which it must know, but for the *unused*.

    With *pulsar*, it decides as this release does.
    """
    name_of = {f.metadata["broker_conf"]: f.name for f in fields(cls) if "broker_conf" in f.metadata}  # type: ignore[arg-type]
    assert set(config) - set(name_of) <= set(unused)
    all_options = {**options_of(pulsar), **config} if pulsar else config
    given = {name_of[key]: value for key, value in all_options.items() if key in name_of}
    return cls(**{name: float(value) if isinstance(value, str) else value for name, value in given.items()})


def floats(values: Sequence[Any]) -> Floats:
    """Numbers that may be spelt "NaN", "Infinity" or "-Infinity"."""
    return np.array([float(value) for value in values], np.float64)


def rows_of_4(values: Sequence[Sequence[Any]]) -> Floats:
    """(n, 4) load."""
    return floats([value for row in values for value in row]).reshape(-1, 4)


def resources(brokers: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    """(n, 5) usage and limit; a resource that is not given has neither."""
    usage, limit = np.zeros((len(brokers), 5)), np.zeros((len(brokers), 5))
    for row, broker in enumerate(brokers):
        for name, column in _RESOURCES.items():
            if name in broker:
                usage[row, column], limit[row, column] = floats(broker[name])
    return usage, limit


def shedding_view(given: Mapping[str, Any]) -> ClusterView:
    """What a shedder was given: brokers, bundles by their short-term averages, and those unloaded recently."""
    owned = {name: row for name, row in sorted(given["bundles"].items()) if row[4] >= 0}
    owner = np.array([row[4] for row in owned.values()], np.int64)
    usage, limit = resources(given["brokers"])
    brokers = broker_table(
        [broker["name"] for broker in given["brokers"]],
        usage=usage,
        limit=limit,
        load=rows_of_4([broker["load"] for broker in given["brokers"]]),
        bundle_count=np.bincount(owner, minlength=len(usage)),
    )
    load = rows_of_4([row[:4] for row in owned.values()])
    bundles = bundle_table(list(owned), owner, load=load, short_term=load)
    return cluster_view(brokers, bundles, recently_unloaded=given["recently_unloaded"])


def isolation_policies(given: Mapping[str, Mapping[str, Any]]) -> tuple[IsolationPolicy, ...]:
    """Isolation policies, in the order of Java's map."""
    return tuple(
        IsolationPolicy(
            namespaces=tuple(policy["namespaces"]),
            primary=tuple(policy["primary"]),
            secondary=tuple(policy["secondary"]),
            auto_failover=MinAvailable(min_limit=policy["min_limit"], usage_threshold=policy["usage_threshold"]),
        )
        for policy in given.values()
    )


def close_to(expected: Any) -> Any:
    """*expected* to a relative 1e-9, NaN equal to NaN: a number, a list of them, or a mapping to them."""
    if isinstance(expected, dict):
        return _Close({key: float(value) for key, value in expected.items()})
    return _Close([float(value) for value in expected] if isinstance(expected, list) else float(expected))


class _Close:
    """Equal to what is close to it.  ``pytest.approx`` does the same, and takes a hundred times as long for a list."""

    __hash__ = None  # type: ignore[assignment]
    #: NumPy asks this object whether they are equal.
    __array_ufunc__ = None

    def __init__(self, expected: dict[str, float] | list[float] | float) -> None:
        self._expected = expected

    def __repr__(self) -> str:
        return f"close to {self._expected!r}"

    def __eq__(self, found: object) -> bool:
        expected = self._expected
        if isinstance(expected, dict):
            if not isinstance(found, Mapping) or found.keys() != expected.keys():
                return False
            return all(_is_close(found[key], value) for key, value in expected.items())
        if isinstance(expected, list):
            if not isinstance(found, Sequence) or len(found) != len(expected):
                return False
            return all(map(_is_close, found, expected))
        return _is_close(found, expected)


def _is_close(found: Any, expected: float) -> bool:
    if found == expected:
        return True
    if math.isnan(expected) or math.isinf(expected):
        return math.isnan(expected) and math.isnan(found)
    return bool(abs(found - expected) <= 1e-9 * abs(expected))
