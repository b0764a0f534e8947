"""Declares the settings of guardrails: each one beside the rule that it belongs to.

A guardrail's limits are a dataclass whose fields are made by the functions below.  ``controller.cycle.limits`` puts
them together, and ``[guardrails]`` of trimtab.toml is made of them (controller/settings/guardrails.py).  A field's
default limits nothing; the default of the setting is for a production cluster.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

#: The key of a field's metadata.
SETTING: Final = "setting"


class SettingKind(Enum):
    """What a setting may be."""

    #: A whole number from 1 on, or "unlimited": None.
    LIMIT = auto()
    #: A whole number from 0 on; 0: the rule is off.
    INTERVALS = auto()
    #: A number from 0 to 1; 1: the rule is off.
    SHARE = auto()
    #: true or false.
    SWITCH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key of [guardrails] in trimtab.toml; the field's name is its name."""

    kind: SettingKind
    #: For a production cluster.
    default: float
    meaning: str


def _field(kind: SettingKind, default: float, meaning: str, off: Any) -> Any:
    return field(default=off, metadata={SETTING: Setting(kind=kind, default=default, meaning=meaning)})


def limit(default: int, meaning: str) -> Any:
    """A field with a number of things; None: no limit."""
    return _field(SettingKind.LIMIT, default, meaning, None)


def intervals(default: int, meaning: str) -> Any:
    """A field with a number of intervals; 0: the rule is off."""
    return _field(SettingKind.INTERVALS, default, meaning, 0)


def share(default: float, meaning: str) -> Any:
    """A field with a share from 0 to 1; 1: the rule is off."""
    return _field(SettingKind.SHARE, default, meaning, 1.0)


def switch(*, default: bool, meaning: str) -> Any:
    """A field that is True or False; True: the rule is off."""
    return _field(SettingKind.SWITCH, default, meaning, True)
