"""The page "Now": one sentence, five figures, all brokers, what can stop commands, the last decisions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.model.some_of import some_of
from controller.web.store.values import BrokerNow, BrokerStates, DecisionRow, IssuedCommand, LatestState, Progress
from controller.web.views.bridge import is_late, mode_word, unread
from controller.web.views.formats import BrokerNames, clock, mean_of, of_resource, percent, short, span
from controller.wire.readable import counted

#: A measurement that is farther from its promise, in points, has missed it.
MISSED_POINTS: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A figure with its unit and what to hold it against."""

    label: str
    figure: str
    unit: str
    context: str
    #: A path of this site; "": it leads nowhere.
    path: str = ""
    is_old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The answer of a page: a sentence, and what else one should know."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Something that can stop commands and is no budget: a pause, a freeze, a window, drained brokers."""

    name: str
    state: str
    is_on: bool


def heading(
    state: LatestState | None, brokers: BrokerStates | None, names: BrokerNames, progress: Progress, now_ms: int
) -> Heading:
    """What an operator reads if they read one line."""
    if state is None:
        return Heading(
            title="No interval yet",
            text="trimtab needs one whole sweep of all brokers, and a decision on it, before it can say anything.",
        )
    if state.breaker.tripped_at is not None:
        return Heading(
            title="Nothing is moved until a person resumes",
            text="The breaker is open: commands failed. Brokers go on serving; load stays as it is.",
        )
    if unread(state, progress, now_ms):
        return Heading(
            title=f"Nothing is known since {clock(state.interval, now_ms)}",
            text="The log cannot be read from here. Controllers may go on all the same; all figures are as of then.",
        )
    if is_late(state, now_ms):
        return Heading(
            title="Nothing is decided, and nothing moves",
            text=f"The last decision is of {clock(state.interval, now_ms)},"
            f" {span((now_ms - state.interval) / 1000)} ago. Brokers serve as before; figures are as of then.",
        )
    if state.controls.paused:
        return Heading(
            title="Balancing is paused",
            text="Decisions go on as if nothing were paused; they are listed below and not issued.",
        )
    return _of_load(state, brokers, names)


def _of_load(state: LatestState, brokers: BrokerStates | None, names: BrokerNames) -> Heading:
    nodes = [node for node in brokers.brokers if node.fullest_usage is not None] if brokers else []
    if brokers is None or not nodes:
        return Heading(title="No broker has load data", text="See the collectors' logs, and run the doctor.")
    fullest = nodes[0]
    usage = fullest.fullest_usage or 0.0
    name, figure = names.label(fullest.name), f"{percent(usage)} % {of_resource(fullest.fullest)}"
    bound = brokers.goal if brokers.goal is not None else brokers.limit
    missing = f" {counted(state.brokers_without_data, 'broker')} without data." if state.brokers_without_data else ""
    if bound is None:
        return Heading(title=f"{name} is the fullest broker, with {figure}", text=f"{_spread(nodes, names)}{missing}")
    above = [node for node in nodes if (node.fullest_usage or 0.0) > bound]
    word = "goal" if brokers.goal is not None else "limit"
    if not above:
        title = f"{_all(len(nodes))} within the {word} of {percent(bound)} %"
        return Heading(title=title, text=f"The fullest is {name} with {figure}.{missing}")
    under_way = sum(command.source == fullest.name for command in state.in_flight)
    others = f"{counted(len(above) - 1, 'other broker')} {'is' if len(above) == 2 else 'are'} above the {word}, too."
    rest = others if len(above) > 1 else "All others are below it."
    if under_way:
        title = f"{name} is too full, and it is being relieved"
        text = f"It has {figure}; {counted(under_way, 'command')} under way. {rest}{missing}"
        return Heading(title=title, text=text)
    title = f"{name} is above the {word}: {figure}, the {word} is {percent(bound)} %"
    return Heading(title=title, text=f"Nothing is under way for it. {rest}{missing}")


def _all(count: int) -> str:
    return "The one broker is" if count == 1 else f"All {count:,} brokers are"


def _spread(nodes: Sequence[BrokerNow], names: BrokerNames) -> str:
    rates = [(node.rate_in or 0.0) + (node.rate_out or 0.0) for node in nodes]
    text = f"{counted(len(nodes), 'broker')} with data; the shedder in use states no goal."
    if not any(rates):
        return text
    busiest = max(range(len(nodes)), key=rates.__getitem__)
    share = percent(100 * rates[busiest] / sum(rates))
    return f"{text} {names.label(nodes[busiest].name)} has {share} % of all {short(sum(rates))} messages/s."


def facts(
    state: LatestState,
    brokers: BrokerStates | None,
    last_hour: Iterable[DecisionRow],
    measured: Sequence[IssuedCommand],
    names: BrokerNames,
    now_ms: int,
) -> tuple[KeyFigure, ...]:
    """Five figures.  *measured*: the moves of the last day as far as there are not too many."""
    return (
        replace(_fullest(brokers, names), is_old=is_late(state, now_ms)),
        _speed(state, now_ms),
        _in_flight(state, now_ms),
        _moves(last_hour, state, now_ms),
        replace(_promises(measured), is_old=is_late(state, now_ms)),
    )


