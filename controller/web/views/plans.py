"""A plan that is being applied, in words and as waves."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from controller.model.controls import Orders
from controller.web.issued_plan import IssuedMove, IssuedMoveState, IssuedPlan
from controller.web.views.formats import BrokerNames, BundleLabel, clock, span, whole
from controller.web.views.now import Heading, KeyFigure
from controller.web.views.plan_file import WaveRow, state_words
from controller.wire.readable import counted

#: Waves beyond are left out before and after the one in force.
_WAVES: Final = 24
#: So many commands in flight, and events, are listed.
_IN_FLIGHT: Final = 20
_EVENTS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FlyingMove:
    """A move whose command has no result yet."""

    bundle: BundleLabel
    source: str
    destination: str
    #: T of its command, and how long ago that is.
    interval: int
    age: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEvent:
    """A wave that was issued, or the result of a move."""

    at_ms: int
    #: None: it is about a wave.
    bundle: BundleLabel | None
    text: str
    icon: str


def in_flight(progress: IssuedPlan, now_ms: int) -> tuple[FlyingMove, ...]:
    """The moves without a result, the oldest first, as far as they fit."""
    flying = [(move.interval, move) for move in progress.moves if move.state == "in_flight" and move.interval]
    return tuple(
        FlyingMove(
            bundle=BundleLabel.of(move.bundle),
            source=move.source,
            destination=move.destination,
            interval=interval,
            age=span((now_ms - interval) / 1000),
        )
        for interval, move in sorted(flying, key=lambda each: (each[0], each[1].bundle))[:_IN_FLIGHT]
    )


def events(progress: IssuedPlan, names: BrokerNames) -> tuple[PlanEvent, ...]:
    """The last results and waves that were issued, the newest first."""
    issued = Counter((move.interval, move.step, move.wave) for move in progress.moves if move.interval)
    made = [
        PlanEvent(at_ms=interval, bundle=None, text=f"Wave {wave}: {counted(count, 'move')} issued", icon="play")
        for (interval, _, wave), count in issued.items()
        if interval
    ]
    made += [_result(move, move.finished_at, names) for move in progress.moves if move.finished_at]
    return tuple(sorted(made, key=lambda each: -each.at_ms)[:_EVENTS])


def _result(move: IssuedMove, at_ms: int, names: BrokerNames) -> PlanEvent:
    seconds = "" if move.started_at is None else f" after {max(0, at_ms - move.started_at) / 1000:.1f} s"
    text = f"on {names.label(move.destination)}{seconds}" if move.state == "done" else move.detail
    return PlanEvent(
        at_ms=at_ms // 1000 * 1000,
        bundle=BundleLabel.of(move.bundle),
        text=text,
        icon="check" if move.state == "done" else "cross",
    )


def heading(orders: Orders | None, now_ms: int) -> Heading:
    """Whether a plan is being applied, and how far it is."""
    if orders is None:
        return Heading(
            title="No plan is being applied",
            text="Strategies balance by themselves. A plan is for what a person wants: to empty a broker, to fill a new"
            " one, or to balance all at once.",
        )
    moves = counted(len(orders.moves), "move") if orders.moves else "no moves yet"
    return Heading(
        title=f"A plan is being applied: step {orders.step}, wave {orders.wave} of {orders.waves}",
        text=f"Started by {orders.by}. This wave has {moves}, checked against {clock(orders.checked_at, now_ms)}."
        f" Controllers obey it until {clock(orders.expires_at_ms, now_ms)}; strategies unload nothing meanwhile.",
    )


def waves(orders: Orders | None, progress: IssuedPlan | None) -> tuple[WaveRow, ...]:
    """The waves of the step, those around the one in force where they are many."""
    if orders is None or orders.waves < 1:
        return ()
    counts = {} if progress is None else progress.waves_of(orders.step)
    first = max(1, min(orders.wave - _WAVES // 2, orders.waves - _WAVES + 1))
    numbers = range(first, min(orders.waves, first + _WAVES - 1) + 1)
    width = 100 / len(numbers)
    words = {"done": "done", "running": f"{counted(len(orders.moves), 'move')} in force", "waiting": "not issued yet"}
    made = []
    for place, number in enumerate(numbers):
        state = "done" if number < orders.wave else "running" if number == orders.wave else "waiting"
        known: Counter[IssuedMoveState] = counts.get(number, Counter())
        share = width * 0.9 / max(1, known.total())
        made.append(
            WaveRow(
                name=f"Wave {number}",
                state="failed" if known["failed"] else state,
                x=place * width,
                width=width * 0.9,
                done=share * known["done"],
                failed=share * known["failed"],
                ready=place * width,
                text=state_words(known) or words[state],
                delayed_by="",
            )
        )
    return tuple(made)


def facts(progress: IssuedPlan) -> tuple[KeyFigure, ...]:
    """How many moves of the plan are done, in flight and failed."""
    counts = progress.counts
    return (
        KeyFigure(label="Done", figure=whole(counts["done"]), unit="", context="their results are there"),
        KeyFigure(label="In flight", figure=whole(counts["in_flight"]), unit="", context="without a result yet"),
        KeyFigure(label="Failed", figure=whole(counts["failed"]), unit="", context="see the moves below"),
        KeyFigure(
            label="Waiting", figure=whole(counts["waiting"]), unit="", context="handed over, or to be issued again"
        ),
    )
