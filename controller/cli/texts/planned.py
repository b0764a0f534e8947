"""Prints plans: what they do to each broker, their waves, whom they disturb, and what is proved of them."""

from pathlib import Path
from typing import Final

from rich.console import Console

from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.console import command_line
from controller.cli.shared.layout import Column, columns, print_fields, print_line, print_table
from controller.offline.plans.rightsizing import Rightsizing
from controller.offline.plans.source import PlanSource
from controller.planning.plans.plan import EMPTY, FILL
from controller.planning.problem import FIXED, RATE_SHARE
from controller.planning.solving.frontier import FURTHER_MOVES
from controller.wire.answers.plan import (
    BrokerChangeAnswer,
    DisturbedAnswer,
    FrontierLevelAnswer,
    PlanAnswer,
    PlanStepAnswer,
    RightsizingAnswer,
)
from controller.wire.readable import counted, duration, utc

#: Maximum number of printed namespaces, unchanged brokers, and bundles that stay.
_LISTED_BROKERS: Final = 10
_NEXT: Final = "next"
#: Length of the longest bar of the frontier's curve.
_BAR: Final = 30
#: A usage that is lower by less than this share is reported as the same.
_SAME: Final = 0.0005
_BROKERS: Final = fields_of(
    BrokerChangeAnswer,
    *("broker", "before", "resource", "after", "highest"),
    Column(heading="bundles that may move", cell=lambda each: f"{each.bundles_before} to {each.bundles_after}"),
    Column(heading="their msg/s", cell=lambda each: f"{each.msg_rate_before:,.0f} to {each.msg_rate_after:,.0f}"),
)
_FIXED: Final = fields_of(BrokerChangeAnswer, "fixed")
_DISTURBED: Final = fields_of(DisturbedAnswer, "namespace", "moves", "connections", "msg_rate")
_FRONTIER: Final = fields_of(
    FrontierLevelAnswer, "max_moves", "moves", "connections", "reached", "times_mean", "bound", "bound_kind"
)


def print_plan(out: Console, answer: PlanAnswer, conf: Path | None) -> None:
    """Print *answer* for a person who is to approve it.

    *conf*: the settings with which its file is carried out; None: it is in no file, and nothing is said about that.
    """
    _print_moves(out, answer)
    changed, rest = list[BrokerChangeAnswer](), list[BrokerChangeAnswer]()
    for each in answer.brokers:
        same = (each.before, each.bundles_before, each.msg_rate_before) == (
            each.after, each.bundles_after, each.msg_rate_after,
        )  # fmt: skip
        (rest if same else changed).append(each)
    listed_brokers = [*changed, *rest[: _LISTED_BROKERS if changed else None]]
    by_rate = any(each.resource == RATE_SHARE for each in answer.brokers)
    header = [*_BROKERS, *(_FIXED if by_rate else ())]
    shares = [_of_all(each, answer.whole) for each in listed_brokers]
    print_table(out, header, [[column.cell(each) for column in header] for each in shares], title="Brokers")
    if len(listed_brokers) < len(answer.brokers):
        print_line(out, f"and {counted(len(answer.brokers) - len(listed_brokers), 'broker')} that stay as they are")
    out.print()
    title = "Whose clients reconnect"
    print_answers(out, _DISTURBED, answer.disturbed, title=title, limit=_LISTED_BROKERS, rest="--json lists all")
    _print_frontier(out, answer)
    for bundle, why in list(answer.stays.items())[:_LISTED_BROKERS]:
        print_line(out, f"stays: {bundle}: {why}")
    if len(answer.stays) > _LISTED_BROKERS:
        print_line(out, f"stays: {len(answer.stays) - _LISTED_BROKERS} more; --json names all")
    for note in answer.notes:
        print_line(out, note)
    _print_by_hand(out, answer)
    following = [] if conf is None else _next(answer, conf)
    print_fields(out, [*_summary(answer), *following], whole=[_NEXT] if answer.file else [])