def _fullest(brokers: BrokerStates | None, names: BrokerNames) -> KeyFigure:
    node = next((each for each in brokers.brokers if each.fullest_usage is not None), None) if brokers else None
    if node is None or brokers is None:
        return KeyFigure(label="Fullest broker", figure="?", unit="", context="no broker has data", path="/map")
    mean = mean_of(each.fullest_usage for each in brokers.brokers)
    times = f", {node.fullest_usage / mean:.2f} × the mean" if mean and node.fullest_usage is not None else ""
    return KeyFigure(
        label="Fullest broker",
        figure=percent(node.fullest_usage),
        unit=f"% {of_resource(node.fullest)}",
        context=f"{names.label(node.name)}{times}",
        path=f"/brokers/{node.name}",
    )


def _speed(state: LatestState, now_ms: int) -> KeyFigure:
    path = f"/decisions/{state.interval}"
    if is_late(state, now_ms):
        age, context = span((now_ms - state.interval) / 1000), f"{clock(state.interval, now_ms)}, {mode_of(state)}"
        return KeyFigure(label="Last decision", figure=age, unit="ago", context=context, path=path)
    if state.tick_to_decision_ms is None:
        age = span((now_ms - state.interval) / 1000)
        context = f"interval of {span(state.period_ms / 1000)}"
        return KeyFigure(label="Last interval", figure=age, unit="ago", context=context, path=path)
    return KeyFigure(
        label="Tick to decision",
        figure=f"{state.tick_to_decision_ms / 1000:.1f}",
        unit="s",
        context=f"interval of {span(state.period_ms / 1000)}, epoch {state.epoch}",
        path=path,
    )


def mode_of(state: LatestState) -> str:
    """The mode that the last interval was decided in, for people."""
    return f"mode {mode_word(state.controls.mode)}"


def _in_flight(state: LatestState, now_ms: int) -> KeyFigure:
    limit = next((budget.limit for budget in state.budgets if budget.key == "in_flight"), None)
    oldest = min((command.interval for command in state.in_flight), default=None)
    context = "nothing waits for a result" if oldest is None else f"oldest {span((now_ms - oldest) / 1000)}"
    return KeyFigure(
        label="In flight",
        figure=f"{state.in_flight_total:,}",
        unit="" if limit is None else f"of {limit:,}",
        context=context,
        path=f"/decisions/{oldest}" if oldest is not None else "/decisions",
        is_old=is_late(state, now_ms),
    )


def _moves(last_hour: Iterable[DecisionRow], state: LatestState, now_ms: int) -> KeyFigure:
    statuses: Counter[str] = Counter()
    for row in last_hour:
        statuses.update(row.statuses)
    words = {"": "open"}
    parts = [f"{count:,} {words.get(status, status.replace('_', ' '))}" for status, count in statuses.most_common(3)]
    return KeyFigure(
        label="Commands this hour",
        figure=f"{statuses.total():,}",
        unit="",
        context=", ".join(parts) or "none was needed",
        path="/decisions?with_commands=1",
        is_old=is_late(state, now_ms),
    )


def _promises(moves: Sequence[IssuedCommand]) -> KeyFigure:
    misses = []
    for move in moves:
        if move.measured is None:
            continue
        for side in (move.measured.source, move.measured.destination):
            if side.promised is not None and side.measured is not None:
                misses.append(abs(side.promised - side.measured))
    label = "Promises kept within"
    if not misses:
        return KeyFigure(label=label, figure="?", unit="", context="no move was measured lately", path="/decisions")
    missed = sum(miss > MISSED_POINTS for miss in misses)
    context = f"of usage; {missed:,} of {len(misses):,} are off by more than {MISSED_POINTS:.0f}"
    return KeyFigure(
        label=label, figure=f"{sum(misses) / len(misses):.1f}", unit="points", context=context, path="/decisions"
    )


def switches(state: LatestState, names: BrokerNames, now_ms: int) -> tuple[Switch, ...]:
    """What else can stop commands."""
    controls = state.controls
    pauses = ", ".join(f"by {pause.by} since {clock(pause.at_ms, now_ms)}" for pause in controls.pauses)
    changed = {**state.joined, **state.departed}
    frozen = [f"{names.label(broker)} {'joined' if broker in state.joined else 'is gone'}" for broker in changed]
    drained = [names.label(broker) for broker in controls.drained]
    plan = controls.orders
    return (
        Switch(name="Pause", state=(pauses or "by the settings") if controls.paused else "none", is_on=controls.paused),
        Switch(name="Freeze", state=_some(frozen), is_on=bool(frozen)),
        Switch(name="Maintenance", state=controls.maintenance or "open", is_on=bool(controls.maintenance)),
        Switch(name="Drained brokers", state=_some(drained), is_on=bool(drained)),
        Switch(
            name="Plan in force",
            state="none" if plan is None else f"step {plan.step}, wave {plan.wave} of {plan.waves}",
            is_on=plan is not None,
        ),
    )


def _some(names: Sequence[str]) -> str:
    return some_of(names, 3) or "none"
