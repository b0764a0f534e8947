"""A plan in words and pictures: facts, waves as a Gantt, brokers before and after, and whose clients reconnect."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller.model.load import RESOURCES
from controller.planning.plans.plan import DRAIN, EMPTY, FILL, JOIN, REMOVE, RESTART
from controller.planning.problem import MESSAGE_RATE, RATE_SHARE
from controller.web.issued_plan import IssuedMove, IssuedMoveState, IssuedPlan
from controller.web.store.values import BrokerNow, BrokerStates
from controller.web.views.certificate import CertificateText, certificate_text
from controller.web.views.formats import BrokerNames, BundleLabel, clock, percent, signed, span, whole
from controller.web.views.now import Heading, KeyFigure
from controller.wire.answers.plan import BrokerChangeAnswer, DisturbedAnswer, PlanAnswer, PlanStepAnswer
from controller.wire.readable import counted

#: So many steps, waves of a step, brokers, namespaces, moves, and sentences of one kind are on the page.
_STEPS: Final = 8
_WAVES: Final = 24
_BROKERS: Final = 32
_NAMESPACES: Final = 20
_MOVES: Final = 40
NOTES: Final = 10
_KINDS: Final[Mapping[str, str]] = {
    DRAIN: "Empty brokers",
    JOIN: "Fill new brokers",
    RESTART: "Restart brokers one after the other",
    REMOVE: "Remove brokers",
}
#: Bundle and step, from 1 -> how far the move is.
_States: TypeAlias = Mapping[tuple[str, int], IssuedMove]
STATE_WORDS: Final[Mapping[IssuedMoveState, str]] = {
    "done": "done",
    "in_flight": "in flight",
    "failed": "failed",
    "waiting": "waiting",
}


def state_words(states: Counter[IssuedMoveState]) -> str:
    """How many moves are in each state: 11 done, 1 failed."""
    return ", ".join(f"{states[state]} {text}" for state, text in STATE_WORDS.items() if states[state])


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRow:
    """A wave on the time line of its step; all lengths are percent of it."""

    name: str
    #: done, running, failed or waiting.
    state: str
    x: float
    width: float
    #: Of the width, from the left.
    done: float
    failed: float
    #: From when on the wave could have been issued; the same as *x* where nothing delays it.
    ready: float
    text: str
    delayed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step: its waves, and what is proved of it."""

    title: str
    #: The length of the time line.
    seconds: float
    waves: tuple[WaveRow, ...]
    waves_left_out: int
    certificate: CertificateText


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBar:
    """A broker before and after, percent of its fullest resource."""

    broker: str
    before: float
    after: float
    #: Both within 0 to 100, for the picture.
    at_before: float
    at_after: float
    change: str
    title: str
    #: In the last interval; None: not known, or nothing of the plan was issued yet.
    now: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRow:
    """One move, with whom it disturbs."""

    bundle: BundleLabel
    source: str
    destination: str
    #: "2" or, in a plan of several steps, "3.2".
    wave: str
    connections: int
    state: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """All that the page shows of a plan's file."""

    answer: PlanAnswer
    heading: Heading
    facts: tuple[KeyFigure, ...]
    steps: tuple[StepView, ...]
    steps_left_out: int
    brokers: tuple[BrokerBar, ...]
    brokers_left_out: int
    #: Percent of what brokers have, in words.
    unit: str
    #: T of what brokers use now; None: nothing of the plan was issued yet.
    interval: int | None
    disturbed: Sequence[DisturbedAnswer]
    disturbed_left_out: int
    moves: tuple[MoveRow, ...]
    moves_left_out: int
    #: Whether something is known of what became of its moves.
    has_states: bool
    stays: tuple[tuple[BundleLabel, str], ...]


