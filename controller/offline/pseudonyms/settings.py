"""The settings of an anonymised recording: what decisions depend on, without names and free texts."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from controller.adapters.recordings.manifest import RecordedSettings
from controller.model.errors import TrimtabError
from controller.model.name_patterns import is_pattern
from controller.offline.pseudonyms.names import Pseudonyms
from controller.settings.broker_conf import names_in
from controller.settings.brokers_own import brokers_own_rows
from controller.settings.pairs import LOAD_MANAGER, SUPPORTED_ALGORITHMS
from controller.settings.policy import LOAD_MANAGERS, known_keys
from controller.settings.strategy_kinds import STRATEGY_KINDS
from controller.strategies.catalogue import SPLIT_ALGORITHMS, is_python_name, short_name
from controller.strategies.filters.shedding_excluded_namespaces import EXCLUDED_NAMESPACES
from controller.strategies.rebalance.membership import PROTOCOLS

#: In place of the class of a strategy that is no part of trimtab.
OWN_STRATEGY: Final = "own.Strategy"
#: Numbers, lists and ranges of numbers, and switches.
_PLAIN: Final = re.compile(rf"[0-9.,+\-eE ]{{0,100}}|true|false|{'|'.join(PROTOCOLS)}", re.IGNORECASE | re.ASCII)


def anonymised_settings(settings: RecordedSettings, names: Pseudonyms) -> RecordedSettings:
    """*settings* with other *names*; of broker.conf only numbers, switches, and names of strategies of trimtab."""
    given = next(filter(is_pattern, (*settings.decisions.excluded, *settings.decisions.only)), None)
    if given is not None:
        raise TrimtabError(
            f"{given!r} in [decisions] is a pattern, and other names would not match it: leave out --anonymise, or name"
            " each namespace in the settings before the next recording"
        )
    excluded = tuple(map(names.namespace_or_bundle, settings.decisions.excluded))
    only = tuple(map(names.namespace, settings.decisions.only))
    decisions = settings.decisions.model_copy(update={"excluded": excluded, "only": only})
    return settings.model_copy(update={"decisions": decisions, "broker_conf": _options(settings.broker_conf, names)})


def _options(conf: Mapping[str, str], names: Pseudonyms) -> dict[str, str]:
    # Without the options of a strategy that somebody wrote, and without those that only brokers read.
    known = known_keys({}) - {row.key for row in brokers_own_rows()}
    told = {key: _told(key, value, names) for key, value in conf.items() if key in known}
    return {key: value for key, value in told.items() if value is not None}


def _told(key: str, value: str, names: Pseudonyms) -> str | None:
    """The *value* of option *key* where it holds nothing but numbers and words of Pulsar and trimtab; else None.

    Namespaces get other *names*.
    """
    if key == EXCLUDED_NAMESPACES:
        return ",".join(sorted(map(names.namespace_or_bundle, names_in(value))))
    if key == SUPPORTED_ALGORITHMS:
        return ",".join(each for each in value.split(",") if each in SPLIT_ALGORITHMS)
    for kind in STRATEGY_KINDS:
        if key == kind.key:
            return OWN_STRATEGY if is_python_name(value) else _known(value, kind.catalogue)
    if key == LOAD_MANAGER:
        # Also of a class in a package that looks like Python: a load manager is a Java class.
        return _known(value.rpartition(".")[2], LOAD_MANAGERS)
    return value if _PLAIN.fullmatch(value) else None


def _known(value: str, names: Collection[str]) -> str | None:
    short = short_name(value)
    return short if short in names else None
