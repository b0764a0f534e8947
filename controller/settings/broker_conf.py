"""Pulsar's broker.conf: strategies and their options under the names operators know.

The file has hundreds of keys; trimtab ignores those that are not options of its own.  As in Pulsar's container images,
an environment variable PULSAR_PREFIX_<key> overrides a line of the file or adds one, and so does a variable that has
the name of an option.  The file may also be what a broker answers to GET /admin/v2/brokers/configuration/runtime, a
JSON object.  A line that sets an option in another syntax (a shell's, Docker Compose's, make's) is refused: brokers
would ignore it in silence.  So is a statement of a template, which no broker ever reads.

Pulsar: docker/pulsar/scripts/apply-config-from-env.py, apply-config-from-env-with-prefix.py,
PulsarConfigurationLoader (java.util.Properties), FieldParser, ServiceConfiguration (category "Load Balancer").
"""

import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_type_hints

import javaproperties

from controller.model.errors import SettingsError
from controller.settings.known_options import KNOWN_KEYS
from controller.settings.small_file import read_small_file

T = TypeVar("T")

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
#: Control characters that a text file does not have; tabs, line breaks and form feeds are allowed.
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_BOOLEANS: Final = {"true": True, "false": False}
#: Allowed ranges of keys for which it is not "0 or more".  (A threshold of 120 % is allowed: it is never reached.)
_RANGES: Final[Mapping[str, tuple[int, float]]] = {
    "loadBalancerHistoryResourcePercentage": (0, 1),
    "loadBalancerNamespaceBundleMaxSessions": (-1, math.inf),
    "maxUnloadBundleNumPerShedding": (-1, math.inf),
    "trimtabDeviationShedderMaxBundles": (-1, math.inf),
    "loadBalancerSheddingIntervalMinutes": (1, math.inf),
    "trimtabPeakShedderSettleMinutes": (0, 1440),
}
#: Prefix of the environment variables that override lines of the file.
_PREFIX: Final = "PULSAR_PREFIX_"
_BYTE_ORDER_MARK: Final = "\xef\xbb\xbf"  # of UTF-8, as ISO-8859-1 reads it
_WORD: Final = re.compile(r"\w+")
_QUOTES: Final = ("'", '"')
#: What makes of a line with the name of an option an assignment to it, after the name.
_ASSIGNS: Final = re.compile(r"""["']?\s*(?:[=:>]|[?+!:]=)""")
#: The operators of make that Java takes for the beginning of the value.
_MAKE: Final = re.compile(r"(?:[?+!:]{1,3}=|=(?==|\s|$))")
#: What begins a statement or an expression of Jinja, Go's templates, ERB, and of a shell.
_TEMPLATE: Final = re.compile(r"\{\{|\{%|<%|\$\{|\$\(")
#: A namespace, also with the cluster of Pulsar's first names.  Pulsar: NamedEntity, NamespaceName.
_NAMESPACE: Final = re.compile(r"[-=:.\w]+(/[-=:.\w]+){1,2}", re.ASCII)
#: Digits of a number that is not worth computing with.
_LONG: Final = 19
#: The first number that a Java long, and a column of 64-bit integers, cannot hold.
_TOO_MUCH: Final = 1 << 63


