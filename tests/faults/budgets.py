"""Whether every interval, and every window, kept to the budgets of the guardrails: counted anew from the journal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from controller.cycle.limits import Budget, Limits
from controller.model.decision import Command
from controller.model.names import namespace_of
from tests.faults.log import Decided


def over_budget(decided: Sequence[Decided], limits: Limits) -> list[str]:
    """A line for each interval or window with more unloads than *limits* allow."""
    found: list[str] = []
    for nth, each in enumerate(decided):
        end = each.entry.interval
        within = [
            command
            for other in decided[: nth + 1]
            if other.entry.interval > end - limits.window_ms
            for command in other.entry.decision.commands
        ]
        found += _over(f"interval {end}", each.entry.decision.commands, limits.interval)
        found += _over(f"the window that ends with {end}", within, limits.window)
    return found


def _over(span: str, commands: Sequence[Command], budget: Budget) -> Iterator[str]:
    unloads = [command for command in commands if command.action == "unload"]
    for what, limit, counts in (
        ("the cluster", budget.unloads, Counter("cluster" for _ in unloads)),
        ("source", budget.unloads_per_source, Counter(command.source for command in unloads)),
        ("destination", budget.unloads_per_destination, Counter(command.destination for command in unloads)),
        ("namespace", budget.unloads_per_namespace, Counter(namespace_of(command.bundle) for command in unloads)),
    ):
        for name, count in sorted(counts.items()):
            if limit is not None and count > limit:
                yield f"{span}: {count} unloads of {what} {name}, the budget is {limit}"