def plan_view(
    answer: PlanAnswer, progress: IssuedPlan, names: BrokerNames, nodes: BrokerStates | None, now_ms: int
) -> PlanView:
    """*answer* for the page, with what became of it so far; *nodes*: the last interval."""
    states, orders = {(move.bundle, move.step): move for move in progress.moves}, progress.orders
    first = 0 if orders is None else max(0, min(orders.step - 1 - _STEPS // 2, len(answer.steps) - _STEPS))
    rows = range(first, min(len(answer.steps), first + _STEPS))
    present = {} if nodes is None or not states else {node.name: node for node in nodes.brokers}
    changes = sorted(answer.brokers, key=lambda each: (-max(each.before, each.after), each.broker))
    disturbed = sorted(answer.disturbed, key=lambda each: (-each.connections, each.namespace))
    stays = [(BundleLabel.of(bundle), why) for bundle, why in list(answer.stays.items())[:NOTES]]
    return PlanView(
        answer=answer,
        heading=_heading(answer),
        facts=_facts(answer, now_ms),
        steps=tuple(_step(answer, number, states, names) for number in rows),
        steps_left_out=len(answer.steps) - len(rows),
        brokers=tuple(_bar(each, present.get(each.broker), 100 / answer.whole) for each in changes[:_BROKERS]),
        brokers_left_out=max(0, len(changes) - _BROKERS),
        unit="of all messages" if any(each.resource == RATE_SHARE for each in changes) else "of the fullest resource",
        interval=nodes.interval if nodes is not None and present else None,
        disturbed=disturbed[:_NAMESPACES],
        disturbed_left_out=max(0, len(disturbed) - _NAMESPACES),
        moves=_moves(answer, states),
        moves_left_out=max(0, answer.moves - _MOVES),
        has_states=bool(states),
        stays=tuple(stays),
    )


def _usage(share: float) -> str:
    return percent(100 * share)


def _heading(answer: PlanAnswer) -> Heading:
    if not answer.moves:
        return Heading(title="This plan moves nothing", text="There is nothing to carry out.")
    moves = f"{counted(answer.moves, 'move')} in {counted(answer.waves, 'wave')}"
    what = _KINDS.get(answer.kind)
    title = f"{what}: {moves}" if what else f"{moves} bring the fullest broker to {_usage(answer.after)} %"
    text = f"The fullest broker goes from {_usage(answer.before)} to {_usage(answer.after)} %."
    if answer.stays:
        text += f" {counted(len(answer.stays), 'bundle')} cannot leave."
    if answer.never_issued:
        text += f" {counted(len(answer.never_issued), 'move')} would never be issued, with the guardrails as they are."
    return Heading(title=title, text=text)


def _facts(answer: PlanAnswer, now_ms: int) -> tuple[KeyFigure, ...]:
    # Each of several steps has a bound of its own.
    proved = f"proved: not below {100 * answer.steps[0].bound / answer.whole:.1f} %" if len(answer.steps) == 1 else ""
    return (
        KeyFigure(label="Moves", figure=whole(answer.moves), unit="", context=f"in {counted(answer.waves, 'wave')}"),
        KeyFigure(label="Takes", figure=span(answer.seconds), unit="", context="without what people do between steps"),
        KeyFigure(
            label="Clients reconnect",
            figure=whole(answer.connections),
            unit="",
            context=f"at most {whole(answer.connections_at_once)} at once",
        ),
        KeyFigure(
            label="Fullest broker",
            figure=f"{_usage(answer.before / answer.whole)} → {_usage(answer.after / answer.whole)}",
            unit="%",
            context=proved,
        ),
        KeyFigure(
            label="Load of", figure=clock(answer.interval, now_ms), unit="UTC", context="is what it was made for"
        ),
    )


def _step(answer: PlanAnswer, number: int, states: _States, names: BrokerNames) -> StepView:
    step = answer.steps[number]
    brokers = ", ".join(names.label(each) for each in step.brokers[:4])
    more = f" and {len(step.brokers) - 4} more" if len(step.brokers) > 4 else ""
    task = {EMPTY: f"empty {brokers}{more}", FILL: f"fill {brokers}{more}"}.get(step.task, "spread the load")
    title = f"Step {number + 1} of {len(answer.steps)}: {task}" if len(answer.steps) > 1 else f"Waves: {task}"
    waves = [
        Counter(known.state for move in wave if (known := states.get((move.bundle, number + 1)))) for wave in step.waves
    ]
    newest = max((wave for wave, counts in enumerate(waves, 1) if counts), default=1)
    first = max(1, min(newest - _WAVES // 2, len(step.waves) - _WAVES + 1))
    rows = range(first, min(len(step.waves), first + _WAVES - 1) + 1)
    return StepView(
        title=title,
        seconds=_seconds(step),
        waves=tuple(_wave(step, wave, waves[wave - 1]) for wave in rows),
        waves_left_out=len(step.waves) - len(rows),
        certificate=certificate_text(step, answer.whole),
    )


def _seconds(step: PlanStepAnswer) -> float:
    """The length of the time line of *step*."""
    return max([step.seconds, *(each.ends or each.ready for each in step.wave_times), 1.0])


def _wave(step: PlanStepAnswer, number: int, states: Counter[IssuedMoveState]) -> WaveRow:
    moves, time = step.waves[number - 1], step.wave_times[number - 1]
    total = _seconds(step)
    begins = time.ready if time.begins is None else time.begins
    width = max(0.5, 100 * ((begins if time.ends is None else time.ends) - begins) / total)
    clients = counted(sum(move.connections for move in moves), "client")
    words = state_words(states)
    after = f"; {words}" if words else "" if time.begins is not None else "; never issued"
    done, failed = min(states["done"], len(moves)), min(states["failed"], len(moves))
    state = "failed" if failed else "done" if done == len(moves) else "running" if states else "waiting"
    return WaveRow(
        name=f"Wave {number}",
        state=state,
        x=min(99.5, 100 * begins / total),
        width=width,
        done=width * done / len(moves) if moves else 0.0,
        failed=width * failed / len(moves) if moves else 0.0,
        ready=min(99.5, 100 * time.ready / total),
        text=f"{counted(len(moves), 'move')}, {clients}{after}",
        delayed_by=time.delayed_by,
    )


def _bar(change: BrokerChangeAnswer, node: BrokerNow | None, scale: float) -> BrokerBar:
    before, after = scale * change.before, scale * change.after
    now = None if node is None else _usage_now(change, node, scale)
    present = "" if now is None else f" {now:.1f} % now,"
    by = "the share of all messages" if change.resource == RATE_SHARE else change.resource
    return BrokerBar(
        broker=change.broker,
        before=before,
        after=after,
        at_before=min(100.0, before),
        at_after=min(100.0, after),
        change=signed(after - before),
        now=now,
        title=f"{change.broker}: {before:.1f} % before, {after:.1f} % after,{present} at most"
        f" {scale * change.highest:.1f} % on the way, by {by or 'nothing'}; {change.bundles_before} bundles before,"
        f" {change.bundles_after} after",
    )


def _usage_now(change: BrokerChangeAnswer, node: BrokerNow, scale: float) -> float | None:
    """What *node* uses now by what the plan counts, percent by *scale*; None: not known."""
    if change.resource in RESOURCES:
        return node.fullest_usage
    if change.resource not in (RATE_SHARE, MESSAGE_RATE) or node.rate_in is None or node.rate_out is None:
        return None
    for usage, rate in ((change.before, change.msg_rate_before), (change.after, change.msg_rate_after)):
        if rate > 0:
            return scale * (node.rate_in + node.rate_out) * (usage - change.fixed) / rate
    return None


def _moves(answer: PlanAnswer, states: _States) -> tuple[MoveRow, ...]:
    """The moves that disturb the most clients."""
    several = len(answer.steps) > 1
    planned = [
        (move, step, wave)
        for step, each in enumerate(answer.steps, 1)
        for wave, moves in enumerate(each.waves, 1)
        for move in moves
    ]
    planned.sort(key=lambda each: (-each[0].connections, each[0].bundle))
    rows = []
    for move, step, wave in planned[:_MOVES]:
        known = states.get((move.bundle, step))
        rows.append(
            MoveRow(
                bundle=BundleLabel.of(move.bundle),
                source=move.source,
                destination=move.destination,
                wave=f"{step}.{wave}" if several else str(wave),
                connections=move.connections,
                state="" if known is None else STATE_WORDS[known.state],
                detail="" if known is None else known.detail,
            )
        )
    return tuple(rows)