def read_broker_conf(path: Path, environment: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Every key of the file *path* with its text, or with the value that *environment* overrides it with.

    Read as brokers read it: ISO-8859-1, with Java's escapes; the last of several lines with one key counts.  Raises
    SettingsError naming the file, and the line or variable that cannot be read.
    """
    try:
        text = read_small_file(path).decode("iso-8859-1")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    options = _json(text, path) if text.lstrip().startswith("{") else _properties(text, str(path))
    return {**options, **_overriding(environment)}


def _json(text: str, path: Path) -> dict[str, str]:
    """The keys and values of a JSON object, as brokers answer it."""
    try:
        values = json.loads(text.encode("iso-8859-1"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: begins like JSON, but is not valid JSON: {error}") from error
    nested = [key for key, value in values.items() if isinstance(value, dict | list)]
    if nested:
        raise SettingsError(
            f"{path}: {nested[0]} is an object or a list; expected the JSON of GET"
            " /admin/v2/brokers/configuration/runtime, whose values are texts"
        )
    return {key: "" if value is None else _text(value) for key, value in values.items()}


def _text(value: object) -> str:
    """*value* as it would stand in a file; brokers show a set of names as Java prints it: [a, b]."""
    text = (str(value).lower() if isinstance(value, bool) else str(value)).strip()
    return text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text


def _properties(text: str, where: str) -> dict[str, str]:
    """The keys and values of a Java properties file.  Values are stripped, as Pulsar's FieldParser strips them."""
    odd = _NO_TEXT.search(text)
    if odd is not None:
        line = len(_LINE_END.findall(text[: odd.start()])) + 1
        raise SettingsError(
            f"{where}: line {line}: has the control character {odd[0]!r}: expected a text file of key=value lines"
        )
    options, line, next_line = {}, 1, 1
    lines = javaproperties.parse(io.StringIO(text, newline=""))
    try:
        for one in lines:
            line, next_line = next_line, next_line + len(_LINE_END.findall(one.source))
            if isinstance(one, javaproperties.KeyValue):
                if one.key.startswith("["):
                    raise SettingsError(
                        f"{where}: line {line}: {one.key} begins a section of TOML: expected a file of"
                        " key=value lines, like Pulsar's broker.conf; is this trimtab.toml?"
                    )
                _refuse_other_syntax(one.key, one.value.strip(), f"{where}: line {line}")
                options[one.key] = one.value.strip()
    except javaproperties.InvalidUEscapeError as error:
        raise SettingsError(
            f"{where}: line {next_line}: {error.escape} is not a character: \\u must be followed by four hexadecimal"
            " digits; a backslash itself is written \\\\"
        ) from error
    return options


def _refuse_other_syntax(key: str, value: str, where: str) -> None:
    """Raise SettingsError where a line sets an option in another syntax, so that brokers ignore it in silence."""
    if _TEMPLATE.search(key):
        raise SettingsError(
            f"{where}: {f'{key} {value}'.rstrip():.100}: a template statement, which may set any option: give the"
            " file that the template produces, or what a broker answers to GET"
            " /admin/v2/brokers/configuration/runtime"
        )
    if key in KNOWN_KEYS:
        if _MAKE.match(value):
            raise SettingsError(f"{where}: {key} {value}: a make assignment; write {key}=<value>")
        return
    option = _option_in(key) or _option_set_by(value)
    if not option:
        return
    if key.startswith(_BYTE_ORDER_MARK):
        why = "the file begins with a byte order mark, which is part of the first key: save it without"
    elif key.startswith(_PREFIX):
        why = f"{_PREFIX} is for environment variables; in a file, leave it out"
    else:
        why = f"expected a file of key=value lines, like Pulsar's broker.conf; write {option}=<value>"
    raise SettingsError(f"{where}: {key.removeprefix(_BYTE_ORDER_MARK)} {value}".rstrip() + f": sets no option: {why}")


def _option_in(key: str) -> str:
    """The option that *key* names with something around it: quotes, a prefix, a path of YAML; "" for none."""
    words = _WORD.findall(key)
    last = words[-1].removeprefix(_PREFIX) if words else ""
    return last if last in KNOWN_KEYS else ""


def _option_set_by(value: str) -> str:
    """The option that *value* assigns to, as in ``export KEY=VALUE``; "" for none."""
    for word in _WORD.finditer(value):
        option = word[0].removeprefix(_PREFIX)
        # At the beginning: setenv KEY VALUE.
        if option in KNOWN_KEYS and (not word.start() or _ASSIGNS.match(value, word.end())):
            return option
    return ""


def origin_of(path: Path, environment: Mapping[str, str]) -> str:
    """Where the options came from, for messages: the file, and the variables that override it."""
    variables = ", ".join(name for name in sorted(environment) if _overridden_by(name))
    return f"{path} with {variables}" if variables else str(path)


def _overriding(environment: Mapping[str, str]) -> dict[str, str]:
    """The keys that variables override.  Pulsar's images write them into the file, so escapes apply to them too.

    Of both names of a variable, the one without the prefix counts, as in Pulsar's images.
    """
    options = {}
    for name in sorted(environment, key=lambda name: (not name.startswith(_PREFIX), name)):
        key = _overridden_by(name)
        if key:
            options[key] = _properties(f"{_PREFIX}={environment[name]}", f"variable {name}")[_PREFIX]
    return options


def _overridden_by(variable: str) -> str:
    """The key that *variable* overrides; "" for none."""
    if variable.startswith(_PREFIX):
        return variable.removeprefix(_PREFIX)
    return variable if variable in KNOWN_KEYS else ""


def build(cls: type[T], conf: Mapping[str, str]) -> T:
    """An instance of *cls* with options from *conf*; an option that is missing or empty keeps its default.

    *cls* is a dataclass whose options were declared by ``option``.  Raises SettingsError.
    """
    kinds = _kinds(cls)  # type: ignore[arg-type]  # a class has a hash
    return cls(
        **{
            field.name: _value(field, kinds[field.name], conf)
            for field in fields(cls)  # type: ignore[arg-type]
            if "broker_conf" in field.metadata
        }
    )


@cache
def _kinds(cls: type[Any]) -> dict[str, Any]:
    """The types of the fields of *cls*: they are read from text, which takes longer than an option."""
    return get_type_hints(cls)


def _value(field: "Field[Any]", kind: Any, conf: Mapping[str, str]) -> Any:
    """The first value that differs from the default: looked up by the option's name, then by its older names.

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
        plain = text[:1] not in _QUOTES and "#" not in text and not _TEMPLATE.search(text)
        return _read(key, text, text if plain else None, "a name or a list of names")
    if kind == frozenset[str]:
        names = names_in(text)
        usable = all(map(_NAMESPACE.fullmatch, names))
        return _read(key, text, names if usable else None, "namespaces, tenant/namespace, separated by commas")
    if kind is bool:
        return _read(key, text, _BOOLEANS.get(text.lower()), "true or false")
    if kind is not int and kind is not float:
        raise TypeError(f"option {key} is a {kind}: expected str, bool, int, float or frozenset[str]")
    lowest, highest = _RANGES.get(key, (0, math.inf))
    number = _number(text, kind)
    fits = number is not None and lowest <= number <= highest and number < _TOO_MUCH
    allowed = (
        f"a {'whole ' if kind is int else ''}number from {lowest} {'up' if highest == math.inf else f'to {highest}'}"
    )
    return _read(key, text, number if fits else None, allowed)


def names_in(text: str) -> frozenset[str]:
    """The names in the *text* of an option, which separates them by commas.  Pulsar: FieldParser.stringToSet."""
    return frozenset(name for part in text.split(",") if (name := part.strip()))


def _read(key: str, text: str, value: T | None, allowed: str) -> T:
    if value is None:
        hint = _hint(text)
        raise SettingsError(f"{key}={text}: allowed: {allowed}{f'; {hint}' if hint else ''}")
    return value


def _hint(text: str) -> str:
    """What to do about a *text* that is no number and no switch; "" where the rule says enough."""
    if text[:1] in _QUOTES:
        return "quotes are part of the value: leave them out"
    if "#" in text:
        return "a comment after a value is part of it: give it a line of its own"
    if "$" in text or _TEMPLATE.search(text):
        return "expressions in this file are not evaluated: write the value, or set an environment variable"
    factors = [factor.strip() for factor in text.split("*")]
    if len(factors) > 1 and all(factor.isdecimal() and len(factor) < _LONG for factor in factors):
        return f"brokers do not do arithmetic: write {math.prod(map(int, factors))}"
    return ""


def _number(text: str, kind: type[Any]) -> Any:
    """The number in *text*; None if it is not of *kind*.  Pulsar: FieldParser.convert."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return kind(text)
    except ValueError:  # a fraction, or more digits than Python reads, but a whole number is expected
        return None
