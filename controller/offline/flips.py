"""The smallest change of load, or of one option, that would flip a decision: found by search, proved by running it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, NamedTuple

from controller.aggregate.scalable_topics import ScalableTopics
from controller.cycle import Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.errors import TrimtabError
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.model.resource_usage import max_usage
from controller.model.topic_name import parse_topic
from controller.settings.broker_conf import build

#: How far a value is changed: by these parts of itself, and that of an option by these amounts, too.
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 4.0, 9.0)
_AMOUNTS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
#: Halvings between the last value that changes nothing and the first one that does.
_HALVINGS: Final = 10
_ENDED: Final = -1.0


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
        """How much is changed, as a part of what it was; of what was 0, or off, all of it."""
        return abs(self.after - self.before) / abs(self.before) if self.before else 1.0


class FlipResult(NamedTuple):
    """What a search has found."""

    #: The smallest first.
    flips: tuple[Flip, ...]
    #: Of what the search did not come to its end: a smaller change of it, or one at all, may flip the decision.
    unfinished: tuple[str, ...]


def flips(
    made: Redecision,
    subject: str,
    kind: str,
    *,
    tell: Callable[[float], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
) -> FlipResult:
    """What would flip whether anything is done about *subject*; the smallest first.

    *kind*: bundle, broker, topic (the bundles of its segments) or interval.  One change each of: the usage of its
    broker (of an interval, of the busiest and the idlest one), its load, and each number or switch among the options of
    the shedder and of balancing as a whole.  Each value that is tried takes a decision, so all changes have their
    turns, until *is_over*.  *tell* is told how much of the search is done, in percent.
    """
    tries = _Tries(made, subject, kind)
    changes = [*_changes(made, subject, kind)]
    total = sum(len(_values(each, sign)) for each in changes for sign in (-1, 1))
    searches = deque((each, _nearest(each, partial(tries.flips, each))) for each in changes)
    nearest = dict[int, float]()
    while searches and not is_over():
        each, search = searches.popleft()
        after = next(search, _ENDED)
        if after is not None and after is not _ENDED:
            nearest[id(each)] = after
        if after is not _ENDED:
            searches.append((each, search))
        tell(min(100 * tries.made / max(total, 1), 100.0))
    all_flips = [tries.flip(each, nearest[id(each)]) for each in changes if id(each) in nearest]
    return FlipResult(
        flips=tuple(sorted(all_flips, key=lambda flip: (flip.size, flip.kind, flip.of))),
        unfinished=tuple(each.of for each in changes if any(each is unsearched for unsearched, _ in searches)),
    )


class _Tries:
    """Decides with changed values, and knows what was done with each."""

    def __init__(self, made: Redecision, subject: str, kind: str) -> None:
        self._subjects = _bundles_of(made.view, subject) if kind == "topic" else frozenset({subject})
        self._kind = kind
        self._before = bool(self._done(made))
        #: How many were made.
        self.made = 0
        #: What was done with the values that flip it, by the change and the value.
        self._commands: dict[tuple[int, float], list[Command]] = {}

    def flips(self, each: "_Change", value: float) -> bool:
        """Whether *value* flips the decision; one that is not allowed does not."""
        self.made += 1
        try:
            commands = self._done(each.change(value))
        except TrimtabError:
            return False
        if bool(commands) is self._before:
            return False
        self._commands[id(each), value] = commands
        return True

    def flip(self, each: "_Change", value: float) -> Flip:
        """That *value*, which was tried, flips it."""
        then = _describe(self._commands[id(each), value])
        return Flip(kind=each.kind, of=each.of, before=each.value, after=value, unit=each.unit, then=then)

    def _done(self, made: Redecision) -> list[Command]:
        return [command for command in made.decision().commands if _is_about(command, self._subjects, self._kind)]


def _is_about(command: Command, subjects: frozenset[str], kind: str) -> bool:
    match kind:
        case "bundle" | "topic":
            return command.bundle in subjects
        case "broker":
            return command.source in subjects
    return True


def _bundles_of(view: ClusterView, topic: str) -> frozenset[str]:
    """Those that hold segments of the scalable *topic*."""
    topics = ScalableTopics.of(view.bundles)
    row = topics.row_of(parse_topic(topic), view.bundles.namespaces)
    return frozenset(() if row is None else (view.bundles.names[bundle] for bundle in topics.bundles_of(row).tolist()))


def _describe(commands: Sequence[Command]) -> str:
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


def _nearest(each: _Change, flips_it: Callable[[float], bool]) -> Iterator[float | None]:
    """Look for the value nearest to the present one that flips the decision, as far as steps and halvings find it.

    Yields after each try the nearest one so far; None: there is none.
    """
    if each.switch:
        other = 0.0 if each.value else 1.0
        yield other if flips_it(other) else None
        return
    nearest: float | None = None
    for sign in (-1, 1):
        for value in _one_way(each, sign, flips_it):
            if value is not None and (nearest is None or abs(value - each.value) < abs(nearest - each.value)):
                nearest = value
            yield nearest


def _values(each: _Change, sign: int) -> list[float]:
    """What *each* is changed to, farther and farther; of a switch there is one other value, one way."""
    if each.switch:
        return [0.0 if each.value else 1.0] if sign > 0 else []
    steps = {step * abs(each.value) for step in _STEPS} | set(_AMOUNTS if each.kind == "option" else ())
    far = [each.value + sign * (max(1.0, round(step)) if each.whole else step) for step in sorted(steps)]
    return [value for value in dict.fromkeys(far) if value >= 0 and value != each.value]


def _one_way(each: _Change, sign: int, flips_it: Callable[[float], bool]) -> Iterator[float | None]:
    near = each.value
    for far in _values(each, sign):
        if flips_it(far):
            yield far
            yield from _halved(near, far, flips_it, whole=each.whole)
            return
        yield None
        near = far


def _halved(near: float, far: float, flips_it: Callable[[float], bool], *, whole: bool) -> Iterator[float]:
    """*far*, moved towards *near*, which does not flip it, as long as it flips it."""
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        if whole:
            middle = float(round(middle))
            if middle in (near, far):
                return
        if flips_it(middle):
            far = middle
        else:
            near = middle
        yield far
