"""The brokers' own balancing: a broker's switches, and which of them move or split bundles beside trimtab.

Pulsar: LoadManagerShared.isLoadSheddingEnabled, ModularLoadManagerImpl.checkNamespaceBundleSplit, UnloadScheduler and
SplitScheduler.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

#: The switches, under broker.conf's names.
ENABLED: Final = "loadBalancerEnabled"
SHEDDING: Final = "loadBalancerSheddingEnabled"
SPLITTING: Final = "loadBalancerAutoBundleSplitEnabled"
_MANAGER: Final = "loadManagerClassName"
_EXTENSIBLE: Final = "ExtensibleLoadManagerImpl"
_VALUES: Final = {"true": True, "false": False}
#: Characters of a value that an error quotes.
_QUOTED: Final = 40


class Balancing(NamedTuple):
    """The switches that one broker runs with."""

    #: loadBalancerEnabled: the broker reports its load, and may shed.
    enabled: bool
    #: loadBalancerSheddingEnabled.
    shedding: bool
    #: loadBalancerAutoBundleSplitEnabled.
    splitting: bool
    #: Whether it runs the extensible load manager.
    extensible: bool = False


def balancing_of(settings: Mapping[str, str]) -> Balancing:
    """The switches in *settings*, those that a broker runs with.  ValueError where one is neither true nor false."""
    enabled, shedding, splitting = (_switch(settings, key) for key in (ENABLED, SHEDDING, SPLITTING))
    extensible = settings.get(_MANAGER, "").endswith(_EXTENSIBLE)
    return Balancing(enabled=enabled, shedding=shedding, splitting=splitting, extensible=extensible)


def _switch(settings: Mapping[str, str], key: str) -> bool:
    value = settings.get(key)
    state = None if value is None else _VALUES.get(value.strip().lower())
    if state is None:
        text = "is missing" if value is None else f"is {value[:_QUOTED]!r}"
        raise ValueError(f"{key} {text}: true or false is expected")
    return state


def at_work(brokers: Mapping[str, Balancing], *, shed: bool, split: bool) -> dict[str, tuple[str, ...]]:
    """Switch -> those of *brokers*, sorted, that do by it what trimtab does: *shed*, *split*; no switch without any.

    Any broker may become the leader, so the switches of all count.  Shedding needs loadBalancerEnabled, too, and so
    does splitting with the extensible load manager.  The modular one's leader splits by the load that others report,
    whatever its own loadBalancerEnabled says.
    """
    reported = any(each.enabled for each in brokers.values())
    by_switch: dict[str, tuple[str, ...]] = {}
    if shed:
        by_switch[SHEDDING] = tuple(sorted(name for name, each in brokers.items() if each.enabled and each.shedding))
    if split:
        by_switch[SPLITTING] = tuple(
            sorted(
                name
                for name, each in brokers.items()
                if each.splitting and (each.enabled or (reported and not each.extensible))
            )
        )
    return {switch: names for switch, names in by_switch.items() if names}
