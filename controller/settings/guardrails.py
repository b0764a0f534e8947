"""[guardrails]: limits on commands, with defaults for a production cluster."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, NonNegativeInt, PlainValidator, create_model

from controller.cycle.guardrails.setting import SETTING, Setting, SettingKind
from controller.cycle.limits import Budget, Limits
from controller.settings.maintenance import Maintenance, check_window
from controller.settings.section import Section

_UNLIMITED: Final = "unlimited"


def _number_or_unlimited(value: object) -> int | str:
    if value == _UNLIMITED or (type(value) is int and value > 0):
        return value
    raise ValueError(
        f'allowed: a whole number from 1 on, or "{_UNLIMITED}"; to forbid all unloads or splits set decisions.shed or'
        " decisions.split to false"
    )


#: A number, or "unlimited".
CommandLimit: TypeAlias = Annotated[int | str, PlainValidator(_number_or_unlimited)]


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("no such time zone: allowed are IANA names such as UTC or Europe/Berlin") from error
    return name


Windows: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_window)], ...], Field(strict=False)]


class IntervalBudgetSettings(Section):
    """Limits for one interval; "unlimited" switches a limit off.  Connections are producers and consumers."""

    unloads: CommandLimit = 100
    """Unloads in the cluster: what four executors at once carry out within a minute."""
    unloads_per_source: CommandLimit = 10
    """Unloads off one broker: its clients all look up their topics again."""
    unloads_per_destination: CommandLimit = 20
    """Unloads to one broker, which has to load their topics."""
    unloads_per_namespace: CommandLimit = 50
    """Unloads of one namespace's bundles: one tenant is not disturbed all at once."""
    splits: CommandLimit = 20
    """Splits in the cluster."""
    splits_per_source: CommandLimit = 5
    """Splits of one broker's bundles."""
    splits_per_namespace: CommandLimit = 5
    """Splits of one namespace's bundles: each one changes the namespace's boundaries."""
    connections: CommandLimit = 50_000
    """Producers and consumers of the bundles that are unloaded, or split and then unloaded."""
    connections_per_source: CommandLimit = 20_000
    """The same, of one source broker.  A bundle with more than this is never unloaded."""
    connections_per_destination: CommandLimit = 20_000
    """The same to one destination broker."""
    connections_per_namespace: CommandLimit = 20_000
    """The same of one namespace."""


class WindowBudgetSettings(Section):
    """Limits for the rolling window; "unlimited" switches a limit off."""

    unloads: CommandLimit = 1000
    """Unloads in the cluster."""
    unloads_per_source: CommandLimit = 200
    """Unloads off one broker: enough to empty a broker of 200 bundles within the window."""
    unloads_per_destination: CommandLimit = 400
    """Unloads to one broker."""
    unloads_per_namespace: CommandLimit = 500
    """Unloads of one namespace's bundles."""
    splits: CommandLimit = 200
    """Splits in the cluster."""
    splits_per_source: CommandLimit = 50
    """Splits of one broker's bundles."""
    splits_per_namespace: CommandLimit = 50
    """Splits of one namespace's bundles."""
    connections: CommandLimit = 500_000
    """Producers and consumers of the bundles that are unloaded, or split and then unloaded."""
    connections_per_source: CommandLimit = 200_000
    """The same of one source broker."""
    connections_per_destination: CommandLimit = 200_000
    """The same to one destination broker."""
    connections_per_namespace: CommandLimit = 200_000
    """The same of one namespace."""


class MaintenanceSettings(Section):
    """When commands may be issued.  A window is "<cron expression of its start> for <n>h" (or <n>m)."""

    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """The time zone of the cron expressions, as the IANA names it."""
    allowed: Windows = ()
    """If any window is given here, commands are issued in these windows only: ["0 22 * * mon-fri for 8h"]."""
    frozen: Windows = ()
    """Nothing is issued in these windows, even where another window allows it: ["0 8 24 12 * for 72h"]."""


def _declared(setting: Setting) -> tuple[Any, Any]:
    """The type of a *setting* that a guardrail declares, and its default with its meaning."""
    kinds: dict[SettingKind, tuple[Any, type]] = {
        SettingKind.LIMIT: (CommandLimit, int),
        SettingKind.INTERVALS: (NonNegativeInt, int),
        SettingKind.SHARE: (Annotated[float, Field(ge=0, le=1)], float),
        SettingKind.SWITCH: (bool, bool),
    }
    kind, number = kinds[setting.kind]
    return kind, Field(default=number(setting.default), description=setting.meaning)


_SETTINGS: Final[Mapping[str, Setting]] = {
    each.name: each.metadata[SETTING] for each in fields(Limits) if SETTING in each.metadata
}
_FIELDS: Final[dict[str, Any]] = {name: _declared(setting) for name, setting in _SETTINGS.items()}
_Declared: Any = create_model("_Declared", __base__=Section, **_FIELDS)


class GuardrailSettings(_Declared):  # type: ignore[misc]  # its fields are declared by the guardrails
    """Rules that hold commands back after the strategies.  docs/guardrails.md explains each rule."""

    window_seconds: Annotated[int, Field(ge=60, le=7 * 86_400)] = 3600
    """Length of the rolling window of [guardrails.window] and of failures_in_window."""
    brokers_balance_unknown: Literal["hold", "ignore"] = "hold"
    """What mode active does while it is not known whether an active broker balances by itself: "hold" issues nothing.
    "ignore" is for a log whose producers write no switches in broker_state records, and for brokers that do not show
    them; trimtab then does not notice if such brokers balance, too."""
    brokers_balance_unknown_intervals: NonNegativeInt = 3
    """With "hold": a broker whose switches cannot be read any more counts as before for this many intervals.  One
    whose switches nobody has read yet holds commands back at once."""
    interval: IntervalBudgetSettings = IntervalBudgetSettings()
    window: WindowBudgetSettings = WindowBudgetSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()


def limits_of(settings: GuardrailSettings) -> Limits:
    """The limits in *settings* as a value for controller.cycle."""
    declared = {name: _limit(getattr(settings, name)) for name in _SETTINGS}
    return Limits(
        **declared,
        interval=_budget(settings.interval),
        window=_budget(settings.window),
        window_ms=settings.window_seconds * 1000,
        balancing_unknown_intervals=(
            settings.brokers_balance_unknown_intervals if settings.brokers_balance_unknown == "hold" else None
        ),
    )


def maintenance_of(settings: GuardrailSettings) -> Maintenance:
    """The windows in *settings*."""
    windows = settings.maintenance
    return Maintenance(time_zone=windows.time_zone, allowed=windows.allowed, frozen=windows.frozen)


def _budget(settings: IntervalBudgetSettings | WindowBudgetSettings) -> Budget:
    return Budget(**{name: _limit(getattr(settings, name)) for name in type(settings).model_fields})


def _limit(value: Any) -> Any:
    return None if value == _UNLIMITED else value