def _of_all(change: BrokerChangeAnswer, whole: float) -> BrokerChangeAnswer:
    """*change* with its usages as shares of *whole*."""
    usages = {"before": change.before, "after": change.after, "highest": change.highest, "fixed": change.fixed}
    return change.model_copy(update={name: usage / whole for name, usage in usages.items()})


def _print_by_hand(out: Console, answer: PlanAnswer) -> None:
    if not answer.by_hand:
        return
    number = len(answer.by_hand)
    text = f"{counted(number, 'bundle')} of trimtab's own topics {'is' if number == 1 else 'are'} not part of the plan,"
    print_line(out, f"{text} as trimtab cannot work while they move. After the moves, before the broker stops, run:")
    for command in answer.by_hand.values():
        out.print(f"  {command}", soft_wrap=True, markup=False, highlight=False)


def _print_moves(out: Console, answer: PlanAnswer) -> None:
    header = columns("wave", "bundle", "from", "to", "connections", "msg/s", numbers=("wave", "connections", "msg/s"))
    for number, step in enumerate(answer.steps, 1):
        title = f"Step {number} of {len(answer.steps)}: {_task(step)}" if len(answer.steps) > 1 else _task(step)
        rows = [
            (str(wave), move.bundle, move.source, move.destination, str(move.connections), f"{move.msg_rate:,.0f}")
            for wave, moves in enumerate(step.waves, 1)
            for move in moves
        ]
        if rows:
            print_table(out, header, rows, title=title, head=2, shared=1)
        else:
            print_line(out, f"{title}: no moves", style="italic")
        out.print()


def _task(step: PlanStepAnswer) -> str:
    names = ", ".join(step.brokers[:_LISTED_BROKERS])
    return {EMPTY: f"empty {names}", FILL: f"fill {names}"}.get(step.task, "spread the load")


def _print_frontier(out: Console, answer: PlanAnswer) -> None:
    """The frontier as a table with a curve, and what more moves than the plan's would give."""
    levels = answer.frontier
    if levels:
        highest, stroke = (
            max(each.times_mean for each in levels) - 1,
            "#" if out.options.ascii_only else "\N{FULL BLOCK}",
        )
        curve = Column(heading="above the mean", cell=lambda each: _bar(each.times_mean - 1, highest, stroke))
        title = "How low other numbers of moves bring the highest usage"
        print_answers(out, [*_FRONTIER, curve], levels, title=title)
        print_line(out, _further(answer))
        out.print()


def _bar(above: float, highest: float, stroke: str) -> str:
    return stroke * (round(_BAR * above / highest) if highest > _SAME else 0)


def _further(answer: PlanAnswer) -> str:
    """The effect of more moves than those of the plan."""
    by_moves = {each.max_moves: each for each in answer.frontier}
    now, then = by_moves[answer.moves], by_moves[answer.moves + FURTHER_MOVES]
    text = f"{counted(answer.moves, 'move')} reach {now.times_mean:.3f} times the mean usage"
    if then.reached >= now.reached * (1 - _SAME):
        return f"{text}; {FURTHER_MOVES} more would not lower that"
    return f"{text}; {FURTHER_MOVES} more would reach {then.times_mean:.3f}"


def _summary(answer: PlanAnswer) -> list[tuple[str, str]]:
    fewest = answer.fewest_moves
    least = "" if fewest is None else " (the minimum)" if fewest == answer.moves else f" ({fewest} is the minimum)"
    before, after = answer.before / answer.whole, answer.after / answer.whole
    of = " of all messages" if any(each.resource == RATE_SHARE for each in answer.brokers) else ""
    rows = [
        ("load of", utc(answer.interval)),
        ("moves", f"{counted(answer.moves, 'move')}{least} in {counted(answer.waves, 'wave')}"),
        ("usage", f"highest {before:.1%} before, {after:.1%} after{of}"),
        ("time", f"{duration(answer.seconds)}, {_reconnecting(answer)}"),
    ]
    if answer.slowed:
        rows.append(("slowed", answer.slowed))
    for why in answer.never_issued[:_LISTED_BROKERS]:
        rows.append(("never", why))
    for number, step in enumerate(answer.steps, 1):
        rows.append((f"step {number}" if len(answer.steps) > 1 else "proved", _proved(step)))
    if answer.deadline_ms is not None:
        outcome = "it can be met" if answer.in_time else "it cannot be met"
        rows.append(("deadline", f"{utc(answer.deadline_ms)}: {outcome}"))
    if answer.file:
        rows.append(("file", answer.file))
    return [*rows, ("hash", answer.sha256)]


