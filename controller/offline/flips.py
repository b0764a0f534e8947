"""The smallest change of load, or of one option, that would flip a decision: found by search, proved by running it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final

from controller.cycle import Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.errors import TrimtabError
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.settings.broker_conf import build
from controller.strategies.common.resource_usage import max_usage

#: How far a value is changed: by these parts of itself, and that of an option by these amounts, too.
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 4.0, 9.0)
_AMOUNTS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
#: Halvings between the last value that changes nothing and the first one that does.
_HALVINGS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecision:
    """All that a decision was made of."""

    view: ClusterView
    results: tuple[CommandResult, ...]
    memory: Memory
    controls: Controls
    policy: Policy

    def decision(self) -> Decision:
        """Make it."""
        return decide(self.view, self.results, self.memory, self.controls, self.policy)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A change that makes the decision about a subject come out otherwise."""

    #: "usage", "load" or "option".
    kind: str
    #: The broker, the bundle, or the option's name in broker.conf.
    of: str
    before: float
    after: float
    unit: str
    #: What would be done then, or "" for nothing.
    then: str

    @property
    def size(self) -> float:
        """How much is changed, as a part of what it was."""
        return abs(self.after - self.before) / abs(self.before) if self.before else abs(self.after)


def flips(made: Redecision, subject: str, kind: str) -> tuple[Flip, ...]:
    """What would flip whether anything is done about *subject*, of *kind* bundle, broker or interval; smallest first.

    One change each of: the usage of its broker (of an interval, of the busiest and the idlest one), its load, and each
    number or switch among the options of the shedder and of balancing as a whole.
    """

    def done(decision: Decision) -> list[Command]:
        return [command for command in decision.commands if _is_about(command, subject, kind)]

    before = bool(done(made.decision()))

    def tried(change: Callable[[float], Redecision], value: float) -> list[Command] | None:
        """What is done with *value*, if that flips the decision; None if it does not, or is not allowed."""
        try:
            commands = done(change(value).decision())
        except TrimtabError:
            return None
        return commands if bool(commands) is not before else None

    def is_flip(change: Callable[[float], Redecision], value: float) -> bool:
        return tried(change, value) is not None

    found = []
    for each in _changes(made, subject, kind):
        after = _nearest(each, partial(is_flip, each.change))
        if after is not None:
            commands = tried(each.change, after) or []
            found.append(
                Flip(kind=each.kind, of=each.of, before=each.value, after=after, unit=each.unit, then=_told(commands))
            )
    return tuple(sorted(found, key=lambda flip: (flip.size, flip.kind, flip.of)))


def _is_about(command: Command, subject: str, kind: str) -> bool:
    match kind:
        case "bundle":
            return command.bundle == subject
        case "broker":
            return command.source == subject
    return True


def _told(commands: Sequence[Command]) -> str:
    if not commands:
        return ""
    first = commands[0]
    more = f", and {len(commands) - 1} more" if len(commands) > 1 else ""
    if first.action == "split":
        return f"split {first.bundle}{more}"
    return f"unload {first.bundle} from {first.source} to {first.destination}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """One thing that can be changed."""

    kind: str
    of: str
    value: float
    unit: str
    change: Callable[[float], Redecision]
    whole: bool = False
    switch: bool = False


def _changes(made: Redecision, subject: str, kind: str) -> Iterator[_Change]:
    view, bundle = made.view, made.view.bundles.code_of.get(subject) if kind == "bundle" else None
    broker = view.brokers.code_of.get(subject) if kind == "broker" else None
    if bundle is not None and view.bundles.owned[bundle]:
        broker = int(view.bundles.broker[bundle])
        yield _Change(kind="load", of=subject, value=100.0, unit="%", change=partial(_with_load, made, bundle))
    for row in [broker] if broker is not None else _extremes(view) if kind == "interval" else ():
        name = view.brokers.names[row]
        yield _Change(kind="usage", of=name, value=100.0, unit="%", change=partial(_with_usage, made, row))
    yield from _options(made.policy.shedder, lambda new: replace(made, policy=replace(made.policy, shedder=new)))
    yield from _options(made.policy.balancer, lambda new: replace(made, policy=replace(made.policy, balancer=new)))


def _extremes(view: ClusterView) -> list[int]:
    """The busiest and the idlest broker."""
    usage = max_usage(view.brokers.usage, view.brokers.limit)
    return sorted({int(usage.argmax()), int(usage.argmin())}) if len(usage) else []


def _with_usage(made: Redecision, broker: int, percent: float) -> Redecision:
    usage = made.view.brokers.usage.copy()
    usage[broker] *= percent / 100
    load = made.view.brokers.load.copy()
    load[broker] *= percent / 100
    return replace(made, view=replace(made.view, brokers=replace(made.view.brokers, usage=usage, load=load)))


def _with_load(made: Redecision, bundle: int, percent: float) -> Redecision:
    columns = {}
    for name in ("load", "short_term", "long_term"):
        columns[name] = getattr(made.view.bundles, name).copy()
        columns[name][bundle] *= percent / 100
    return replace(made, view=replace(made.view, bundles=replace(made.view.bundles, **columns)))


def _options(part: Any, with_part: Callable[[Any], Redecision]) -> Iterator[_Change]:
    """The numbers and switches among the options of *part*; none of a strategy that declares none."""
    for each in fields(part) if hasattr(part, "__dataclass_fields__") else ():
        value, key = getattr(part, each.name), str(each.metadata.get("broker_conf", ""))
        # Which intervals are decided at all says nothing about this one.
        if key and isinstance(value, (bool, int, float)) and not each.name.startswith("shedding_interval"):
            yield _Change(
                kind="option",
                of=key,
                value=float(value),
                unit=str(each.metadata["unit"]),
                change=_setting(part, each.name, key, with_part),
                whole=isinstance(value, int),
                switch=isinstance(value, bool),
            )


def _setting(part: Any, name: str, key: str, with_part: Callable[[Any], Redecision]) -> Callable[[float], Redecision]:
    """Sets the option *key* of *part*; SettingsError for a value that broker.conf may not have."""
    like = getattr(part, name)

    def change(value: float) -> Redecision:
        text = str(bool(value)).lower() if isinstance(like, bool) else repr(type(like)(value))
        return with_part(replace(part, **{name: getattr(build(type(part), {key: text}), name)}))

    return change


def _nearest(each: _Change, flips_it: Callable[[float], bool]) -> float | None:
    """The value nearest to the present one that flips the decision, as far as steps and halvings find it."""
    if each.switch:
        other = 0.0 if each.value else 1.0
        return other if flips_it(other) else None
    found = [value for sign in (-1, 1) if (value := _one_way(each, sign, flips_it)) is not None]
    return min(found, key=lambda value: abs(value - each.value), default=None)


def _one_way(each: _Change, sign: int, flips_it: Callable[[float], bool]) -> float | None:
    steps = {step * abs(each.value) for step in _STEPS} | set(_AMOUNTS if each.kind == "option" else ())
    near = each.value
    for step in sorted(steps):
        far = each.value + sign * (max(1.0, round(step)) if each.whole else step)
        if far < 0 or far == near:
            continue
        if flips_it(far):
            return _halved(near, far, flips_it, whole=each.whole)
        near = far
    return None


def _halved(near: float, far: float, flips_it: Callable[[float], bool], *, whole: bool) -> float:
    """*far*, moved towards *near*, which does not flip it, as long as it flips it."""
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        if whole:
            middle = float(round(middle))
            if middle in (near, far):
                break
        if flips_it(middle):
            far = middle
        else:
            near = middle
    return far
