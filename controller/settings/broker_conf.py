"""Pulsar's broker.conf: strategies and their options under the names operators know.

The file lists hundreds of keys; those that no option of trimtab names are Pulsar's own business.  As with Pulsar's own
images, a variable PULSAR_PREFIX_<key> of the environment stands in for a line of the file, or adds one.

Pulsar: docker/pulsar/scripts/apply-config-from-env-with-prefix.py,
PulsarConfigurationLoader, FieldParser, ServiceConfiguration (category "Load Balancer").
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_type_hints

from controller.model.errors import SettingsError
from controller.strategies.catalogue import short_name

T = TypeVar("T")

#: key = value, key: value or key value, as java.util.Properties reads a line.
_LINE: Final = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_BOOLEANS: Final = {"true": True, "false": False}
#: Numbers start at 0 and may be as large as they like (a threshold of 120 % is one that is never reached), but for:
_RANGES: Final[Mapping[str, tuple[int, float]]] = {
    "loadBalancerHistoryResourcePercentage": (0, 1),
    "loadBalancerNamespaceBundleMaxSessions": (-1, math.inf),
    "maxUnloadBundleNumPerShedding": (-1, math.inf),
    "trimtabDeviationShedderMaxBundles": (-1, math.inf),
    "loadBalancerSheddingIntervalMinutes": (1, math.inf),
}
#: Of variables of the environment that stand in for lines of the file.
_PREFIX: Final = "PULSAR_PREFIX_"
#: A Java long ends here, and so do our columns.
_TOO_MUCH: Final = 1 << 63


def read_broker_conf(path: Path, environment: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Every key of the file *path* with its text, or with what *environment* puts in its place.

    Of a key given twice the last counts.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error
    matches = (_LINE.fullmatch(line) for line in _logical_lines(text))
    conf = {match[1]: match[2].strip() for match in matches if match is not None}
    return {**conf, **_overriding(environment)}


def told(path: Path, environment: Mapping[str, str]) -> str:
    """Where the options came from, for messages: the file, and the variables that override it."""
    variables = ", ".join(f"{_PREFIX}{key}" for key in sorted(_overriding(environment)))
    return f"{path} with {variables}" if variables else str(path)


def _overriding(environment: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(_PREFIX): text.strip() for name, text in environment.items() if name.startswith(_PREFIX)}


def build(cls: type[T], conf: Mapping[str, str]) -> T:
    """A *cls*, its options taken from *conf*; what is not there, or empty, keeps its default.

    *cls* is a dataclass whose options were declared by ``option``.  Raises SettingsError.
    """
    kinds = get_type_hints(cls)
    return cls(
        **{
            field.name: _value(field, kinds[field.name], conf)
            for field in fields(cls)  # type: ignore[arg-type]
            if "broker_conf" in field.metadata
        }
    )


def choose(catalogue: Mapping[str, type[T]], key: str, name: str, conf: Mapping[str, str]) -> T:
    """The strategy that *conf* calls *name* under *key*, with its options: by Pulsar's short or full class name.

    Raises SettingsError naming what the catalogue has.
    """
    cls = catalogue.get(short_name(name))
    if cls is None:
        raise SettingsError(f"{key}={name}: allowed: {', '.join(sorted(catalogue))}")
    return build(cls, conf)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and indentation, those that end in a backslash joined with the next."""
    begun = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not begun and line.startswith(("#", "!")):
            continue
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        yield begun + line
        begun = ""
    yield begun


def _value(field: "Field[Any]", kind: Any, conf: Mapping[str, str]) -> Any:
    """The first value that differs from the default, among the option's name and its older ones.

    Pulsar: ServiceConfiguration.getLoadBalancerBandwidthInResourceWeight and the like.
    """
    for key in (field.metadata["broker_conf"], *field.metadata["aliases"]):
        text = conf.get(key, "")
        if text:
            value = _convert(key, text, kind)
            if value != field.default:
                return value
    return field.default


def _convert(key: str, text: str, kind: Any) -> Any:
    if kind is str:
        return text
    if kind is bool:
        return _read(key, text, _BOOLEANS.get(text.lower()), "true or false")
    if kind is not int and kind is not float:
        raise TypeError(f"option {key} is a {kind}: expected str, bool, int or float")
    least, most = _RANGES.get(key, (0, math.inf))
    number = _number(text, kind)
    fits = number is not None and least <= number <= most and number < _TOO_MUCH
    allowed = f"a {'whole ' if kind is int else ''}number from {least} {'up' if most == math.inf else f'to {most}'}"
    return _read(key, text, number if fits else None, allowed)


def _read(key: str, text: str, value: T | None, allowed: str) -> T:
    if value is None:
        raise SettingsError(f"{key}={text}: allowed: {allowed}")
    return value


def _number(text: str, kind: type[Any]) -> Any:
    """The number that *text* is, or the product of numbers (1*1024*1024); None if it is none of *kind*."""
    factors = [factor.strip() for factor in text.split("*")]
    if not all(_NUMBER.fullmatch(factor) for factor in factors):
        return None
    try:
        return math.prod(map(kind, factors))
    except ValueError:  # a fraction, where a whole number was wanted
        return None