def _proved(step: PlanStepAnswer) -> str:
    """How full the fullest broker is after *step*, and how much lower it could be at most."""
    other = "placement of these bundles" if step.task == EMPTY else "plan of as many moves"
    proof = f"no other {other} gets it below {step.bound:.1%}"
    if step.bound_kind == FIXED:
        proof += ": that part does not move with bundles"
    gap = 0.0 if step.bound <= 0 else max(0.0, step.reached / step.bound - 1)
    more = f" (this one is {gap:.1%} above that)" if f"{gap:.1%}" != "0.0%" else ""
    return f"highest usage {step.reached:.1%}; {proof}{more}"


def _reconnecting(answer: PlanAnswer) -> str:
    """How many connections, and how many of them at once."""
    at_once = f", at most {answer.connections_at_once} at once" if answer.waves > 1 else ""
    return f"{counted(answer.connections, 'connection')} reconnect{at_once}"


def _next(answer: PlanAnswer, conf: Path) -> list[tuple[str, str]]:
    """What carries the plan out; nothing where it moves nothing."""
    if not answer.moves:
        return []
    if not answer.file:
        return [(_NEXT, "to carry it out, make it again with -o plan.json: `trimtab apply` reads the file")]
    step = ["--step", "1"] if len(answer.steps) > 1 else []
    return [(_NEXT, command_line("apply", answer.file, *step, "--hash", answer.sha256, conf=conf))]


def rightsizing_answer(source: PlanSource, rightsizing: Rightsizing) -> RightsizingAnswer:
    """*rightsizing* for --json and for print_rightsizing."""
    common = {"cluster": source.cluster, "interval": source.view.as_of_ms, "notes": list(source.notes)}
    return RightsizingAnswer.from_object(rightsizing, **common)


def print_rightsizing(out: Console, answer: RightsizingAnswer) -> None:
    """Print *answer* for a person."""
    for note in answer.notes:
        print_line(out, note)
    need = _needed(answer, f"{answer.headroom:.0%} free")
    rows = [
        ("brokers", f"{answer.brokers}, highest usage {answer.highest:.1%}, mean {answer.mean:.1%}"),
        ("needed", need),
    ]
    if answer.added:
        rows.append(
            (
                f"{answer.added} more",
                f"highest usage {answer.highest_after:.1%} after {counted(answer.moves, 'move')};"
                f" no placement is below {answer.bound:.1%}",
            )
        )
    print_fields(out, rows)


def _needed(answer: RightsizingAnswer, free: str) -> str:
    """How many brokers keep this much *free*: what is proved, and what is shown."""
    least, sufficient = answer.needed, answer.enough
    if least is None:
        return f"no number of brokers keeps {free}: a bundle, or a broker's own use, is too large ({answer.resource})"
    if least == sufficient:
        return f"{counted(least, 'broker')} keep {free}, {_more(least, answer)} (by {answer.resource}); fewer do not"
    at_least = f"at least {counted(least, 'broker')} to keep {free}, {_more(least, answer)} (by {answer.resource})"
    if sufficient is None:
        return f"{at_least}; no number was found on which all bundles have room, and what stays on a broker"
    return f"{at_least}; {sufficient} are enough, {_more(sufficient, answer)}"


def _more(brokers: int, answer: RightsizingAnswer) -> str:
    more = brokers - answer.brokers
    return f"{more} more" if more > 0 else f"{-more} fewer" if more < 0 else "as many as there are"
